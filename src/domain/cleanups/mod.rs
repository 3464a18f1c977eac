//! Cleanups: the removal of expired rows, and the record of each run.
//!
//! A session is removed with its messages, turns, summaries, manifests and stored transcript: an open one when it has expired, a closed one
//! some time after its closing. A [summary](super::session_summaries) of an expired session is kept for its successor. Its ledger entries,
//! tasks, campaign and events stay.
//!
//! Old posts of boards are archived, not removed (`boards.rs`).
//!
//! Invariants: a session is never removed while it runs, while a task waits for it, or if it was used meanwhile. This is checked under the
//! session's lock, in the transaction that removes it. The preview and the removal follow the same [`Walk`], so that the preview names what
//! the removal removes.
//!
//! Races: a turn that begins has its session locked, and a cleanup skips locked sessions. A turn that comes later waits for the end of the
//! batch, finds no session and begins a new one, as after any expiry.

mod boards;
mod preview;
mod record;
mod remove;
mod request;
mod walk;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub(super) use self::remove::{limit_ids, remove_sessions};
pub use self::{
    boards::{BoardRules, DuePosts, archive_board, due_boards},
    preview::{Group, KeepDays, Preview, UNCOUNTED, preview},
    record::{
        CleanupRun, Progress, RunRow, advance, begin, cancel, finish, is_overdue, last_success,
        list, record_removed_folders,
    },
    remove::{Batch, RemovedMemory, remove, remove_events, remove_memory, remove_summaries},
    request::{Cleanup, LANE, request},
    walk::{Page, Walk},
};
use super::sessions::{DueReason, DueSession};

/// The reason why a session is kept although it is due.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum KeepReason {
    /// A turn of it is running.
    Running,
    /// A task of its conversation has not ended.
    TaskWaiting,
    /// Another transaction had it locked, or it was used after the first check.
    InUse,
}

/// Numbers of kept sessions, by reason.
pub type KeptCounts = BTreeMap<KeepReason, i64>;

/// Number of removed sessions of one provider, for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemovedCount {
    pub provider: String,
    pub because: DueReason,
    pub sessions: i64,
}

/// Groups sessions by provider and reason.
pub(super) fn group(sessions: &[DueSession]) -> BTreeMap<(String, DueReason), Vec<&DueSession>> {
    let mut groups: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for session in sessions {
        groups.entry((session.provider.clone(), session.because())).or_default().push(session);
    }
    groups
}
