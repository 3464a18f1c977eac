//! Folds older conversation of a session into a summary, without holding up its turns.
//!
//! ```text
//! prepare   view ─▶ plan ─▶ ask · judge · ask again … ─▶ stored as prepared, or as refused with its reasons
//! apply     the newest that is prepared and still continues the view is shown, in the caller's transaction
//! ```
//!
//! Of a session that stands at a node, what was said there is folded, and `place.rs` says where that is.
//!
//! Invariants:
//! - No transaction is open while a summariser runs. What it cost is in the ledger before its answer is judged, and
//!   an attempt is counted before it is made: a crash gives neither back.
//! - Messages are never touched. What is shown changes in [`apply`] alone.
//! - Whatever a summariser does, no more than three attempts are made in ten turns. Once they are used up, a compaction
//!   that can wait ends at once; one that a turn cannot go on without takes the deterministic extract.
//!
//! - One run at a time makes a summary of a session (`claim.rs`). A turn waits for the job that prepares one ahead, or takes
//!   over from one that crashed; the job leaves it to the turn.
//!
//! Race: a turn that runs meanwhile only adds to the tail, which a prepared summary does not cover.

mod answer;
mod attempts;
mod claim;
mod error;
mod fold;
mod foldable;
pub(super) mod job;
mod place;
mod prepare;
pub(super) mod setup;
mod store;
mod view;

use sqlx::{PgConnection, PgPool};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

pub use self::{claim::Claimant, error::Error, job::compact, prepare::prepare, view::Loaded};
pub use crate::domain::compactions::{Cause, CompactSession, Shown};
use crate::{
    clock::Clock,
    context::{
        Calibration, Weight,
        compaction::{Policy, folding::RefusedAttempt, ladder::Rung},
    },
    domain::{
        agents::Catalogue, busy_models, compactions, prices::Cost, tasks::Task, usage::Tokens,
    },
    providers::{Provider, Timeouts},
};

/// Everything that a fold needs beside rows.
#[derive(Clone, Copy)]
pub struct Folder<'a> {
    pub pool: &'a PgPool,
    pub clock: &'a dyn Clock,
    pub cancel: &'a CancellationToken,
    /// The run that asks.
    pub claimant: Claimant,
    /// The task whose turn waits for it. It pays, within its own budget; `None`: only the campaign does.
    pub waiting: Option<&'a Task>,
    /// The node that this one belongs to, if it belongs to one.
    pub waiting_node: Option<&'a str>,
    /// For the names of roles.
    pub catalogue: &'a Catalogue,
    /// The session's own; its model is the first summariser.
    pub provider: &'a dyn Provider,
    /// Another model of the same provider, from the agent's file.
    pub alternate_model: Option<&'a str>,
    /// What the session's calls have.
    pub window_tokens: u64,
    pub reserve_tokens: u64,
    /// The narrowest window of the summarisers.
    pub summariser_window_tokens: u64,
    /// Of the system part, which no compaction makes smaller.
    pub system_weight: Weight,
    /// What the coming turn adds to what is in the transcript already.
    pub upcoming_weight: Weight,
    pub policy: Policy,
    pub timeouts: Timeouts,
    /// Of a session that has learnt nothing yet.
    pub calibration: Calibration,
    /// What tokens of a model of this provider cost.
    pub cost: &'a (dyn Fn(&str, Tokens) -> Cost + Sync),
    /// How long to leave a busy provider alone.
    pub busy: busy_models::Config,
}

/// A compaction that only has to be applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prepared {
    pub generation: i32,
    pub rung: Option<Rung>,
    pub tokens_before: i64,
    pub tokens_after: i64,
    /// What was refused on the way.
    pub refused: Vec<RefusedAttempt>,
    /// Strings that looked worth pinning but found no place in the ledger of pins.
    pub pins_dropped: usize,
    /// An earlier call had prepared it.
    pub is_earlier: bool,
}

/// Shows what is prepared, if it still continues what the session shows. The caller commits.
pub async fn apply(
    conn: &mut PgConnection,
    clock: &dyn Clock,
    session_id: Uuid,
) -> Result<Shown, Error> {
    Ok(compactions::apply_newest(conn, session_id, clock.now()).await?)
}
