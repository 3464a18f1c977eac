//! Tasks that are asked for at the same moment are written in one transaction.
//!
//! Most of what it costs to add one task is its transaction: the way to the database and back, what Postgres makes ready anew for
//! each, the commit on disk. A request that comes while a writer is free is written at once, alone. What comes while
//! all are busy is written together by the next one that becomes free.
//!
//! Where one of several is refused, or has to wait for a transaction of another system that holds its conversation, nothing of them is
//! written; then those of each conversation are written together, and where that fails, too, each alone, and gets its own answer. Such a
//! one waits a moment for the other system, has a place among those that wait, and is told to come again if that was not enough. Where the
//! database was not heard, all of them may have been written, and each is told that it is not known. A panic while they are written is
//! told in the same way, and its writer goes on with the next ones.

use std::{
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use futures_util::FutureExt as _;
use tokio::sync::oneshot;
use tracing::{Instrument as _, Span};
use uuid::Uuid;

use super::{Call, Refusal};
use crate::{
    causes::causes,
    domain::{
        agents::{Agent, Node},
        class::Kind,
        labels::Labels,
        tasks::{self, Added, Line, Links},
        transaction::connection,
    },
};

/// One waits for the disk while the other one writes; more would only make the groups smaller.
const WRITERS: usize = 2;
/// Bounds what one transaction holds, and how long the first of the requests in it wait.
const TOGETHER: usize = 32;

#[derive(Debug, Clone, Default)]
pub struct Intake(Arc<Mutex<State>>);

/// A task as a caller asks for it.
#[derive(Debug)]
pub(super) struct Question {
    pub campaign_id: Uuid,
    pub agent: Arc<Agent>,
    pub instance: String,
    pub node: Option<Arc<Node>>,
    pub line: Line,
    pub added_by: String,
    pub traceparent: Option<String>,
    pub only_of: Option<String>,
}

#[derive(Debug, Default)]
struct State {
    waiting: Vec<Waiting>,
    n_writers: usize,
}

#[derive(Debug)]
struct Waiting {
    question: Question,
    /// Of its request. What is logged of several is logged with the first.
    span: Span,
    answer: oneshot::Sender<Result<Added, Refusal>>,
}

impl Intake {
    /// Adds a task. Where the caller goes away meanwhile, it is added all the same, or was never begun.
    pub(super) async fn add(&self, call: &Call, question: Question) -> Result<Added, Refusal> {
        if !question.line.depends_on.is_empty() || question.node.is_some() {
            return add_alone(call, &question).await;
        }
        let (answer, answered) = oneshot::channel();
        if self.is_writer_wanted(Waiting { question, span: Span::current(), answer }) {
            tokio::spawn(self.clone().write(call.clone()));
        }
        answered.await.unwrap_or_else(|_| {
            let detail = "the task may not have been added, because its writer has failed: ask again with the same Idempotency-Key; \
                          the log of the service says more";
            Err(Refusal::new(Kind::Unavailable, "internal", detail))
        })
    }

    fn is_writer_wanted(&self, waiting: Waiting) -> bool {
        let mut state = self.state();
        state.waiting.push(waiting);
        let is_wanted = state.n_writers < WRITERS;
        state.n_writers += usize::from(is_wanted);
        is_wanted
    }

    async fn write(self, call: Call) {
        while let Some(together) = self.next() {
            let span = span_of(&together);
            // A panic ends neither the writer nor the count of writers. The callers are told when their senders are dropped.
            let written =
                AssertUnwindSafe(write_together(&call, together).instrument(span.clone()));
            if written.catch_unwind().await.is_err() {
                tracing::error!(parent: &span, "a panic has ended the addition of tasks");
            }
        }
    }

    /// `None`: no request waits, and the writer is counted no more. Both under one lock, so that no request is left behind.
    fn next(&self) -> Option<Vec<Waiting>> {
        let mut state = self.state();
        let n_tasks = state.waiting.len().min(TOGETHER);
        if n_tasks == 0 {
            state.n_writers -= 1;
            return None;
        }
        let mut together: Vec<Waiting> = state.waiting.drain(..n_tasks).collect();
        together.retain(|waiting| !waiting.answer.is_closed());
        Some(together)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Question {
    fn as_new(&self) -> tasks::New<'_> {
        let line = &self.line;
        tasks::New {
            campaign_id: self.campaign_id,
            agent: &self.agent,
            instance: &self.instance,
            node: self.node.as_deref(),
            prompt: &line.prompt,
            session_mode: line.session,
            budget: line.budget,
            idempotency_key: line.idempotency_key.as_deref(),
            priority: line.priority,
            run_at: line.run_at,
            added_by: Some(&self.added_by),
            traceparent: self.traceparent.as_deref(),
            labels: Labels { tags: &line.tags, metadata: Some(&line.metadata) },
            links: Links {
                depends_on: &line.depends_on,
                on_failure: line.on_failure,
                only_of: self.only_of.as_deref(),
                ..Links::default()
            },
        }
    }

    fn conversation(&self) -> (Uuid, &str, &str) {
        (self.campaign_id, &self.agent.name, &self.instance)
    }
}

impl Waiting {
    fn tell(self, added: Result<Added, Refusal>) {
        // The caller may have gone.
        let _ = self.answer.send(added);
    }
}

async fn write_together(call: &Call, mut together: Vec<Waiting>) {
    // All writers take the conversations in the same order, so that two do not wait for each other in a circle.
    together.sort_by(|one, other| one.question.conversation().cmp(&other.question.conversation()));
    let left = try_together(call, together).await;
    let conversations = by_conversation(left);
    let is_one = conversations.len() == 1;
    // Not by this writer: one of them may have to wait for a transaction of another system.
    for together in conversations {
        let (call, span) = (call.clone(), span_of(&together));
        let smaller = async move {
            let left = if is_one { together } else { try_together(&call, together).await };
            for waiting in left {
                let span = waiting.span.clone();
                tokio::spawn(write_alone(call.clone(), waiting).instrument(span));
            }
        };
        tokio::spawn(smaller.instrument(span));
    }
}

fn span_of(together: &[Waiting]) -> Span {
    together.first().map_or_else(Span::none, |first| first.span.clone())
}

/// Gives back those that have to be written in smaller groups.
async fn try_together(call: &Call, together: Vec<Waiting>) -> Vec<Waiting> {
    match add_together(call, &together).await {
        Ok(added) => {
            for (waiting, added) in together.into_iter().zip(added) {
                waiting.tell(added.map_err(Refusal::from));
            }
            Vec::new()
        }
        Err(error) if error.has_written_nothing() => {
            let error = causes(&error);
            tracing::debug!(n_tasks = together.len(), error, "tasks are added in smaller groups");
            together
        }
        Err(error) => {
            let refusals = Refusal::from(error).for_each(together.len());
            for (waiting, refusal) in together.into_iter().zip(refusals) {
                waiting.tell(Err(refusal));
            }
            Vec::new()
        }
    }
}

/// `sorted` is in the order of conversations.
fn by_conversation(sorted: Vec<Waiting>) -> Vec<Vec<Waiting>> {
    let mut groups: Vec<Vec<Waiting>> = Vec::new();
    for waiting in sorted {
        let is_same = |group: &&mut Vec<Waiting>| {
            group.iter().all(|one| one.question.conversation() == waiting.question.conversation())
        };
        match groups.last_mut().filter(is_same) {
            Some(group) => group.push(waiting),
            None => groups.push(vec![waiting]),
        }
    }
    groups
}

async fn write_alone(call: Call, waiting: Waiting) {
    let added = add_alone(&call, &waiting.question).await;
    waiting.tell(added);
}

async fn add_together(
    call: &Call,
    together: &[Waiting],
) -> Result<Vec<Result<Added, tasks::Error>>, tasks::Error> {
    let news: Vec<tasks::New<'_>> =
        together.iter().map(|waiting| waiting.question.as_new()).collect();
    let mut conn = connection(&call.pool).await?;
    tasks::add_together(&mut conn, &call.config.tasks, &news, call.clock.now()).await
}

/// For one that waits for others, or belongs to a node, too: that takes several statements.
async fn add_alone(call: &Call, question: &Question) -> Result<Added, Refusal> {
    let mut transaction = call.begin().await?;
    let (config, new) = (&call.config.tasks, question.as_new());
    let added = tasks::add(&mut transaction, config, &new, call.clock.now()).await?;
    transaction.commit().await?;
    Ok(added)
}
