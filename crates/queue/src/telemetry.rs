//! The metrics of the queue. Labels are bounded: queues, kinds, outcomes, states; never a job, a lane or a campaign.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    time::Duration,
};

use metrics::{counter, gauge, histogram};

use super::{
    config::Config,
    ends::{ATTEMPT_OUTCOMES, DONE, JOB_OUTCOMES, LEASE_LOST, Outcomes, WORKER_LOST},
    registry::Handlers,
    retention,
    run::Run,
    slots::Slot,
};
use dalsegno_base::metric::Metric;

/// States of jobs that were taken from lost workers.
const RECLAIMED: [&str; 3] = ["scheduled", "held", "dead"];
const STATES: [&str; 5] = ["ready", "running", "scheduled", "blocked", "held"];

const WORKERS: Metric = Metric::gauge(
    "dalsegno_workers",
    &["queue"],
    "Live workers that serve a queue, counted in the database.",
);
const JOBS: Metric = Metric::gauge(
    "dalsegno_jobs",
    &["queue", "state"],
    "Live jobs by state (ready, running, scheduled, blocked, held), counted in the database.",
);
const OLDEST_READY: Metric = Metric::gauge(
    "dalsegno_oldest_ready_job_age_seconds",
    &["queue"],
    "Time in seconds that the oldest ready job of a queue has waited; 0 if none is ready.",
);
const JOBS_FINISHED: Metric = Metric::counter(
    "dalsegno_jobs_finished_total",
    &["queue", "kind", "outcome"],
    "Jobs that this process ended for good: done, cancelled (during an attempt), or a dead letter, which is failed (the handler \
     failed it for good), exhausted (attempts used up), bad_payload (cannot be decoded) or worker_lost (three workers were lost in a row).",
);
const ATTEMPTS: Metric = Metric::counter(
    "dalsegno_job_attempts_finished_total",
    &["queue", "kind", "outcome"],
    "Attempts of jobs that ended in this process: done, error, panic, deadline, bad_payload, snoozed, database_lost, held (waits \
     for a person), put_aside (waits for a signal), cancelled, given_back (the worker shuts down), lease_lost.",
);
const JOB_WAIT: Metric = Metric::histogram(
    "dalsegno_job_wait_seconds",
    &[],
    "Time in seconds from a job being ready to its claim.",
);
const CLAIM: Metric = Metric::histogram(
    "dalsegno_job_claim_duration_seconds",
    &[],
    "Duration in seconds of one claim, which takes several jobs.",
);
const END_BATCH: Metric = Metric::histogram(
    "dalsegno_job_end_duration_seconds",
    &[],
    "Duration in seconds of one write of ends, which ends several jobs.",
);
const ENDS_REJECTED: Metric = Metric::counter(
    "dalsegno_job_ends_rejected_total",
    &[],
    "Ends of jobs that were rejected because the lease was over.",
);
const RECLAIMED_JOBS: Metric = Metric::counter(
    "dalsegno_jobs_reclaimed_total",
    &["state"],
    "Jobs that this process took back from lost workers, by their new state: scheduled, held or dead.",
);
const LEASE_MARGIN: Metric = Metric::gauge(
    "dalsegno_lease_margin_seconds",
    &[],
    "Time in seconds that was left of the lease at its last renewal.",
);
const LISTENER_OK: Metric = Metric::gauge(
    "dalsegno_listener_last_ok_timestamp_seconds",
    &[],
    "Unix time in seconds at which notifications of the database were last known to arrive.",
);
/// The rows that cleanups deleted: those of the queue here, those of the nightly cleanup in the service.
pub const CLEANUP_ROWS_DELETED: Metric = Metric::counter(
    "dalsegno_cleanup_rows_deleted_total",
    &["table"],
    "Rows that this process deleted in the nightly cleanup and in the hourly cleanup of the queue.",
);
const CLEANUP_SUCCEEDED: Metric = Metric::gauge(
    "dalsegno_queue_cleanup_last_success_timestamp_seconds",
    &[],
    "Unix time in seconds at which the hourly cleanup of the queue last succeeded in this process; 0 before the first.",
);

