//! A small sequential model of the queue: jobs, lanes, workers and one open transaction of an application.
//!
//! The model decides everything that the schema promises to decide. It learns the rest (ids, leases, exact times) from
//! the database's answers. Rules for claims are in `claims`, moves of lanes in `lanes`, ends of runs in `ends`, lost
//! workers in `rescue`, actions of people in `people`, the open transaction in `open`, and waits for signals in
//! `signals`.

mod admin;
mod claims;
mod ends;
mod lanes;
mod open_transaction;
mod rescue;
mod signals;

use std::collections::{BTreeMap, BTreeSet};

use uuid::Uuid;

pub use self::{
    claims::{ClaimRow, payload_of},
    open_transaction::OpenTransaction,
};

/// Lanes, queues and groups of the test, named by their index here.
pub const LANES: [&str; 3] = ["lane-a", "lane-b", "lane-c"];
pub const QUEUES: [&str; 2] = ["default", "other"];
pub const GROUPS: [&str; 2] = ["group-a", "group-b"];
/// Kind with a handler, and kind without one.
pub const KNOWN: &str = "known";
pub const UNKNOWN: &str = "unknown";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// The word is its wait reason.
    Scheduled(&'static str),
    Ready,
    Blocked,
    Held,
    Running {
        lease: i64,
        worker: Uuid,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    pub spec: Spec,
    /// Place in its lane.
    pub place: Option<i64>,
    pub state: State,
    pub attempt: i16,
    pub crash_count: i16,
    /// `person` or `failure`.
    pub hold_by: Option<&'static str>,
    /// True if it is scheduled and its time has come.
    pub due: bool,
    /// Microseconds since 1970, from the database: the order of claims.
    pub run_at: i64,
}

/// The arguments with which a job was enqueued.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    pub lane: Option<usize>,
    pub queue: usize,
    pub group: Option<usize>,
    pub priority: i16,
    pub max_attempts: i16,
    pub known: bool,
    pub later: bool,
    /// One of a few keys, so that they meet.
    pub key: Option<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadJob {
    pub spec: Spec,
    pub attempt: i16,
    pub crash_count: i16,
    pub lease: i64,
    pub reason: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Lane {
    /// True if the lane has a row.
    pub exists: bool,
    /// The place after the last one assigned, from 0.
    pub n_places: i64,
    pub held: bool,
    pub hold_on_failure: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worker {
    pub id: Uuid,
    /// True if its lease has not expired.
    pub leased: bool,
    pub draining: bool,
    /// True if it has renewed for a whole lease.
    pub seasoned: bool,
    /// `stopped` or `lost`.
    pub gone: Option<&'static str>,
}

#[derive(Debug, Clone, Default)]
pub struct Model {
    pub jobs: BTreeMap<i64, Job>,
    pub dead: BTreeMap<i64, DeadJob>,
    /// Ended jobs, with `done` or `cancelled`.
    pub ended: BTreeMap<i64, &'static str>,
    /// Outcomes in the order of the runs, with their leases; 0 for a job that never ran.
    pub runs: BTreeMap<i64, Vec<(i64, &'static str)>>,
    pub lanes: [Lane; LANES.len()],
    /// Lanes that are owed a promotion.
    pub owed: BTreeSet<usize>,
    /// All incarnations, the latest of a process last.
    pub workers: Vec<Worker>,
    pub paused: BTreeSet<&'static str>,
    pub requests: BTreeSet<i64>,
    pub keys: BTreeMap<u8, (i64, Option<usize>, bool)>,
    pub last_lease: i64,
    pub open: Option<OpenTransaction>,
}

impl Spec {
    pub fn kind(&self) -> &'static str {
        if self.known { KNOWN } else { UNKNOWN }
    }
}

impl Worker {
    /// Returns true if it may claim.
    pub fn serves(&self) -> bool {
        self.leased && !self.draining && self.gone.is_none()
    }
}

impl Model {
    /// Returns the state and place of a new job of this lane. The caller holds the lane.
    fn join(&mut self, lane: usize) -> (State, i64) {
        let row = &mut self.lanes[lane];
        row.exists = true;
        row.n_places += 1;
        let (place, held) = (row.n_places, row.held);
        let alone =
            !self.jobs.values().any(|job| job.spec.lane == Some(lane) && job.place.is_some());
        (if alone && !held { State::Ready } else { State::Blocked }, place)
    }

    /// Adds a job like `dalsegno.enqueue`.
    pub fn enqueue(&mut self, id: i64, spec: &Spec) {
        let (mut state, mut place) = (State::Ready, None);
        if spec.later {
            state = State::Scheduled("later");
        }
        if let Some(lane) = spec.lane {
            self.lanes[lane].exists = true;
            if !spec.later {
                let (born, joined) = self.join(lane);
                (state, place) = (born, Some(joined));
            }
        }
        if let Some(key) = spec.key {
            self.keys.insert(key, (id, spec.lane, spec.known));
        }
        let job = Job {
            spec: spec.clone(),
            place,
            state,
            attempt: 0,
            crash_count: 0,
            hold_by: None,
            due: false,
            run_at: 0,
        };
        self.jobs.insert(id, job);
    }

    /// Returns the state of a job, as `dalsegno.enqueue` names it for a repeated key.
    pub fn state_of(&self, id: i64) -> &'static str {
        match (self.jobs.get(&id), self.dead.contains_key(&id), self.ended.contains_key(&id)) {
            (Some(job), ..) => job.state.word(),
            (None, true, _) => "dead",
            (None, false, true) => "ended",
            (None, false, false) => "unknown",
        }
    }

    /// Returns all ids of committed jobs so far; live ones come first.
    pub fn known_ids(&self) -> Vec<i64> {
        let live = self.jobs.keys().chain(self.dead.keys());
        live.chain(self.ended.keys()).copied().collect()
    }

    pub fn running(&self) -> Vec<(i64, i64)> {
        let lease = |job: &Job| match job.state {
            State::Running { lease, .. } => Some(lease),
            _ => None,
        };
        self.jobs.iter().filter_map(|(id, job)| Some((*id, lease(job)?))).collect()
    }

    pub fn record(&mut self, id: i64, lease: i64, outcome: &'static str) {
        self.runs.entry(id).or_default().push((lease, outcome));
    }
}

impl State {
    pub fn word(self) -> &'static str {
        match self {
            Self::Scheduled(_) => "scheduled",
            Self::Ready => "ready",
            Self::Blocked => "blocked",
            Self::Held => "held",
            Self::Running { .. } => "running",
        }
    }
}
