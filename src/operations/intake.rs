//! Group commit of new tasks: tasks that are added at the same moment share a transaction.
//!
//! Most of the cost of adding one task is its transaction: the round trips, the setup in Postgres, the commit on disk.
//! While a writer is free, a request is written at once and alone. Requests that arrive while all writers are busy are
//! written together by the next free one.
//!
//! Errors and locks:
//!
//! - If one task of a group is refused, or waits for a lock of another system's transaction, nothing of the group is
//!   written. The tasks of each conversation are then written together; if that fails, too, each is written alone and
//!   gets its own answer.
//! - A task that is written alone waits a moment for the other system, and takes one of the places for waiting
//!   requests. If that is not enough, the caller is told to retry.
//! - If the connection fails, the tasks may have been written; each caller is told that the result is unknown.
//! - A panic has the same answer; its writer continues with the next tasks.

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
        tasks::{self, AddResult, Line, Links},
        transaction::connection,
    },
};

/// Number of writers: one waits for the disk while the other one writes. More would only make the groups smaller.
const MAX_WRITERS: usize = 2;
/// Most tasks of a group. Bounds the size of a transaction, and the wait of its first request.
const MAX_GROUP: usize = 32;

#[derive(Debug, Clone, Default)]
pub struct Intake(Arc<Mutex<State>>);

/// A task as the caller has requested it.
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
    waiting: Vec<QueuedRequest>,
    n_writers: usize,
}

#[derive(Debug)]
struct QueuedRequest {
    question: Question,
    /// Of its request. What is logged of several is logged with the first.
    span: Span,
    answer: oneshot::Sender<Result<AddResult, Refusal>>,
}

impl Intake {
    /// Adds a task. If the caller disconnects, the task is still added, unless its write has not begun.
    pub(super) async fn add(&self, call: &Call, question: Question) -> Result<AddResult, Refusal> {
        let Line {
            depends_on,
            flow_templates,
            parameters,
            result_schema,
            attachments,
            within_secs,
            ..
        } = &question.line;
        let is_plain = depends_on.is_empty()
            && flow_templates.is_none()
            && parameters.is_empty()
            && result_schema.is_none()
            && attachments.is_empty()
            && within_secs.is_none();
        if !is_plain || question.node.is_some() {
            return add_alone(call, &question).await;
        }
        let (answer, answered) = oneshot::channel();
        if self.push_waiting(QueuedRequest { question, span: Span::current(), answer }) {
            tokio::spawn(self.clone().write(call.clone()));
        }
        answered.await.unwrap_or_else(|_| {
            let detail = "the task may or may not have been added, because its writer failed: repeat the request with the same Idempotency-Key; the log of the service shows the cause";
            Err(Refusal::new(Kind::Unavailable, "internal", detail))
        })
    }

    fn push_waiting(&self, waiting: QueuedRequest) -> bool {
        let mut state = self.state();
        state.waiting.push(waiting);
        let is_wanted = state.n_writers < MAX_WRITERS;
        state.n_writers += usize::from(is_wanted);
        is_wanted
    }

    async fn write(self, call: Call) {
        while let Some(together) = self.next() {
            let span = span_of(&together);
            // A panic ends neither the writer nor the count of writers. The callers are answered when their senders are
            // dropped.
            let written =
                AssertUnwindSafe(write_together(&call, together).instrument(span.clone()));
            if written.catch_unwind().await.is_err() {
                tracing::error!(parent: &span, "the writer of tasks panicked");
            }
        }
    }

    /// Takes the next group. `None`: no request waits, and the writer is no longer counted. Both happen under one lock,
    /// so that no request is left behind.
    fn next(&self) -> Option<Vec<QueuedRequest>> {
        let mut state = self.state();
        let n_tasks = state.waiting.len().min(MAX_GROUP);
        if n_tasks == 0 {
            state.n_writers -= 1;
            return None;
        }
        let mut together: Vec<QueuedRequest> = state.waiting.drain(..n_tasks).collect();
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
            parameters: Some(&line.parameters),
            result_schema: line.result_schema.as_ref(),
            attachments: &line.attachments,
            within_secs: line.within_secs,
            links: Links {
                depends_on: &line.depends_on,
                on_failure: line.on_failure,
                only_of: self.only_of.as_deref(),
                flow_templates: line.flow_templates.as_deref(),
                ..Links::default()
            },
        }
    }

    fn conversation(&self) -> (Uuid, &str, &str) {
        (self.campaign_id, &self.agent.name, &self.instance)
    }
}

