//! Ends of runs.

use std::time::{Duration, Instant};

use dalsegno::queue::{
    Backoff, End, HandlerResult, HoldUntil, Job, JobError, LaneFailure, Options, Policy, Registry,
    Run, Stop, admin, enqueue,
};
use serde::{Deserialize, Serialize};

use super::{
    faults::until_listening,
    fixture::{Fixture, HandlerLog},
};

/// A job that ends as it says.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TestJob {
    Nothing,
    FailTwice,
    FailAlways,
    SnoozeOnce,
    GiveUp,
    Panic,
    WaitForCancel,
    IgnoreCancel,
    TakeTooLong,
    CommitOwn,
    CommitStale,
}

impl Job for TestJob {
    const KIND: &'static str = "do";

    fn policy() -> Policy {
        Policy {
            max_attempts: 3,
            backoff: Backoff { first: Duration::from_millis(50), cap: Duration::from_millis(200) },
            deadline: Some(Duration::from_secs(120)),
            lane_failure: LaneFailure::Continue,
            ..Policy::default()
        }
    }
}

pub async fn act(job: TestJob, run: Run, handler_log: HandlerLog) -> HandlerResult {
    handler_log.note(format!("{job:?} {}", run.attempt()));
    match job {
        TestJob::Nothing => Ok(End::Done),
        TestJob::FailTwice if run.attempt() < 3 => Err(JobError::retry("not yet")),
        TestJob::FailTwice => Ok(End::Done),
        TestJob::FailAlways => Err(JobError::retry("never")),
        TestJob::SnoozeOnce if handler_log.lines().len() > 1 => Ok(End::Done),
        TestJob::SnoozeOnce => Ok(End::Snooze {
            until: HoldUntil::After(Duration::from_millis(100)),
            reason: "rate limit".into(),
        }),
        TestJob::GiveUp => Err(JobError::fail("it makes no sense")),
        TestJob::Panic => panic!("out of cheese"),
        TestJob::WaitForCancel => {
            run.cancel().cancelled().await;
            handler_log.note(format!("stopped {:?}", run.stop_reason()));
            Err(JobError::retry("interrupted"))
        }
        TestJob::IgnoreCancel | TestJob::TakeTooLong => std::future::pending().await,
        TestJob::CommitOwn | TestJob::CommitStale => {
            let mut tx = run.pool().begin().await.map_err(JobError::retry)?;
            sqlx::query("INSERT INTO effects VALUES ($1)")
                .bind(run.job_id())
                .execute(&mut *tx)
                .await
                .map_err(JobError::retry)?;
            if matches!(job, TestJob::CommitStale) {
                // The effect of a rescue on the row: another lease.
                sqlx::query(
                    "UPDATE dalsegno.jobs SET lease = nextval('dalsegno.leases') WHERE id = $1",
                )
                .bind(run.job_id())
                .execute(run.pool())
                .await
                .map_err(JobError::retry)?;
            }
            Ok(run.commit(tx).await?)
        }
    }
}

