//! Explains in words why a job is in its state, and what has to happen next.
//!
//! The facts come from one statement, at one moment. A pure function makes the words, so that they can be tested without a database.

mod reasons;

use serde::{Deserialize, Serialize};
use sqlx::PgExecutor;

use crate::error::Error;

/// The answer to "why?".
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
}

/// Explains a job. An unknown id is explained as well.
pub async fn explain(executor: impl PgExecutor<'_>, job_id: i64) -> Result<Explanation, Error> {
    Ok(load_facts(executor, job_id).await?.explain())
}

/// Explains a job to a caller who may not see other jobs: of those before it in its lane, only their number is given.
pub async fn explain_alone(
    executor: impl PgExecutor<'_>,
    job_id: i64,
) -> Result<Explanation, Error> {
    Ok(load_facts(executor, job_id).await?.explain_alone())
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
        Explanation { job_id: self.id, state: self.state.clone(), because, next }
    }

    fn explain_alone(&self) -> Explanation {
        let told = self.explain();
        match self.state.as_str() {
            "blocked" => {
                let (because, next) = self.blocked_by_others();
                Explanation { because, next, ..told }
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
            "Attempt 2 of 5 failed 3 seconds ago: connection refused. It backs off before the next one."
        );
        assert_eq!(
            told.next,
            "It is due in 95 seconds. The lane `chat-1` waits with it, so that the order is kept. To run it now: `dalsegno job retry 7`."
        );
    }

    #[test]
    fn a_blocked_job_names_the_head_and_what_it_does() {
        let told = JobFacts {
            lane: Some("chat-1".into()),
            head_id: Some(5),
            head_kind: Some("run_turn".into()),
            head_state: Some("running".into()),
            head_running_secs: Some(200.0),
            blocked_ahead: Some(1),
            ..facts("blocked")
        }
        .explain();
        assert_eq!(
            told.because,
            "Lanes run one job at a time, and job 5 (`run_turn`) at the head of `chat-1` has been running for 3 minutes. 1 job is in line before it."
        );
        assert_eq!(told.next, "Job 5 has to end. Then the lane moves up by itself.");
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
        assert_eq!(two.because, "Lanes run one job at a time. 2 jobs are in line before it.");
        assert_eq!(two.next, "What is before it has to end. Then the lane moves up by itself.");
        assert!(told(None, 0).because.ends_with("It is next in line."));
        assert!(told(Some(5), 1_000).because.ends_with("1000 or more jobs are before it in line."));
        let own = JobFacts { hold_reason: Some("legal".into()), ..facts("held") };
        assert_eq!(own.explain_alone(), own.explain());
    }

    #[test]
    fn an_unknown_kind_is_distinguished_from_missing_workers() {
        let without_worker =
            JobFacts { live_workers: 0, able_workers: 0, ..facts("ready") }.explain();
        let unable = JobFacts { live_workers: 2, able_workers: 0, ..facts("ready") }.explain();
        assert!(
            without_worker.because.contains("no worker that is alive"),
            "{}",
            without_worker.because
        );
        assert!(
            unable.because.contains("has a handler for the kind `run_turn`"),
            "{}",
            unable.because
        );
    }
}
