//! Cleanups: what goes when its time is over, and the record of each.
//!
//! A session goes with its messages, turns, summaries, manifests and stored transcript: an open one when it has expired,
//! a closed one some time after. Of an expired one a [summary](super::session_summaries) is kept for its successor. What it cost, the tasks, the campaign and the feed stay.
//!
//! Invariants: what runs, what somebody waits for, and what was used meanwhile is never removed. Whether one of that holds is
//! looked up under the lock of the session, in the transaction that removes it. The preview and the removal walk along the
//! same [`Walk`], so the one says what the other does.
//!
//! Races: a turn that begins has its session locked, and whoever removes does not wait but passes it over. A turn that comes
//! later waits for the end of a batch, finds no session and begins a new one, as it would after an expiry long ago.

mod preview;
mod record;
mod remove;
mod request;
mod walk;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub(super) use self::remove::{fitting_ids, take_out};
pub use self::{
    preview::{Group, KeepDays, Preview, preview},
    record::{
        CleanupRun, Progress, Recorded, advance, begin, cancel, finish, folders_removed,
        last_success, list,
    },
    remove::{Batch, RemovedMemory, remove, remove_events, remove_memory, remove_summaries},
    request::{LANE, Purge, request},
    walk::{Page, Walk},
};
use super::sessions::{Because, Due};

/// Why a session is kept although its time is over.
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
pub enum Kept {
    /// A turn is in it.
    Running,
    /// A task of its conversation has not ended.
    TaskWaiting,
    /// Somebody had it in hand, or used it since it was looked at.
    InUse,
}

/// How many sessions are kept, by reason.
pub type KeptCounts = BTreeMap<Kept, i64>;

/// Removed sessions of one provider that went for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Removed {
    pub provider: String,
    pub because: Because,
    pub sessions: i64,
}

/// Sessions by provider and reason.
pub(super) fn group(sessions: &[Due]) -> BTreeMap<(String, Because), Vec<&Due>> {
    let mut groups: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for session in sessions {
        groups.entry((session.provider.clone(), session.because())).or_default().push(session);
    }
    groups
}
