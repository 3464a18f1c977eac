//! The claimer's state from claim to claim.

use tokio::time::Instant;
use uuid::Uuid;

use super::{super::registry::Handlers, floor::Floor, group_ring::GroupRing, recount::Recount};

pub(super) struct ClaimerState {
    /// Kinds that have a handler in this worker.
    pub(super) kinds: Vec<String>,
    pub(super) groups: GroupRing,
    pub(super) floor: Floor,
    pub(super) recount: Recount,
    /// Number of claims in a row that found nothing.
    pub(super) n_empty: usize,
    /// True if the last claim filled all slots, so that more jobs probably wait.
    pub(super) backlog: bool,
    /// Moment since when claims find jobs.
    pub(super) busy_since: Option<Instant>,
    /// Registration of this worker whose row carries the waiting flag.
    pub(super) flag_of: Option<Uuid>,
    /// Number of claims that found nothing since the flag was set.
    pub(super) n_looks: u32,
    /// True if the job claimed last may only run alone.
    pub(super) runs_alone: bool,
    pub(super) n_failures: u32,
}

/// The result of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClaimResult {
    Something,
    Nothing,
    /// Nothing above the floor, or nothing in the groups that were looked at. The next claim looks at the others.
    Unsure,
}

impl ClaimerState {
    pub(super) fn new(handlers: &Handlers) -> Self {
        Self {
            kinds: handlers.keys().map(|kind| (*kind).to_owned()).collect(),
            groups: GroupRing::default(),
            floor: Floor::default(),
            recount: Recount::new(Instant::now()),
            n_empty: 0,
            backlog: false,
            busy_since: None,
            flag_of: None,
            n_looks: 0,
            runs_alone: false,
            n_failures: 0,
        }
    }

    pub(super) fn record_claim(&mut self, n_claimed: u32, n_slots: u32) -> ClaimResult {
        self.n_failures = 0;
        self.backlog = n_claimed == n_slots;
        if n_claimed > 0 {
            self.n_empty = 0;
            self.busy_since.get_or_insert_with(Instant::now);
            return ClaimResult::Something;
        }
        if self.floor.had_floor() || self.groups.is_passing() {
            return ClaimResult::Unsure;
        }
        self.n_empty += 1;
        self.n_looks += 1;
        self.busy_since = None;
        ClaimResult::Nothing
    }

    pub(super) fn record_failure(&mut self) {
        self.n_failures += 1;
        self.backlog = false;
        self.recount.record_failure();
    }
}
