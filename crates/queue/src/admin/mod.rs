//! Views of the queue, and the actions that people take on it.
//!
//! It serves people and programs outside a run. No function counts the rows of the jobs table: numbers come from the
//! counters that every change of state updates in its own transaction.

mod activity;
mod explain;
mod health;
mod jobs;
mod lanes;
mod queues;
mod waits;
mod words;
mod workers;

pub use activity::{
    ActivitySpan, RunMinute, WorkerLoad, WorkerRun, outcome_words, running_jobs, runs_by_minute,
    worker_loads, worker_runs,
};
pub use explain::{Cause, Explanation, HoldOf, RunningHead, explain, explain_alone, running_head};
pub use health::{Health, health, notifications_arrive};
pub use jobs::{
    CancelOutcome, GoneJob, JobDetail, JobFilter, JobSummary, PresentRun, RunRecord, cancel_job,
    cancel_jobs, change_priority, find_job, hold_job, list_ended_jobs, list_jobs, release_held,
    release_job, retry_job, runs_of, wake_snoozed,
};
pub use lanes::{
    HeldLane, LaneMember, LaneView, find_lane, held_lanes, hold_lane, list_lanes, release_lane,
};
pub use queues::{
    Pause, PauseScope, QueueView, count_waiting, find_pause, find_queue, list_queues, pause,
    pause_reason, resume,
};
pub use waits::{HeldCount, MAX_COUNTED, WaitCount, WaitReason, count_held, count_waits};
pub use workers::{WorkerView, holder, list_workers};
