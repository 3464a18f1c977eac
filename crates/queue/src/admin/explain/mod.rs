//! Explanations of a job's state: the reason, and what has to happen next.
//!
//! The facts come from one statement, at one moment. A pure function makes the text, so that it can be tested without a database.

mod reasons;

use serde::{Deserialize, Serialize};
use sqlx::PgExecutor;

use super::RunRecord;
use crate::error::Error;

/// The explanation of a job's state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = JobExplanation)]
pub struct Explanation {
    /// The job.
    pub job_id: i64,
    /// Its state: one of the live states, or dead, ended, unknown.
    pub state: String,
    /// Why it is in this state.
    pub because: String,
    /// The next step, and who takes it.
    pub next: String,
    /// The cause, for callers that know more about it than the queue.
    #[serde(skip)]
    pub cause: Cause,
    /// Its ended runs that are still kept, the newest first. A caller adds them.
    #[serde(default)]
    pub runs: Vec<RunRecord>,
}

/// A cause of a wait, about which the application knows more than the queue.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Cause {
    /// The text of the explanation is complete.
    #[default]
    Explained,
    /// The job waits for a call of `dalsegno.signal`.
    Signal,
    /// The job was enqueued for later.
    Later,
    /// The last run put the job off.
    Snooze,
    /// The job, its lane or the head of its lane is held for this reason.
    Hold { reason: String, of: HoldOf },
    /// The job waits for another one of its lane, which is not held.
    Behind {
        /// The head of the lane.
        job_id: i64,
        /// Number of jobs between the two, at most 1000.
        n_between: i64,
    },
    /// The group of the job is paused.
    GroupPause { group: String },
}

/// A job or a lane that is held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HoldOf {
    /// The job itself, or the head of its lane.
    Job(i64),
    /// Its lane.
    Lane(String),
}

/// Explains a job. An unknown id is explained as well.
pub async fn explain(executor: impl PgExecutor<'_>, job_id: i64) -> Result<Explanation, Error> {
    Ok(load_facts(executor, job_id).await?.explain())
}

/// Explains a job to a caller that may not see other jobs: of those before it in its lane, only their number is given.
pub async fn explain_alone(
    executor: impl PgExecutor<'_>,
    job_id: i64,
) -> Result<Explanation, Error> {
    Ok(load_facts(executor, job_id).await?.explain_alone())
}

/// The running job at the head of a lane, for which a blocked job waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningHead {
    /// The job that runs.
    pub job_id: i64,
    /// When and where it started: `started 12 s ago on worker-2 (pid 41)`.
    pub started: String,
    /// Number of jobs between the two: `1 job is in line before it`.
    pub between: String,
}

/// Returns the job for which a blocked job waits, if it is running.
pub async fn running_head(
    executor: impl PgExecutor<'_>,
    job_id: i64,
) -> Result<Option<RunningHead>, Error> {
    Ok(load_facts(executor, job_id).await?.running_head())
}

async fn load_facts(executor: impl PgExecutor<'_>, job_id: i64) -> Result<JobFacts, Error> {
    sqlx::query_file_as!(JobFacts, "src/sql/job_explain.sql", job_id)
        .fetch_one(executor)
        .await
        .map_err(Error::of("explain a job"))
}

/// The facts about a job at one moment. Times are seconds from or until now by the clock of the database.
#[derive(Debug, Clone, Default)]
struct JobFacts {
    id: i64,
    state: String,
    queue: String,
    kind: String,
    group_key: Option<String>,
    lane: Option<String>,
    attempt: i16,
    max_attempts: i16,
    crash_count: i16,
    run_in_secs: Option<f64>,
    wait_reason: Option<String>,
    hold_by: Option<String>,
    hold_reason: Option<String>,
    running_secs: Option<f64>,
    worker_host: Option<String>,
    worker_pid: Option<i32>,
    worker_gone: Option<String>,
    worker_lease_secs: Option<f64>,
    lane_hold_reason: Option<String>,
    lane_held_secs: Option<f64>,
    head_id: Option<i64>,
    head_state: Option<String>,
    head_kind: Option<String>,
    head_wait_reason: Option<String>,
    head_hold_reason: Option<String>,
    head_run_in_secs: Option<f64>,
    head_running_secs: Option<f64>,
    head_worker_host: Option<String>,
    head_worker_pid: Option<i32>,
    blocked_ahead: Option<i64>,
    ready_ahead: Option<i64>,
    queue_pause_reason: Option<String>,
    group_pause_reason: Option<String>,
    live_workers: i64,
    able_workers: i64,
    cancel_requested_secs: Option<f64>,
    died_secs: Option<f64>,
    death_reason: Option<String>,
    death_error: Option<String>,
    last_outcome: Option<String>,
    last_error: Option<String>,
    last_wait_cause: Option<String>,
    last_ended_secs: Option<f64>,
}

