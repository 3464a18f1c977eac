//! A durable job queue on Postgres, with serial lanes, leases and fenced ends, run by apalis.
//!
//! ```text
//!                 enqueue
//!                    │
//!        later ┌─────┴──────┐ lane has a head
//!              ▼            ▼
//!         scheduled      blocked ◀──── give back (in a lane)
//!              │            │ head ended: next in line
//!          due └────▶ ready ◀┘◀── release ── held (for a person)
//!                       │ claim: new lease, attempt + 1        ▲
//!                       ▼                                      │ died, lane's policy is hold
//!                    running ──▶ done · cancelled · dead ──────┘
//!                       │
//!                       └──▶ scheduled: retry · snooze · crash
//! ```
//!
//! # Invariants
//!
//! 1. At most one job of a lane is past `blocked`, and lanes run in the order in which enqueues committed.
//! 2. Every claim has a new lease. A write of a run that does not hold the current lease changes nothing.
//! 3. A worker claims exactly as many jobs as it has free slots. A slot is free when the end of its job is acknowledged.
//! 4. Leases are measured by the clock of the database alone; waiting in this process by its own monotonic clock.
//! 5. No error of the database ends a worker; no error, panic or payload of a job does either.
//! 6. A drain, a snooze, a lost claim, an interruption and a lost database use up no attempt.
//!
//! # Races and their outcome
//!
//! - *A run ends while its worker is declared lost*: the lock of the row decides. The later statement finds another
//!   lease or state.
//! - *A handler's commit is not confirmed*: the retry written next carries the same lease. If the commit happened, the
//!   job is gone and the retry finds nothing.
//! - *The answer to a claim is lost*: the claimer compares the jobs that the database assigns to this worker with those
//!   it runs. It gives back the others.
//! - *The lease cannot be renewed*: the worker stops its runs before the lease can expire, and claims nothing.
//! - *A cancellation comes while the handler returns*: the result of the handler counts.
//! - *A signal comes while another transaction has locked the waiting job*: the signal skips the job, because the
//!   signalling transaction must not wait. The sender has to look for skipped jobs itself.
//! - *A job becomes ready just before a worker goes to sleep*: the worker sets its waiting flag and looks twice more;
//!   see the claimer.
//!
//! The queue knows nothing of the contents of its jobs.

pub mod admin;
mod backend;
mod claimer;
mod completer;
mod config;
mod crash_points;
mod ends;
mod enqueue;
mod erase;
mod error;
mod fault;
mod heartbeat;
mod holds;
mod jitter;
mod job;
mod link;
mod registry;
mod retention;
mod run;
mod runner;
mod slots;
mod telemetry;
mod upkeep;
mod wakeup;
mod worker;

pub use config::{Config, Invalid};
#[cfg(feature = "test-fakes")]
pub use crash_points::CrashPoint;
pub use enqueue::{
    EnqueueResult, JobData, Options, enqueue, enqueue_many, enqueue_named, enqueue_unless_waiting,
    enqueue_waiting, jobs_of_keys, taken_keys,
};
pub use erase::{
    ErasedCounts, cancel_all, delete_group_traces, forget_dead, forget_keys, has_group_jobs,
    ids_of_group, release_held_lanes,
};
pub use error::Error;
pub use fault::{
    Fault, LOST_STATEMENT, fault_of, is_lost_statement, is_outage, is_unavailable, sqlx_error,
};
pub use holds::{check_and_lock_lease, is_run_by};
pub use job::{
    Backoff, BoxError, Decision, End, HandlerResult, HoldUntil, Job, JobError, LaneFailure, Policy,
    WaitCause,
};
pub use registry::Registry;
pub use retention::Keep;
pub use run::{CommitError, CommitProof, Run, Stop};
pub use telemetry::{CLEANUP_ROWS_DELETED, METRICS};
pub use wakeup::Notices;
pub use worker::{Connections, Error as WorkerError, Identity, run as run_worker};
