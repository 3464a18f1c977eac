//! Folds older messages of a session into a summary, without blocking its turns.
//!
//! ```text
//! prepare   view ─▶ plan ─▶ ask · judge · ask again … ─▶ stored as prepared, or as refused with its reasons
//! apply     the newest prepared one that still continues the view is shown, in the caller's transaction
//! ```
//!
//! In a session that is at a node, only messages of that node are summarised (`node_context.rs`).
//!
//! Invariants:
//! - No transaction is open while a summariser runs. Its cost is in the ledger before its answer is judged, and an
//!   attempt is counted before it is made: a crash returns neither.
//! - Messages never change. Only [`apply`] changes which of them are shown.
//! - At most three attempts are made in ten turns, with any summariser. After them, a compaction that can wait ends at
//!   once; one that a turn needs takes the deterministic extract.
//! - One run at a time makes a summary of a session (`claim.rs`). A turn waits for the job that prepares one ahead, or
//!   takes over from a crashed run. A job that prepares ahead leaves it to the other run.
//!
//! Race: a turn that runs meanwhile only adds to the tail, which a prepared summary does not cover. What it has written by then, its
//! prompt for example, stays there, too (`foldable.rs`).

mod answer;
mod attempts;
mod claim;
mod error;
mod fold;
mod foldable;
pub(super) mod job;
mod node_context;
mod outline;
mod prepare;
pub(super) mod setup;
mod store;
mod view;

use std::sync::Arc;

use sqlx::{PgConnection, PgPool};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

pub use self::{
    claim::Claimant,
    error::Error,
    job::compact,
    node_context::NodeReader,
    outline::{Outline, OutlineParams, outline},
    prepare::prepare,
    view::LoadedView,
};
pub use crate::domain::compactions::{Cause, CompactSession, ShowOutcome};
use crate::{
    clock::Clock,
    context::{
        Calibration, Weight,
        compaction::{Policy, folding::RefusedAttempt, ladder::CompactionStep},
    },
    domain::{
        agents::Catalogue, busy_models, compactions, prices::Cost, tasks::Task, usage::Tokens,
    },
    jobs::rate_limits::RateLimits,
    providers::{Provider, Timeouts},
};

/// The setting of a fold: everything that it needs beside rows.
#[derive(Clone, Copy)]
pub struct Folder<'a> {
    pub pool: &'a PgPool,
    pub clock: &'a dyn Clock,
    pub cancel: &'a CancellationToken,
    /// The run that makes the summary.
    pub claimant: Claimant,
    /// The task whose turn waits for the summary. It pays, within its own budget. `None`: only the campaign pays.
    pub waiting: Option<&'a Task>,
    /// The node of the waiting task, if it names one.
    pub waiting_node: Option<&'a str>,
    /// Source of the names of roles.
    pub catalogue: &'a Catalogue,
    /// The session's provider. The session's model is the first summariser.
    pub provider: &'a dyn Provider,
    /// Another model of the same provider, from the agent's file.
    pub alternate_model: Option<&'a str>,
    /// Window of the session's calls.
    pub window_tokens: u64,
    pub reserve_tokens: u64,
    /// The narrowest window of the summarisers.
    pub summariser_window_tokens: u64,
    /// Weight of the system part, which a compaction cannot shrink.
    pub system_weight: Weight,
    /// Weight that the coming turn adds to the transcript.
    pub upcoming_weight: Weight,
    pub policy: Policy,
    pub timeouts: Timeouts,
    /// Calibration for a session without one of its own.
    pub calibration: Calibration,
    /// Computes the cost of tokens of one of the provider's models.
    pub cost: &'a (dyn Fn(&str, Tokens) -> Cost + Sync),
    /// Settings of the backoff while the provider is busy.
    pub busy: busy_models::Config,
    pub rate_limits: &'a Arc<RateLimits>,
}

/// A compaction that is ready to be applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreparedCompaction {
    pub generation: i32,
    pub rung: Option<CompactionStep>,
    pub tokens_before: i64,
    pub tokens_after: i64,
    /// Attempts that were refused before.
    pub refused: Vec<RefusedAttempt>,
    /// Number of strings that were worth pinning but did not fit into the ledger of pins.
    pub pins_dropped: usize,
    /// True if an earlier run has prepared it.
    pub is_earlier: bool,
}

/// Applies the newest prepared compaction, if it still continues the session's view. The caller commits.
pub async fn apply(
    conn: &mut PgConnection,
    clock: &dyn Clock,
    session_id: Uuid,
) -> Result<ShowOutcome, Error> {
    Ok(compactions::apply_newest(conn, session_id, clock.now()).await?)
}
