//! The context of one call of an operation.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use sqlx::{PgPool, Postgres, Transaction};

use super::{
    Admission, Intake, Limits, OpenTransaction, QueueReservation, Reach, Refusal, Scan,
    SeveralTransactions, Waits, begin, begin_alongside, begin_read, begin_scan, begin_several,
};
use crate::{
    app::Sections,
    clock::Clock,
    domain::{
        StatementError,
        agents::{Catalogue, Problems},
        audit::Actor,
        context_previews::Previews,
        findings::Examination,
        reruns::RerunRoutes,
        transaction::begin_search,
    },
    tools::Meanings,
    traces::{self, Traces},
};

/// Loads the agents on demand, because most operations do not need them.
pub type Agents = dyn Fn() -> Result<Arc<Catalogue>, Problems> + Send + Sync;

/// Everything that an operation needs besides its input.
#[derive(Clone)]
pub struct Call {
    pub pool: PgPool,
    pub config: Arc<Sections>,
    pub agents: Arc<Agents>,
    /// Drafts of turns that are not run.
    pub previews: Previews,
    /// Routes of calls that are made again.
    pub rerun_routes: RerunRoutes,
    /// The checks of `dalsegno doctor`, for this process.
    pub examination: Examination,
    /// Embeddings of search queries.
    pub meanings: Arc<Meanings>,
    /// Time of the call. Writes that combine several calls read the clock instead.
    pub now: DateTime<Utc>,
    pub clock: Arc<dyn Clock>,
    /// Caller, as named in the audit log.
    pub actor: Actor,
    /// Campaigns and tasks that the caller may name. The adapter checks ids in paths; the operation filters lists.
    pub reach: Reach,
    /// `None`: the caller is a command, which has no time limit.
    pub limits: Option<Limits>,
    /// `None` for commands, like `limits`.
    pub waits: Option<Arc<Waits>>,
    pub admission: Admission,
    pub intake: Intake,
    pub idempotency_key: Option<String>,
    pub traces: Traces,
    /// Trace context that the caller has sent.
    pub trace: Option<traces::Context>,
}

impl Call {
    pub async fn begin(&self) -> Result<OpenTransaction, Refusal> {
        begin(&self.pool, self.limits.as_ref()).await
    }

    /// Begins a call of several transactions, one after the other.
    pub async fn begin_several(&self) -> Result<SeveralTransactions, Refusal> {
        begin_several(&self.pool, self.limits.as_ref()).await
    }

    /// For an idempotency key beside several transactions, which are those of the call that this gives.
    pub async fn begin_alongside(&self) -> Result<(OpenTransaction, Self), Refusal> {
        let (beside, limits) = begin_alongside(&self.pool, self.limits.as_ref()).await?;
        Ok((beside, Self { limits, ..self.clone() }))
    }

    /// Begins a transaction for a read without locks.
    pub async fn begin_read(&self) -> Result<Transaction<'static, Postgres>, StatementError> {
        begin_read(&self.pool, self.limits.as_ref()).await
    }

    /// As [`Self::begin_read`], for statements with optional conditions.
    pub async fn begin_search(&self) -> Result<Transaction<'static, Postgres>, StatementError> {
        begin_search(&self.pool, self.limits.as_ref().map(|limits| limits.longest)).await
    }

    /// Begins a read that scans a whole table.
    pub async fn begin_scan(&self) -> Result<Scan, Refusal> {
        begin_scan(&self.pool, self.limits.as_ref()).await
    }

    /// Reserves space in the queue for tasks that are about to be added. Commands are exempt from the limit.
    pub async fn admit(&self, n_tasks: u64) -> Result<QueueReservation, Refusal> {
        let limit = if self.limits.is_some() { self.config.max_waiting } else { 0 };
        self.admission.admit(&self.pool, limit, n_tasks).await
    }

    pub fn catalogue(&self) -> Result<Arc<Catalogue>, Problems> {
        (self.agents)()
    }
}
