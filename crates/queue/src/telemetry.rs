//! The metrics of the queue. Labels are bounded: queues, kinds, outcomes, reasons; never a job, a lane or a campaign.

use std::{
    collections::{BTreeSet, HashMap},
    time::Duration,
};

use metrics::{
    Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram,
};

use super::{
    config::Config,
    ends::{Death, EndKind, REASONS},
    registry::Handlers,
    retention,
    run::Run,
    slots::Slot,
};

/// Outcomes of jobs that ended for good.
const OUTCOMES: [&str; 4] = ["ok", "failed", "dead", "cancelled"];
/// States of jobs that were taken from lost workers.
const RECLAIMED: [&str; 3] = ["scheduled", "held", "dead"];
const STATES: [&str; 5] = ["ready", "running", "scheduled", "blocked", "held"];

/// Describes the metrics and starts each with a value. An alert on a counter that appears with its first event misses that event.
pub(super) fn begin(config: &Config, handlers: &Handlers, is_listening: bool) {
    describe();
    let all: BTreeSet<&str> = handlers.values().map(|handler| handler.policy.queue).collect();
    all.into_iter().for_each(reset_queue);
    for (kind, handler) in handlers {
        let queue = handler.policy.queue;
        if !config.queues.iter().any(|own| own == queue) {
            continue;
        }
        for outcome in OUTCOMES {
            counter!("dalsegno_tasks_finished_total", "queue" => queue, "kind" => *kind, "outcome" => outcome)
                .increment(0);
        }
        for reason in REASONS {
            counter!("dalsegno_task_attempts_ended_total", "kind" => *kind, "reason" => reason)
                .increment(0);
        }
    }
    for state in RECLAIMED {
        counter!("dalsegno_reaper_reclaimed_total", "reason" => state).increment(0);
    }
    for table in retention::TABLES {
        record_deleted_rows(table, 0);
    }
    counter!("dalsegno_fenced_commits_rejected_total").increment(0);
    // Starts both gauges as if the lease had just been renewed and a notification had just come: their alerts measure the time since.
    record_renewal(config.lease());
    if is_listening {
        record_notification();
    }
    for name in HISTOGRAMS {
        drop(histogram!(name));
    }
}

const HISTOGRAMS: [&str; 3] = [
    "dalsegno_task_wait_seconds",
    "dalsegno_claim_duration_seconds",
    "dalsegno_commit_duration_seconds",
];

fn describe() {
    describe_gauge!("dalsegno_workers", "Live workers by queue.");
    describe_counter!("dalsegno_tasks_finished_total", "Jobs that ended for good, by outcome.");
    describe_counter!("dalsegno_task_attempts_ended_total", "Runs that ended, by reason.");
    describe_gauge!("dalsegno_tasks", "Live jobs by queue and state, from the counters.");
    describe_gauge!(
        "dalsegno_queue_oldest_ready_age_seconds",
        Unit::Seconds,
        "How long the oldest ready job has waited."
    );
    describe_histogram!("dalsegno_task_wait_seconds", Unit::Seconds, "From ready to claimed.");
    describe_histogram!("dalsegno_claim_duration_seconds", Unit::Seconds, "One claim, round trip.");
    describe_histogram!(
        "dalsegno_commit_duration_seconds",
        Unit::Seconds,
        "One batch of ends, round trip."
    );
    describe_counter!(
        "dalsegno_fenced_commits_rejected_total",
        "Ends that came too late: the lease was over."
    );
    describe_counter!(
        "dalsegno_reaper_reclaimed_total",
        "Jobs taken from lost workers, by what became of them."
    );
    describe_gauge!(
        "dalsegno_lease_margin_seconds",
        Unit::Seconds,
        "What was left of the lease at its last renewal."
    );
    describe_gauge!(
        "dalsegno_listener_last_ok_timestamp_seconds",
        Unit::Seconds,
        "When the listener was last known to hear."
    );
    describe_counter!("dalsegno_cleanup_rows_total", "Rows that retention removed, by table.");
    describe_gauge!(
        "dalsegno_cleanup_last_success_timestamp_seconds",
        Unit::Seconds,
        "When retention last succeeded."
    );
}

/// Records a claim. `waits` are the seconds that each job was ready.
pub(super) fn record_claim(took: Duration, waits: impl Iterator<Item = f64>) {
    histogram!("dalsegno_claim_duration_seconds").record(took.as_secs_f64());
    let wait = histogram!("dalsegno_task_wait_seconds");
    for secs in waits {
        wait.record(secs);
    }
}