impl JobFacts {
    fn explain(&self) -> Explanation {
        let (because, next) = match self.state.as_str() {
            "ready" => self.ready(),
            "scheduled" => self.scheduled(),
            "blocked" => self.blocked(),
            "held" => self.held(),
            "running" => self.running(),
            "dead" => self.dead(),
            "ended" => self.ended(),
            _ => self.unknown(),
        };
        let (state, cause) = (self.state.clone(), self.cause());
        Explanation { job_id: self.id, state, because, next, cause, runs: Vec::new() }
    }

    fn cause(&self) -> Cause {
        let hold = |reason: &Option<String>, of: Option<HoldOf>| {
            let hold = reason.clone().zip(of);
            hold.map_or(Cause::Explained, |(reason, of)| Cause::Hold { reason, of })
        };
        match self.state.as_str() {
            "scheduled" => match self.wait_reason.as_deref() {
                Some("signal") => Cause::Signal,
                Some("later") => Cause::Later,
                Some("snooze") => Cause::Snooze,
                _ => Cause::Explained,
            },
            "held" => hold(&self.hold_reason, Some(HoldOf::Job(self.id))),
            "blocked" if self.lane_hold_reason.is_some() => {
                hold(&self.lane_hold_reason, self.lane.clone().map(HoldOf::Lane))
            }
            "blocked" if self.head_state.as_deref() == Some("held") => {
                hold(&self.head_hold_reason, self.head_id.map(HoldOf::Job))
            }
            "blocked" => self.head_id.map_or(Cause::Explained, |job_id| Cause::Behind {
                job_id,
                n_between: self.blocked_ahead.unwrap_or(0),
            }),
            "ready" => self
                .paused_group()
                .map_or(Cause::Explained, |(group, _)| Cause::GroupPause { group: group.into() }),
            _ => Cause::Explained,
        }
    }

    fn running_head(&self) -> Option<RunningHead> {
        let waits = self.state == "blocked" && self.lane_hold_reason.is_none();
        let head = self.head_id.filter(|_| waits && self.head_state.as_deref() == Some("running"));
        head.map(|job_id| RunningHead {
            job_id,
            started: self.head_start(),
            between: reasons::behind(self.blocked_ahead.unwrap_or(0)),
        })
    }