fn registry(handler_log: &HandlerLog) -> Registry<HandlerLog> {
    Registry::new(handler_log.clone()).with(act)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_finished_job_is_removed() {
    let (fixture, handler_log) = (Fixture::new().await, HandlerLog::default());
    let worker = fixture.start(Fixture::config(), registry(&handler_log));
    let job = fixture.put(&TestJob::Nothing).await;
    fixture.until_state(job.job_id, "gone").await;
    assert_eq!(handler_log.lines(), ["Nothing 1"]);
    assert_eq!(fixture.outcomes(job.job_id).await, ["done"]);
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_is_retried_after_a_backoff() {
    let (fixture, handler_log) = (Fixture::new().await, HandlerLog::default());
    let worker = fixture.start(Fixture::config(), registry(&handler_log));
    let began = Instant::now();
    let job = fixture.put(&TestJob::FailTwice).await;
    fixture.until_state(job.job_id, "gone").await;
    assert_eq!(handler_log.lines(), ["FailTwice 1", "FailTwice 2", "FailTwice 3"]);
    assert_eq!(fixture.outcomes(job.job_id).await, ["retry", "retry", "done"]);
    assert!(
        began.elapsed() >= Duration::from_millis(37 + 75),
        "the backoff was not kept: {:?}",
        began.elapsed()
    );
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_always_fails_is_dead_after_its_attempts() {
    let (fixture, handler_log) = (Fixture::new().await, HandlerLog::default());
    let worker = fixture.start(Fixture::config(), registry(&handler_log));
    let job = fixture.put(&TestJob::FailAlways).await;
    fixture.until_state(job.job_id, "dead").await;
    assert_eq!(fixture.outcomes(job.job_id).await, ["retry", "retry", "failed"]);
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snooze_uses_up_no_attempt() {
    let (fixture, handler_log) = (Fixture::new().await, HandlerLog::default());
    let worker = fixture.start(Fixture::config(), registry(&handler_log));
    let job = fixture.put(&TestJob::SnoozeOnce).await;
    fixture.until_state(job.job_id, "gone").await;
    assert_eq!(handler_log.lines(), ["SnoozeOnce 1", "SnoozeOnce 1"]);
    assert_eq!(fixture.outcomes(job.job_id).await, ["snooze", "done"]);
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_final_failure_is_not_retried_until_a_person_does() {
    let (fixture, handler_log) = (Fixture::new().await, HandlerLog::default());
    let worker = fixture.start(Fixture::config(), registry(&handler_log));
    let job = fixture.put(&TestJob::GiveUp).await;
    fixture.until_state(job.job_id, "dead").await;
    assert_eq!(handler_log.lines(), ["GiveUp 1"]);
    admin::retry_job(&fixture.pool, job.job_id).await.expect("redrives");
    handler_log.until(2).await;
    fixture.until_state(job.job_id, "dead").await;
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unreadable_payload_is_one_dead_job_and_affects_no_other() {
    let (fixture, handler_log) = (Fixture::new().await, HandlerLog::default());
    let bad: i64 =
        sqlx::query_scalar("SELECT job_id FROM dalsegno.enqueue('do', '{\"unheard\": [1]}')")
            .fetch_one(&fixture.pool)
            .await
            .expect("enqueues");
    let worker = fixture.start(Fixture::config(), registry(&handler_log));
    fixture.until_state(bad, "dead").await;
    let (reason, error): (String, String) =
        sqlx::query_as("SELECT reason::text, error FROM dalsegno.dead_jobs WHERE id = $1")
            .bind(bad)
            .fetch_one(&fixture.pool)
            .await
            .expect("is a dead letter");
    assert_eq!(reason, "bad_payload");
    assert!(error.contains("the payload is not valid for a `do` job"), "{error}");
    let good = fixture.put(&TestJob::Nothing).await;
    fixture.until_state(good.job_id, "gone").await;
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_is_a_failed_attempt() {
    let (fixture, handler_log) = (Fixture::new().await, HandlerLog::default());
    let worker = fixture.start(Fixture::config(), registry(&handler_log));
    let job = fixture.put(&TestJob::Panic).await;
    fixture.until_state(job.job_id, "dead").await;
    let error: String = sqlx::query_scalar("SELECT error FROM dalsegno.dead_jobs WHERE id = $1")
        .bind(job.job_id)
        .fetch_one(&fixture.pool)
        .await
        .expect("is a dead letter");
    assert_eq!(error, "the handler panicked: out of cheese");
    assert_eq!(handler_log.lines().len(), 3);
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancellation_reaches_the_handler_before_the_next_heartbeat() {
    for listen in [true, false] {
        let (fixture, handler_log) = (Fixture::new().await, HandlerLog::default());
        let config = dalsegno::queue::Config { listen, ..Fixture::notification_config() };
        let worker = fixture.start(config, registry(&handler_log));
        // A job can be claimed before the listener listens.
        if listen {
            until_listening(&fixture, None).await;
        }
        let job = fixture.put(&TestJob::WaitForCancel).await;
        handler_log.until(1).await;
        let found =
            admin::cancel_job(&fixture.pool, job.job_id, "changed my mind").await.expect("cancels");
        assert_eq!(found, admin::CancelOutcome::Requested);
        handler_log.until(2).await;
        fixture.until_state(job.job_id, "gone").await;
        assert_eq!(handler_log.lines()[1], format!("stopped {:?}", Some(Stop::Cancelled)));
        assert_eq!(fixture.outcomes(job.job_id).await, ["cancelled"]);
        worker.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_that_ignores_its_cancellation_is_dropped_after_the_grace() {
    let (fixture, handler_log) = (Fixture::new().await, HandlerLog::default());
    let config = dalsegno::queue::Config { cancel_grace_secs: 1, ..Fixture::config() };
    let worker = fixture.start(config, registry(&handler_log));
    let job = fixture.put(&TestJob::IgnoreCancel).await;
    handler_log.until(1).await;
    admin::cancel_job(&fixture.pool, job.job_id, "").await.expect("cancels");
    fixture.until_state(job.job_id, "gone").await;
    assert_eq!(fixture.outcomes(job.job_id).await, ["cancelled"]);
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deadline_ends_the_attempt() {
    let (fixture, handler_log) = (Fixture::new().await, HandlerLog::default());
    let config = dalsegno::queue::Config { cancel_grace_secs: 0, ..Fixture::config() };
    let worker = fixture.start(config, registry(&handler_log));
    let options = Options { timeout_secs: Some(1), ..Options::default() };
    let job = enqueue(&fixture.pool, &TestJob::TakeTooLong, &options).await.expect("enqueues");
    handler_log.until(2).await;
    let runs = admin::find_job(&mut fixture.pool.acquire().await.expect("connects"), job.job_id)
        .await
        .expect("exists")
        .runs;
    assert_eq!(runs[0].outcome, "retry");
    assert_eq!(runs[0].error.as_deref(), Some("the attempt exceeded its deadline of 1 s"));
    worker.shutdown.hard.cancel();
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_commits_its_end_with_its_writes() {
    let (fixture, handler_log) = (Fixture::new().await, HandlerLog::default());
    sqlx::query("CREATE TABLE effects (job_id bigint)")
        .execute(&fixture.pool)
        .await
        .expect("creates a table");
    let worker = fixture.start(Fixture::config(), registry(&handler_log));
    let job = fixture.put(&TestJob::CommitOwn).await;
    fixture.until_state(job.job_id, "gone").await;
    let effects: Vec<i64> = sqlx::query_scalar("SELECT job_id FROM effects")
        .fetch_all(&fixture.pool)
        .await
        .expect("reads");
    assert_eq!(effects, [job.job_id]);
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_without_its_lease_commits_nothing() {
    let (fixture, handler_log) = (Fixture::new().await, HandlerLog::default());
    sqlx::query("CREATE TABLE effects (job_id bigint)")
        .execute(&fixture.pool)
        .await
        .expect("creates a table");
    let worker = fixture.start(Fixture::config(), registry(&handler_log));
    let job = fixture.put(&TestJob::CommitStale).await;
    handler_log.until(1).await;
    let next = fixture.put(&TestJob::Nothing).await;
    fixture.until_state(next.job_id, "gone").await;
    let n_effects: i64 = sqlx::query_scalar("SELECT count(*) FROM effects")
        .fetch_one(&fixture.pool)
        .await
        .expect("reads");
    assert_eq!(n_effects, 0);
    assert_eq!(fixture.state(job.job_id).await, "running", "the new holder's row is untouched");
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_gives_back_unfinished_jobs_without_an_attempt() {
    let (fixture, handler_log) = (Fixture::new().await, HandlerLog::default());
    let config = dalsegno::queue::Config { drain_timeout_secs: 1, ..Fixture::config() };
    let worker = fixture.start(config, registry(&handler_log));
    let free = fixture.put(&TestJob::WaitForCancel).await;
    let laned = fixture.put_in(&TestJob::WaitForCancel, "lane").await;
    handler_log.until(2).await;
    worker.stop().await;
    assert_eq!(handler_log.lines()[2], format!("stopped {:?}", Some(Stop::Drain)));
    for job in [free, laned] {
        assert_eq!(fixture.state(job.job_id).await, "ready");
        assert_eq!(fixture.outcomes(job.job_id).await, ["given_back"]);
        let attempt: i16 = sqlx::query_scalar("SELECT attempt FROM dalsegno.jobs WHERE id = $1")
            .bind(job.job_id)
            .fetch_one(&fixture.pool)
            .await
            .expect("exists");
        assert_eq!(attempt, 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kind_without_a_handler_is_not_claimed() {
    let (fixture, handler_log) = (Fixture::new().await, HandlerLog::default());
    let strange: i64 = sqlx::query_scalar("SELECT job_id FROM dalsegno.enqueue('strange')")
        .fetch_one(&fixture.pool)
        .await
        .expect("enqueues");
    let worker = fixture.start(Fixture::config(), registry(&handler_log));
    let known = fixture.put(&TestJob::Nothing).await;
    fixture.until_state(known.job_id, "gone").await;
    assert_eq!(fixture.state(strange).await, "ready");
    assert!(fixture.outcomes(strange).await.is_empty());
    let told = admin::explain(&fixture.pool, strange).await.expect("explains");
    assert!(told.because.contains("has a handler for the kind `strange`"), "{}", told.because);
    worker.stop().await;
}