/// Records an acknowledged batch of ends.
pub(super) fn record_ends_written(took: Duration) {
    histogram!("dalsegno_commit_duration_seconds").record(took.as_secs_f64());
}

/// Records jobs that ended as done; `n_held` of them still had their lease.
pub(super) fn record_done(slots: &[Slot], n_held: usize) {
    // One look-up per kind and batch: the recorder hashes all labels at each call.
    let mut by_kind: HashMap<(&str, &str), u64> = HashMap::new();
    for slot in slots {
        *by_kind.entry((slot.run.queue(), slot.run.kind())).or_default() += 1;
    }
    for ((queue, kind), n) in by_kind {
        let (queue, kind) = (queue.to_owned(), kind.to_owned());
        counter!("dalsegno_task_attempts_ended_total", "kind" => kind.clone(), "reason" => "ok")
            .increment(n);
        counter!("dalsegno_tasks_finished_total", "queue" => queue, "kind" => kind, "outcome" => "ok").increment(n);
    }
    record_rejected(slots.len().saturating_sub(n_held));
}

/// Records a run that ended in another way.
pub(super) fn record_end(run: &Run, ending: &EndKind, held: bool) {
    let kind = run.kind().to_owned();
    let reason = if held { ending.reason() } else { "lease_lost" };
    counter!("dalsegno_task_attempts_ended_total", "kind" => kind.clone(), "reason" => reason)
        .increment(1);
    if !held {
        return record_rejected(1);
    }
    let outcome = match ending {
        EndKind::Done | EndKind::Committed { .. } => "ok",
        EndKind::Fail { death: Death::Exhausted, .. } => "failed",
        EndKind::Fail { .. } => "dead",
        EndKind::Cancelled { .. } => "cancelled",
        EndKind::Retry { .. }
        | EndKind::Snooze { .. }
        | EndKind::DatabaseLost { .. }
        | EndKind::Held { .. }
        | EndKind::AwaitSignal { .. }
        | EndKind::GivenBack
        | EndKind::LeaseLost => {
            return;
        }
    };
    let queue = run.queue().to_owned();
    counter!("dalsegno_tasks_finished_total", "queue" => queue, "kind" => kind, "outcome" => outcome).increment(1);
}

fn record_rejected(n: usize) {
    if n > 0 {
        counter!("dalsegno_fenced_commits_rejected_total").increment(n as u64);
    }
}

/// Records a renewal of the lease, with the time that was left.
pub(super) fn record_renewal(margin: Duration) {
    gauge!("dalsegno_lease_margin_seconds").set(margin.as_secs_f64());
}

/// Records that notifications arrive.
pub(super) fn record_notification() {
    gauge!("dalsegno_listener_last_ok_timestamp_seconds").set(unix_secs());
}

/// Records that a job of a lost worker was taken back and is now in `state`.
pub(super) fn record_reclaim(state: &str) {
    counter!("dalsegno_reaper_reclaimed_total", "reason" => state.to_owned()).increment(1);
}

/// Records rows that retention removed.
pub(super) fn record_deleted_rows(table: &'static str, n_rows: u64) {
    counter!("dalsegno_cleanup_rows_total", "table" => table).increment(n_rows);
}

/// Records that retention finished a round.
pub(super) fn record_cleanup_success() {
    gauge!("dalsegno_cleanup_last_success_timestamp_seconds").set(unix_secs());
}

/// Returns the time that Prometheus compares with its own clock. No decision depends on it.
#[expect(clippy::disallowed_methods, reason = "a reading for an operator's graph, not a decision")]
fn unix_secs() -> f64 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0.0, |since| since.as_secs_f64())
}

/// Records the jobs of one queue by state, and the number of its workers.
pub(super) fn set_queue_state(
    queue: &str,
    states: [(&'static str, i64); 5],
    oldest_ready_secs: f64,
    n_workers: i64,
) {
    gauge!("dalsegno_workers", "queue" => queue.to_owned()).set(n_workers as f64);
    for (state, n_jobs) in states {
        gauge!("dalsegno_tasks", "queue" => queue.to_owned(), "state" => state).set(n_jobs as f64);
    }
    gauge!("dalsegno_queue_oldest_ready_age_seconds", "queue" => queue.to_owned())
        .set(oldest_ready_secs);
}

/// Sets the metrics of a queue to 0 that has no jobs and no workers any more.
pub(super) fn reset_queue(queue: &str) {
    set_queue_state(queue, STATES.map(|state| (state, 0)), 0.0, 0);
}