/// All metrics of the queue.
pub const METRICS: [Metric; 14] = [
    JOBS,
    OLDEST_READY,
    WORKERS,
    JOBS_FINISHED,
    ATTEMPTS,
    JOB_WAIT,
    CLAIM,
    END_BATCH,
    ENDS_REJECTED,
    RECLAIMED_JOBS,
    LEASE_MARGIN,
    LISTENER_OK,
    CLEANUP_ROWS_DELETED,
    CLEANUP_SUCCEEDED,
];

/// Describes the metrics and starts each with a value. An alert on a counter that appears with its first event misses that event.
pub(super) fn begin(config: &Config, handlers: &Handlers, is_listening: bool) {
    METRICS.iter().for_each(Metric::describe);
    let all: BTreeSet<&str> = handlers.values().map(|handler| handler.policy.queue).collect();
    all.into_iter().for_each(reset_queue);
    for (kind, handler) in handlers {
        let queue = handler.policy.queue;
        // A worker takes back the jobs of lost workers in all queues.
        finished(queue, kind, WORKER_LOST, 0);
        if !config.queues.iter().any(|own| own == queue) {
            continue;
        }
        for outcome in JOB_OUTCOMES {
            finished(queue, kind, outcome, 0);
        }
        for outcome in ATTEMPT_OUTCOMES {
            attempted(queue, kind, outcome, 0);
        }
    }
    for state in RECLAIMED {
        counter!(RECLAIMED_JOBS.name, "state" => state).increment(0);
    }
    for table in retention::TABLES {
        record_deleted_rows(table, 0);
    }
    record_rejected(0);
    gauge!(CLEANUP_SUCCEEDED.name).set(0.0);
    // Starts both gauges as if the lease had just been renewed and a notification had just come: their alerts measure the time since.
    record_renewal(config.lease());
    if is_listening {
        record_notification();
    }
    for metric in [JOB_WAIT, CLAIM, END_BATCH] {
        drop(histogram!(metric.name));
    }
}

/// Records a claim. `waits` are the seconds that each job was ready.
pub(super) fn record_claim(took: Duration, waits: impl Iterator<Item = f64>) {
    histogram!(CLAIM.name).record(took.as_secs_f64());
    let wait = histogram!(JOB_WAIT.name);
    for secs in waits {
        wait.record(secs);
    }
}

/// Records an acknowledged batch of ends.
pub(super) fn record_ends_written(took: Duration) {
    histogram!(END_BATCH.name).record(took.as_secs_f64());
}

/// Records jobs whose end as done was sent. `ended` has the ids of those that still had their lease.
pub(super) fn record_done(slots: &[Slot], ended: &[(i64, bool)]) {
    let ended: HashSet<i64> = ended.iter().map(|(job_id, _)| *job_id).collect();
    // One look-up per kind and batch: the recorder hashes all labels at each call.
    let mut by_kind: HashMap<(&str, &str, bool), u64> = HashMap::new();
    for Slot { run, .. } in slots {
        let is_ended = ended.contains(&run.job_id());
        *by_kind.entry((run.queue(), run.kind(), is_ended)).or_default() += 1;
    }
    for ((queue, kind, is_ended), n) in by_kind {
        if is_ended {
            attempted(queue, kind, DONE, n);
            finished(queue, kind, DONE, n);
        } else {
            attempted(queue, kind, LEASE_LOST, n);
            record_rejected(n);
        }
    }
}

/// Records a run that ended in another way.
pub(super) fn record_end(run: &Run, outcomes: Outcomes) {
    attempted(run.queue(), run.kind(), outcomes.attempt, 1);
    if let Some(outcome) = outcomes.job {
        finished(run.queue(), run.kind(), outcome, 1);
    }
}

