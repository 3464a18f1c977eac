//! Faults of the database, and the worker's reaction.

use std::{sync::Arc, time::Duration};

use dalsegno::queue::{
    Backoff, Config, Connections, CrashPoint, End, Fault, HandlerResult, Job, JobError, Policy,
    Registry, Run, WorkerError, fault_of, is_unavailable, run_worker,
};
use serde::{Deserialize, Serialize};
use sqlx::{error::DatabaseError, postgres::PgPoolOptions};
use tokio::sync::Notify;

use super::{
    ends::{TestJob, act},
    fixture::{Fixture, HandlerLog, MAX_WAIT, Worker, until},
};
use crate::{leases, queue::proxy::Proxy};

#[tokio::test(flavor = "multi_thread")]
async fn a_terminated_listener_reconnects() {
    let (fixture, handler_log) = (Fixture::new().await, HandlerLog::default());
    // Without a notification it looks once a minute.
    let config = Config { poll_busy_ms: 3_600_000, ..Fixture::notification_config() };
    let worker = fixture.start(config, Registry::new(handler_log.clone()).with(act));
    let mut listening = until_listening(&fixture, None).await;
    let called = async {
        for _ in 0..5 {
            sqlx::query("SELECT pg_terminate_backend($1)")
                .bind(listening)
                .execute(&fixture.pool)
                .await
                .expect("terminates");
            listening = until_listening(&fixture, Some(listening)).await;
            let job = fixture.put(&TestJob::Nothing).await;
            fixture.until_state(job.job_id, "gone").await;
        }
    };
    tokio::time::timeout(MAX_WAIT, called).await.expect("it is called");
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_notification_that_is_not_about_jobs_reaches_other_parts_of_the_process() {
    let (fixture, handler_log) = (Fixture::new().await, HandlerLog::default());
    let connections = Connections::from(fixture.pool.clone());
    let (notices, shutdown) = (connections.notices.clone(), dalsegno::shutdown::Shutdown::new());
    let registry = Registry::new(handler_log).with(act);
    let identity = dalsegno::queue::Identity::default();
    let run = run_worker(Fixture::config(), identity, registry, connections, shutdown.clone());
    let worker = Worker { shutdown, running: tokio::spawn(run) };
    until("notifications arrive", async || notices.is_hearing()).await;
    for payload in ["schedules", "anything else"] {
        // Drops earlier notifications, such as that of the listener's start.
        let _ = tokio::time::timeout(Duration::ZERO, notices.wait()).await;
        sqlx::query("SELECT pg_notify('dalsegno', $1)")
            .bind(payload)
            .execute(&fixture.pool)
            .await
            .expect("notifies");
        tokio::time::timeout(MAX_WAIT, notices.wait()).await.expect("rings");
    }
    fixture.terminate("listener").await;
    tokio::time::timeout(MAX_WAIT, notices.wait())
        .await
        .expect("notifies when the connection is lost");
    until("notifications arrive again", async || notices.is_hearing()).await;
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn terminated_connections_lose_nothing_and_end_no_worker() {
    let (fixture, handler_log) = (Fixture::new().await, HandlerLog::default());
    let worker = fixture.start(Fixture::config(), Registry::new(handler_log.clone()).with(act));
    let mut jobs = Vec::new();
    for round in 0..20 {
        for _ in 0..10 {
            jobs.push(fixture.put(&TestJob::Nothing).await.job_id);
        }
        let part = ["claimer", "completer", "heartbeat", "upkeep"][round % 4];
        fixture.terminate(part).await;
    }
    for job in &jobs {
        fixture.until_state(*job, "gone").await;
    }
    assert!(!worker.running.is_finished());
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn polling_alone_is_enough() {
    let (fixture, handler_log) = (Fixture::new().await, HandlerLog::default());
    let config = Config { listen: false, ..Fixture::config() };
    let worker = fixture.start(config, Registry::new(handler_log.clone()).with(act));
    for _ in 0..3 {
        let job = fixture.put(&TestJob::FailTwice).await;
        fixture.until_state(job.job_id, "gone").await;
    }
    assert_eq!(fixture.n_connections("listener").await, 0);
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_of_a_claim_with_a_lost_answer_are_given_back() {
    let (fixture, handler_log) = (Fixture::new().await, HandlerLog::default());
    let worker = fixture.start(Fixture::config(), Registry::new(handler_log.clone()).with(act));
    let first = fixture.put(&TestJob::Nothing).await;
    fixture.until_state(first.job_id, "gone").await;
    // State after a claim that committed while its connection broke.
    let lost: i64 = sqlx::query_scalar(
        "WITH job AS (SELECT job_id FROM dalsegno.enqueue('do', '\"nothing\"', run_at => now() + interval '1 hour'))
         SELECT job_id FROM job",
    )
    .fetch_one(&fixture.pool)
    .await
    .expect("enqueues");
    sqlx::query(
        "UPDATE dalsegno.jobs SET state = 'running', wait_reason = NULL, lease = nextval('dalsegno.leases'), attempt = 1,
                claimed_at = now(), worker_id = (SELECT id FROM dalsegno.workers WHERE gone_at IS NULL) WHERE id = $1",
    )
    .bind(lost)
    .execute(&fixture.pool)
    .await
    .expect("claims");
    fixture.terminate("claimer").await;
    // Any job makes the claimer notice that its connection is gone.
    fixture.put(&TestJob::Nothing).await;
    fixture.until_state(lost, "gone").await;
    assert_eq!(fixture.outcomes(lost).await, ["given_back", "done"]);
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_declared_lost_stops_its_runs_and_registers_anew() {
    let (fixture, handler_log) = (Fixture::new().await, HandlerLog::default());
    let worker = fixture.start(Fixture::config(), Registry::new(handler_log.clone()).with(act));
    let job = fixture.put(&TestJob::WaitForCancel).await;
    handler_log.until(1).await;
    sqlx::query(
        "UPDATE dalsegno.workers SET gone_at = now(), gone_reason = 'lost', waiting = false",
    )
    .execute(&fixture.pool)
    .await
    .expect("declares it lost");
    let lines = handler_log.until(2).await;
    assert_eq!(lines[1], "stopped Some(LeaseLost)");
    let next = fixture.put(&TestJob::Nothing).await;
    fixture.until_state(next.job_id, "gone").await;
    assert_eq!(
        fixture.state(job.job_id).await,
        "running",
        "a run without its lease writes nothing"
    );
    assert!(fixture.outcomes(job.job_id).await.is_empty());
    worker.shutdown.hard.cancel();
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_workers_job_is_claimed_by_another() {
    let (fixture, handler_log) = (Fixture::new().await, HandlerLog::default());
    let job = fixture.put(&TestJob::Nothing).await;
    // State of a killed worker: registered, with a claim, and silent since.
    sqlx::query(
        "WITH dead AS (INSERT INTO dalsegno.workers (id, lease_until, slots, queues)
                       VALUES (gen_random_uuid(), now() + interval '1 hour', 1, '{default}') RETURNING id)
         UPDATE dalsegno.jobs SET state = 'running', lease = nextval('dalsegno.leases'), attempt = 1, claimed_at = now(),
                worker_id = (SELECT id FROM dead) WHERE id = $1",
    )
    .bind(job.job_id)
    .execute(&fixture.pool)
    .await
    .expect("claims");
    leases::end(&fixture.pool, 0).await.expect("ends its lease");
    let worker = fixture.start(Fixture::config(), Registry::new(handler_log.clone()).with(act));
    fixture.until_state(job.job_id, "gone").await;
    assert_eq!(fixture.outcomes(job.job_id).await, ["lost", "done"]);
    assert_eq!(handler_log.lines(), ["Nothing 1"], "a crash uses up no attempt");
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_starts_before_its_database_and_stops_without_it() {
    let handler_log = HandlerLog::default();
    let pool = PgPoolOptions::new()
        .acquire_timeout(Duration::from_secs(1))
        .connect_lazy("postgres://tester@127.0.0.1:9/none")
        .expect("is a URL");
    let shutdown = dalsegno::shutdown::Shutdown::new();
    let running = tokio::spawn(run_worker(
        Fixture::config(),
        dalsegno::queue::Identity::default(),
        Registry::new(handler_log).with(act),
        pool,
        shutdown.clone(),
    ));
    tokio::task::yield_now().await;
    assert!(!running.is_finished());
    shutdown.soft.cancel();
    let stopped = tokio::time::timeout(MAX_WAIT, running).await;
    stopped.expect("stops in time").expect("does not panic").expect("stops in order");
}

/// A worker that lacks a part would look healthy.
#[tokio::test(flavor = "multi_thread")]
async fn a_panicking_part_ends_the_worker_with_an_error() {
    let points = [
        (CrashPoint::AfterClaim, "claimer"),
        (CrashPoint::AfterCommit, "writer of job results"),
        (CrashPoint::AfterRenew, "heartbeat"),
    ];
    for (point, part) in points {
        let fixture = Fixture::new().await;
        let go_on = Arc::new(Notify::new());
        let config = Config { panic_at: Some(point), ..Fixture::config() };
        let registry = Registry::new(go_on.clone()).with(run_waiting_job);
        let worker = fixture.start(config, registry);
        let job = fixture.put(&WaitingJob).await;
        if part == "heartbeat" {
            // A lease is renewed only while a job runs.
            worker.shutdown.soft.cancelled().await;
        }
        go_on.notify_one();
        let ended = tokio::time::timeout(MAX_WAIT, worker.running).await;
        let ended = ended.expect("the worker ends").expect("does not panic itself");
        let panicked =
            matches!(&ended, Err(WorkerError::Panicked { part: which }) if *which == part);
        assert!(panicked, "{part}: {ended:?}");
        // The next worker takes over the rest.
        fixture.end_leases().await;
        go_on.notify_one();
        let next = fixture.start(Fixture::config(), Registry::new(go_on).with(run_waiting_job));
        fixture.until_state(job.job_id, "gone").await;
        next.stop().await;
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct WaitingJob;

impl Job for WaitingJob {
    const KIND: &'static str = "wait for it";
}

async fn run_waiting_job(_: WaitingJob, _: Run, go_on: Arc<Notify>) -> HandlerResult {
    go_on.notified().await;
    go_on.notify_one();
    Ok(End::Done)
}

/// A job with two queries and one attempt.
#[derive(Debug, Serialize, Deserialize)]
struct TwoQueriesJob;

impl Job for TwoQueriesJob {
    const KIND: &'static str = "ask twice";

    fn policy() -> Policy {
        let backoff = Backoff { first: Duration::from_millis(50), cap: Duration::from_millis(200) };
        Policy { max_attempts: 1, backoff, ..Policy::default() }
    }
}

/// Runs the job; the test cuts the database off between the two queries.
async fn run_two_queries(
    _: TwoQueriesJob,
    run: Run,
    (handler_log, go_on): (HandlerLog, Arc<Notify>),
) -> HandlerResult {
    sqlx::query("SELECT 1").execute(run.pool()).await.map_err(JobError::retry)?;
    handler_log.note(format!("attempt {}", run.attempt()));
    if handler_log.lines().len() == 1 {
        go_on.notified().await;
        // The broken connection is discarded; the next query opens a new one.
        let _ = sqlx::query("SELECT 1").execute(run.pool()).await;
    }
    let asked = sqlx::query("SELECT 2").execute(run.pool()).await;
    if let Err(error) = &asked {
        handler_log.note(format!("{error:?}"));
    }
    asked.map_err(JobError::retry)?;
    Ok(End::Done)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_balancer_that_accepts_and_closes_uses_up_no_attempt() {
    let fixture = Fixture::new().await;
    let proxy = Proxy::start(&fixture.pool.connect_options()).await;
    let pool = PgPoolOptions::new()
        .acquire_timeout(Duration::from_secs(20))
        .connect_lazy(&proxy.url_with_tls_preferred(&fixture.pool.connect_options()))
        .expect("is a URL");
    let (handler_log, go_on) = (HandlerLog::default(), Arc::new(Notify::new()));
    let shutdown = dalsegno::shutdown::Shutdown::new();
    let running = tokio::spawn(run_worker(
        Fixture::config(),
        dalsegno::queue::Identity::default(),
        Registry::new((handler_log.clone(), go_on.clone())).with(run_two_queries),
        pool.clone(),
        shutdown.clone(),
    ));
    let job = fixture.put(&TwoQueriesJob).await;
    handler_log.until(1).await;
    proxy.close();
    go_on.notify_one();
    handler_log.until(2).await;
    proxy.resume_traffic();
    fixture.until_state(job.job_id, "gone").await;
    let lines = handler_log.lines();
    assert!(lines[1].starts_with("Protocol("), "{lines:?}");
    assert_eq!(lines[2], "attempt 1", "{lines:?}");
    assert_eq!(fixture.outcomes(job.job_id).await, ["snooze", "done"]);
    let worker = Worker { shutdown, running };
    worker.stop().await;
    proxy.end().await;
}

/// Returns the backend pid of the listening connection, once it differs from `not`: a terminated backend is listed for
/// a moment longer.
pub async fn until_listening(fixture: &Fixture, not: Option<i32>) -> i32 {
    let find = async || {
        sqlx::query_scalar::<_, i32>(
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database()
                AND application_name = 'dalsegno listener' AND query LIKE 'LISTEN%' AND pid IS DISTINCT FROM $1",
        )
        .bind(not)
        .fetch_optional(&fixture.pool)
        .await
        .expect("looks")
    };
    until("a listening connection", async || find().await.is_some()).await;
    find().await.expect("still listens")
}

/// An error response without a code, as after a truncation.
#[derive(Debug, thiserror::Error)]
#[error("")]
struct ErrorWithoutCode;

impl DatabaseError for ErrorWithoutCode {
    fn message(&self) -> &str {
        ""
    }

    fn as_error(&self) -> &(dyn std::error::Error + Send + Sync + 'static) {
        self
    }

    fn as_error_mut(&mut self) -> &mut (dyn std::error::Error + Send + Sync + 'static) {
        self
    }

    fn into_error(self: Box<Self>) -> Box<dyn std::error::Error + Send + Sync + 'static> {
        self
    }

    fn kind(&self) -> sqlx::error::ErrorKind {
        sqlx::error::ErrorKind::Other
    }
}

#[test]
fn an_answer_without_a_code_counts_as_a_lost_database() {
    let error = sqlx::Error::Database(Box::new(ErrorWithoutCode));
    assert_eq!(fault_of(&error), Some(Fault::Away));
    assert!(is_unavailable(&error));
}
