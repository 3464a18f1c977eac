//! The surroundings of one call of an operation.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use sqlx::{PgPool, Postgres, Transaction};

use super::{
    Admission, Intake, Limits, OpenTransaction, Reach, Refusal, Room, SeveralTransactions, Waits,
    begin, begin_beside, begin_read, begin_several,
};
use crate::{
    app::Sections,
    clock::Clock,
    domain::{
        Failed,
        agents::{Catalogue, Problems},
        audit::Actor,
    },
    tools::Meanings,
    traces::{self, Traces},
};

/// Loads the agents when an operation asks for them: most do not.
pub type Agents = dyn Fn() -> Result<Arc<Catalogue>, Problems> + Send + Sync;

/// Everything that an operation needs beside its input.
#[derive(Clone)]
pub struct Call {
    pub pool: PgPool,
    pub config: Arc<Sections>,
    pub agents: Arc<Agents>,
    /// The vectors of questions.
    pub meanings: Arc<Meanings>,
    /// The one moment of the call, but for what is written later for several calls.
    pub now: DateTime<Utc>,
    pub clock: Arc<dyn Clock>,
    /// The caller, as the audit log names it.
    pub actor: Actor,
    /// The campaigns and tasks that the caller may name. Ids in paths are checked by the adapter; lists are filtered by the operation.
    pub reach: Reach,
    /// `None`: the caller is a command, which may wait as long as a person likes.
    pub limits: Option<Limits>,
    /// `None`: as for `limits`.
    pub waits: Option<Arc<Waits>>,
    pub admission: Admission,
    pub intake: Intake,
    pub idempotency_key: Option<String>,
    pub traces: Traces,
    /// The trace that the caller says the call belongs to.
    pub trace: Option<traces::Context>,
}

impl Call {
    pub async fn begin(&self) -> Result<OpenTransaction, Refusal> {
        begin(&self.pool, self.limits.as_ref()).await
    }

    /// For a call that takes several transactions, one after the other.
    pub async fn begin_several(&self) -> Result<SeveralTransactions, Refusal> {
        begin_several(&self.pool, self.limits.as_ref()).await
    }

    /// For an idempotency key beside several transactions, which are those of the call that this gives.
    pub async fn begin_beside(&self) -> Result<(OpenTransaction, Self), Refusal> {
        let (beside, limits) = begin_beside(&self.pool, self.limits.as_ref()).await?;
        Ok((beside, Self { limits, ..self.clone() }))
    }

    /// For a read that takes no locks.
    pub async fn begin_read(&self) -> Result<Transaction<'static, Postgres>, Failed> {
        begin_read(&self.pool, self.limits.as_ref()).await
    }

    /// Room on the queue for tasks that are about to be added. Commands are not held to its limit.
    pub async fn admit(&self, n_tasks: u64) -> Result<Room, Refusal> {
        let limit = if self.limits.is_some() { self.config.max_waiting } else { 0 };
        self.admission.admit(&self.pool, limit, n_tasks).await
    }

    pub fn catalogue(&self) -> Result<Arc<Catalogue>, Problems> {
        (self.agents)()
    }
}