/// Records a run whose end was rejected.
pub(super) fn ended_too_late(run: &Run) {
    attempted(run.queue(), run.kind(), LEASE_LOST, 1);
    record_rejected(1);
}

/// Records ends that were rejected.
pub(super) fn record_rejected(n: u64) {
    counter!(ENDS_REJECTED.name).increment(n);
}

fn finished(queue: &str, kind: &str, outcome: &'static str, n: u64) {
    let (queue, kind) = (queue.to_owned(), kind.to_owned());
    counter!(JOBS_FINISHED.name, "queue" => queue, "kind" => kind, "outcome" => outcome)
        .increment(n);
}

fn attempted(queue: &str, kind: &str, outcome: &'static str, n: u64) {
    let (queue, kind) = (queue.to_owned(), kind.to_owned());
    counter!(ATTEMPTS.name, "queue" => queue, "kind" => kind, "outcome" => outcome).increment(n);
}

/// Records a renewal of the lease, with the time that was left.
pub(super) fn record_renewal(margin: Duration) {
    gauge!(LEASE_MARGIN.name).set(margin.as_secs_f64());
}

/// Records that notifications arrive.
pub(super) fn record_notification() {
    gauge!(LISTENER_OK.name).set(unix_secs());
}

/// Records that a job of a lost worker was taken back and is now in `state`.
pub(super) fn record_reclaim(queue: &str, kind: &str, state: &str) {
    counter!(RECLAIMED_JOBS.name, "state" => state.to_owned()).increment(1);
    if state == "dead" {
        finished(queue, kind, WORKER_LOST, 1);
    }
}

/// Records rows that the cleanup of the queue deleted.
pub(super) fn record_deleted_rows(table: &'static str, n_rows: u64) {
    counter!(CLEANUP_ROWS_DELETED.name, "table" => table).increment(n_rows);
}

/// Records that the cleanup of the queue finished a round.
pub(super) fn record_cleanup_success() {
    gauge!(CLEANUP_SUCCEEDED.name).set(unix_secs());
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
    gauge!(WORKERS.name, "queue" => queue.to_owned()).set(n_workers as f64);
    for (state, n_jobs) in states {
        gauge!(JOBS.name, "queue" => queue.to_owned(), "state" => state).set(n_jobs as f64);
    }
    gauge!(OLDEST_READY.name, "queue" => queue.to_owned()).set(oldest_ready_secs);
}

/// Sets the metrics of a queue to 0 that has no jobs and no workers any more.
pub(super) fn reset_queue(queue: &str) {
    set_queue_state(queue, STATES.map(|state| (state, 0)), 0.0, 0);
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use metrics::{
        Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit,
    };

    use super::*;

    /// Notes the counters that are used.
    #[derive(Default)]
    struct Notes(Mutex<Vec<String>>);

    impl Recorder for Notes {
        fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
        fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
        fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

        fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
            let values = key.labels().map(|label| label.value());
            let line: Vec<&str> = std::iter::once(key.name()).chain(values).collect();
            self.0.lock().unwrap().push(line.join(" "));
            Counter::noop()
        }

        fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
            Gauge::noop()
        }

        fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
            Histogram::noop()
        }
    }

    #[test]
    fn a_job_whose_workers_were_lost_is_finished_when_it_is_dead() {
        let notes = Notes::default();
        metrics::with_local_recorder(&notes, || {
            record_reclaim("turns", "run_turn", "scheduled");
            record_reclaim("turns", "run_turn", "held");
            record_reclaim("turns", "run_turn", "dead");
        });
        assert_eq!(
            *notes.0.lock().unwrap(),
            [
                "dalsegno_jobs_reclaimed_total scheduled",
                "dalsegno_jobs_reclaimed_total held",
                "dalsegno_jobs_reclaimed_total dead",
                "dalsegno_jobs_finished_total turns run_turn worker_lost",
            ]
        );
    }
}
