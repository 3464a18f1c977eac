//! Tasks that are asked for at the same moment are written in one transaction.
//!
//! Most of what it costs to add one task is its transaction: the way to the database and back, what Postgres makes ready anew for
//! each, the commit on disk. A request that comes while a writer is free is written at once, alone. What comes while
//! all are busy is written together by the next one that becomes free.
//!
//! Nobody pays for somebody else's request. Where one of several is refused, or has to wait for a transaction of another
//! system that holds its conversation, nothing of them is written; then those of each conversation are written together, and
//! where that fails, too, each alone, and gets its own answer. Such a one waits a moment for the other system, has a place among
//! those that wait, and is told to come again if that was not enough. Only then: where the database was not heard, all of them may have been written, and each is told that it is not known. A panic while
//! they are written is told in the same way, and its writer goes on with the next ones.

use std::{
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use chrono::{DateTime, Utc};
use futures_util::FutureExt as _;
use tokio::sync::oneshot;
use uuid::Uuid;

use super::{Problem, transaction::begin};
use crate::{
    app::App,
    causes::causes,
    domain::{
        agents::SessionMode as Mode,
        agents::{Agent, Node},
        amount::Limit,
        tasks::{self, Added, After, Links, OnFailure},
        transaction::connection,
    },
};

/// One waits for the disk while the other one writes; more would only make the groups smaller.
const WRITERS: usize = 2;
/// Bounds what one transaction holds, and how long those wait who came first.
const TOGETHER: usize = 32;

#[derive(Debug, Clone, Default)]
pub(super) struct Intake(Arc<Mutex<State>>);

/// A task as a request asks for it.
#[derive(Debug)]
pub(super) struct Asked {
    pub campaign_id: Uuid,
    pub agent: Arc<Agent>,
    pub instance: String,
    pub node: Option<Arc<Node>>,
    pub prompt: String,
    pub session: Option<Mode>,
    pub budget: Limit,
    pub idempotency_key: Option<String>,
    pub priority: Option<i32>,
    pub run_at: Option<DateTime<Utc>>,
    pub added_by: String,
    pub traceparent: Option<String>,
    pub depends_on: Vec<After>,
    pub on_failure: OnFailure,
    pub only_of: Option<String>,
}

#[derive(Debug, Default)]
struct State {
    waiting: Vec<Waiting>,
    n_writers: usize,
}

#[derive(Debug)]
struct Waiting {
    asked: Asked,
    answer: oneshot::Sender<Result<Added, Problem>>,
}

impl Intake {
    /// Adds a task. Where the caller goes away meanwhile, it is added all the same, or was never begun.
    pub(super) async fn add(&self, app: &App, asked: Asked) -> Result<Added, Problem> {
        if !asked.depends_on.is_empty() || asked.node.is_some() {
            return add_alone(app, &asked).await;
        }
        let (answer, answered) = oneshot::channel();
        if self.is_writer_wanted(Waiting { asked, answer }) {
            tokio::spawn(self.clone().write(app.clone()));
        }
        answered.await.unwrap_or_else(|_| {
            let detail = "the task may not have been added, because its writer has failed: ask again with the same Idempotency-Key; \
                          the log of the service says more";
            Err(Problem::unavailable("internal", detail))
        })
    }

    fn is_writer_wanted(&self, waiting: Waiting) -> bool {
        let mut state = self.state();
        state.waiting.push(waiting);
        let is_wanted = state.n_writers < WRITERS;
        state.n_writers += usize::from(is_wanted);
        is_wanted
    }

    async fn write(self, app: App) {
        while let Some(together) = self.next() {
            // A panic ends neither the writer nor the count of writers. Those who asked are told when their senders are dropped.
            if AssertUnwindSafe(write_together(&app, together)).catch_unwind().await.is_err() {
                tracing::error!("a panic has ended the addition of tasks");
            }
        }
    }

    /// `None`: nobody waits, and the writer is counted no more. Both under one lock, so that nobody is left behind.
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

impl Asked {
    fn as_new(&self) -> tasks::New<'_> {
        tasks::New {
            campaign_id: self.campaign_id,
            agent: &self.agent,
            instance: &self.instance,
            node: self.node.as_deref(),
            prompt: &self.prompt,
            session_mode: self.session,
            budget: self.budget,
            idempotency_key: self.idempotency_key.as_deref(),
            priority: self.priority,
            run_at: self.run_at,
            added_by: Some(&self.added_by),
            traceparent: self.traceparent.as_deref(),
            links: Links {
                depends_on: &self.depends_on,
                on_failure: self.on_failure,
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
    fn tell(self, added: Result<Added, Problem>) {
        // Whoever asked may have gone.
        let _ = self.answer.send(added);
    }
}

async fn write_together(app: &App, mut together: Vec<Waiting>) {
    // Everybody takes the conversations in the same order, so that two writers do not wait for each other in a circle.
    together.sort_by(|one, other| one.asked.conversation().cmp(&other.asked.conversation()));
    let left = try_together(app, together).await;
    let conversations = by_conversation(left);
    let is_one = conversations.len() == 1;
    // Not by this writer: one of them may have to wait for a transaction of another system.
    for together in conversations {
        let app = app.clone();
        tokio::spawn(async move {
            let left = if is_one { together } else { try_together(&app, together).await };
            for waiting in left {
                tokio::spawn(write_alone(app.clone(), waiting));
            }
        });
    }
}

/// Gives back those that have to be written in smaller groups.
async fn try_together(app: &App, together: Vec<Waiting>) -> Vec<Waiting> {
    match add_together(app, &together).await {
        Ok(added) => {
            for (waiting, added) in together.into_iter().zip(added) {
                waiting.tell(added.map_err(Problem::from));
            }
            Vec::new()
        }
        Err(error) if error.has_written_nothing() => {
            let error = causes(&error);
            tracing::debug!(n_tasks = together.len(), error, "tasks are added in smaller groups");
            together
        }
        Err(error) => {
            let problem = Problem::from(error);
            for waiting in together {
                waiting.tell(Err(problem.clone()));
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
            group.iter().all(|one| one.asked.conversation() == waiting.asked.conversation())
        };
        match groups.last_mut().filter(is_same) {
            Some(group) => group.push(waiting),
            None => groups.push(vec![waiting]),
        }
    }
    groups
}

async fn write_alone(app: App, waiting: Waiting) {
    let added = add_alone(&app, &waiting.asked).await;
    waiting.tell(added);
}

async fn add_together(
    app: &App,
    together: &[Waiting],
) -> Result<Vec<Result<Added, tasks::Error>>, tasks::Error> {
    let news: Vec<tasks::New<'_>> = together.iter().map(|waiting| waiting.asked.as_new()).collect();
    let mut conn = connection(&app.pool).await?;
    tasks::add_together(&mut conn, &app.config.tasks, &news, app.clock.now()).await
}

/// For one that waits for others, or belongs to a node, too: that takes several statements.
async fn add_alone(app: &App, asked: &Asked) -> Result<Added, Problem> {
    let mut tx = begin(app).await?;
    let added = tasks::add(&mut tx, &app.config.tasks, &asked.as_new(), app.clock.now()).await?;
    tx.commit().await?;
    Ok(added)
}