    fn explain_alone(&self) -> Explanation {
        let told = self.explain();
        match self.state.as_str() {
            "blocked" => {
                let (because, next) = self.blocked_by_others();
                Explanation { because, next, cause: Cause::Explained, ..told }
            }
            _ => told,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(state: &str) -> JobFacts {
        JobFacts {
            id: 7,
            state: state.to_owned(),
            queue: "default".to_owned(),
            kind: "run_turn".to_owned(),
            attempt: 2,
            max_attempts: 5,
            live_workers: 1,
            able_workers: 1,
            ..JobFacts::default()
        }
    }

    #[test]
    fn a_backing_off_job_names_its_error_and_its_time() {
        let told = JobFacts {
            wait_reason: Some("retry".into()),
            last_error: Some("connection refused.".into()),
            last_ended_secs: Some(3.0),
            run_in_secs: Some(95.0),
            lane: Some("chat-1".into()),
            ..facts("scheduled")
        }
        .explain();
        assert_eq!(
            told.because,
            "Attempt 2 of 5 failed 3 s ago: connection refused. It is in backoff before the next attempt."
        );
        assert_eq!(
            told.next,
            "It is due in 95 s. The lane `chat-1` waits with it, to keep the order. To run it now: `dalsegno job retry 7`."
        );
    }

    #[test]
    fn a_job_that_waits_for_others_gets_no_advice_to_retry_it() {
        let told = |reason: &str| {
            let wait_reason = Some(reason.to_owned());
            JobFacts { wait_reason, run_in_secs: Some(95.0), ..facts("scheduled") }.explain()
        };
        let signal = told("signal");
        assert_eq!(
            (signal.next.as_str(), signal.cause),
            ("It continues when its application calls `dalsegno.signal`.", Cause::Signal)
        );
        let snooze = told("snooze");
        assert_eq!((snooze.next.as_str(), snooze.cause), ("It is due in 95 s.", Cause::Snooze));
    }

    #[test]
    fn a_job_that_was_put_off_names_for_what_it_waits() {
        let told = |cause: Option<&str>| {
            let facts = JobFacts {
                wait_reason: Some("snooze".into()),
                last_error: Some("busy".into()),
                last_wait_cause: cause.map(str::to_owned),
                ..facts("scheduled")
            };
            facts.explain().because
        };
        for (cause, words) in [
            (Some("provider"), "put off for its provider: busy."),
            (Some("limit"), "put off for a budget or a rate limit: busy."),
            (Some("batch"), "put off for a batch of its provider: busy."),
            // A worker of an older version has written none.
            (None, "put off: busy."),
        ] {
            assert!(told(cause).contains(words), "{cause:?}: {}", told(cause));
        }
    }

    #[test]
    fn the_cause_names_the_hold_or_the_paused_group_of_the_text() {
        let held = JobFacts { hold_reason: Some("legal".into()), ..facts("held") };
        let behind = JobFacts {
            head_id: Some(5),
            head_state: Some("held".into()),
            head_hold_reason: Some("legal".into()),
            ..facts("blocked")
        };
        let lane = JobFacts {
            lane: Some("chat-1".into()),
            lane_hold_reason: Some("legal".into()),
            ..facts("blocked")
        };
        for (facts, of) in [
            (held, HoldOf::Job(7)),
            (behind.clone(), HoldOf::Job(5)),
            (lane, HoldOf::Lane("chat-1".into())),
        ] {
            assert_eq!(facts.explain().cause, Cause::Hold { reason: "legal".into(), of });
        }
        let ready = JobFacts { head_state: Some("ready".into()), ..behind };
        assert_eq!(ready.explain().cause, Cause::Behind { job_id: 5, n_between: 0 });
        let group = JobFacts {
            group_key: Some("harbour".into()),
            group_pause_reason: Some("client call".into()),
            ..facts("ready")
        };
        assert_eq!(group.explain().cause, Cause::GroupPause { group: "harbour".into() });
        // The text names the pause of the queue.
        let both = JobFacts { queue_pause_reason: Some("upgrade".into()), ..group };
        assert_eq!(both.explain().cause, Cause::Explained);
    }

    #[test]
    fn a_blocked_job_names_the_head_and_what_it_does() {
        let told = JobFacts {
            lane: Some("chat-1".into()),
            head_id: Some(5),
            head_kind: Some("run_turn".into()),
            head_state: Some("running".into()),
            head_running_secs: Some(200.0),
            head_worker_host: Some("worker-2".into()),
            head_worker_pid: Some(41),
            blocked_ahead: Some(1),
            ..facts("blocked")
        }
        .explain();
        assert_eq!(
            told.because,
            "It waits for job 5 (`run_turn`) in the lane `chat-1`, which started 3 min ago on worker-2 (pid 41). 1 job is in line before it."
        );
        assert_eq!(told.next, "Job 5 has to end first. Then the lane continues by itself.");
    }

    #[test]
    fn callers_without_access_to_other_jobs_see_only_their_number() {
        let told = |head_id, blocked_ahead| {
            let held = "the secret of the harbour".to_owned();
            JobFacts {
                lane: Some("chat-1".into()),
                lane_hold_reason: Some(held.clone()),
                head_id,
                head_kind: Some("run_turn".into()),
                head_state: Some("held".into()),
                head_hold_reason: Some(held),
                blocked_ahead: Some(blocked_ahead),
                ..facts("blocked")
            }
            .explain_alone()
        };
        let two = told(Some(5), 1);
        assert_eq!(two.cause, Cause::Explained);
        assert_eq!(two.because, "Its lane runs one job at a time. 2 jobs are in line before it.");
        assert_eq!(
            two.next,
            "The jobs before it have to end first. Then the lane continues by itself."
        );
        assert!(told(None, 0).because.ends_with("It is next in line."));
        assert!(told(Some(5), 1_000).because.ends_with("1000 or more jobs are before it in line."));
        let own = JobFacts { hold_reason: Some("legal".into()), ..facts("held") };
        assert_eq!(own.explain_alone(), own.explain());
    }

    #[test]
    fn a_failed_job_that_has_left_the_queue_keeps_the_advice_of_its_error() {
        let told = |outcome: &str| {
            JobFacts { last_outcome: Some(outcome.into()), ..facts("ended") }.explain().next
        };
        assert_eq!(told("done"), "There is nothing to do. It has left the queue.");
        assert_eq!(told("failed"), "It has left the queue, and does not run again.");
    }

    #[test]
    fn a_wait_without_a_time_says_what_ends_it() {
        let never = Some(1e12);
        let own = |cause: Option<&str>| {
            let facts = JobFacts {
                wait_reason: Some("snooze".into()),
                last_wait_cause: cause.map(str::to_owned),
                run_in_secs: never,
                ..facts("scheduled")
            };
            facts.explain().next
        };
        assert_eq!(own(Some("limit")), "It continues when its budget or rate limit has space.");
        assert!(own(None).starts_with("It continues when its application ends the wait with "));
        let behind = JobFacts {
            head_id: Some(5),
            head_state: Some("scheduled".into()),
            head_wait_reason: Some("snooze".into()),
            head_run_in_secs: never,
            ..facts("blocked")
        }
        .explain();
        assert!(behind.because.contains("which was put off without a time. "), "{behind:?}");
        assert!(behind.next.contains("`dalsegno job explain 5` says what ends"), "{behind:?}");
    }

    #[test]
    fn an_unknown_kind_is_distinguished_from_missing_workers() {
        let without = JobFacts { live_workers: 0, able_workers: 0, ..facts("ready") }.explain();
        let unable = JobFacts { live_workers: 2, able_workers: 0, ..facts("ready") }.explain();
        assert!(without.because.contains("no live worker"), "{}", without.because);
        assert!(
            unable.because.contains("has a handler for the kind `run_turn`"),
            "{}",
            unable.because
        );
    }
}