impl QueuedRequest {
    fn send_answer(self, added: Result<AddResult, Refusal>) {
        // The caller may have disconnected.
        let _ = self.answer.send(added);
    }
}

async fn write_together(call: &Call, mut together: Vec<QueuedRequest>) {
    // All writers lock the conversations in the same order, to avoid deadlocks.
    together.sort_by(|one, other| one.question.conversation().cmp(&other.question.conversation()));
    let left = write_group(call, together).await;
    let conversations = by_conversation(left);
    let is_one = conversations.len() == 1;
    // Spawned, because one of the groups may have to wait for a transaction of another system.
    for together in conversations {
        let (call, span) = (call.clone(), span_of(&together));
        let smaller = async move {
            let left = if is_one { together } else { write_group(&call, together).await };
            for waiting in left {
                let span = waiting.span.clone();
                tokio::spawn(write_alone(call.clone(), waiting).instrument(span));
            }
        };
        tokio::spawn(smaller.instrument(span));
    }
}

fn span_of(together: &[QueuedRequest]) -> Span {
    together.first().map_or_else(Span::none, |first| first.span.clone())
}

/// Writes a group. Returns the tasks that have to be written in smaller groups.
async fn write_group(call: &Call, together: Vec<QueuedRequest>) -> Vec<QueuedRequest> {
    match add_together(call, &together).await {
        Ok(added) => {
            for (waiting, added) in together.into_iter().zip(added) {
                waiting.send_answer(added.map_err(Refusal::from));
            }
            Vec::new()
        }
        Err(error) if error.has_written_nothing() => {
            let error = causes(&error);
            tracing::debug!(n_tasks = together.len(), error, "adding tasks in smaller batches");
            together
        }
        Err(error) => {
            let refusals = Refusal::from(error).for_each(together.len());
            for (waiting, refusal) in together.into_iter().zip(refusals) {
                waiting.send_answer(Err(refusal));
            }
            Vec::new()
        }
    }
}

/// Splits tasks by conversation. `sorted` is ordered by conversation.
fn by_conversation(sorted: Vec<QueuedRequest>) -> Vec<Vec<QueuedRequest>> {
    let mut groups: Vec<Vec<QueuedRequest>> = Vec::new();
    for waiting in sorted {
        let is_same = |group: &&mut Vec<QueuedRequest>| {
            group.iter().all(|one| one.question.conversation() == waiting.question.conversation())
        };
        match groups.last_mut().filter(is_same) {
            Some(group) => group.push(waiting),
            None => groups.push(vec![waiting]),
        }
    }
    groups
}

async fn write_alone(call: Call, waiting: QueuedRequest) {
    let added = add_alone(&call, &waiting.question).await;
    waiting.send_answer(added);
}

async fn add_together(
    call: &Call,
    together: &[QueuedRequest],
) -> Result<Vec<Result<AddResult, tasks::Error>>, tasks::Error> {
    let news: Vec<tasks::New<'_>> =
        together.iter().map(|waiting| waiting.question.as_new()).collect();
    let mut conn = connection(&call.pool).await?;
    tasks::add_together(&mut conn, &call.config.tasks, &news, call.clock.now()).await
}

/// Adds one task with the several statements that a node or dependencies need.
async fn add_alone(call: &Call, question: &Question) -> Result<AddResult, Refusal> {
    let mut transaction = call.begin().await?;
    let (config, new) = (&call.config.tasks, question.as_new());
    let added = tasks::add(&mut transaction, config, &new, call.clock.now()).await?;
    transaction.commit().await?;
    Ok(added)
}
