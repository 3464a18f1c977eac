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
    ends::{Do, act},
    ground::{Diary, Ground, PATIENCE, Worker, until},
};
use crate::{leases, queue::proxy::Proxy};

#[tokio::test(flavor = "multi_thread")]
async fn a_terminated_listener_comes_back() {
    let (ground, diary) = (Ground::new().await, Diary::default());
    // Without a notification it looks once a minute.
    let config = Config { poll_busy_ms: 3_600_000, ..Ground::deaf_to_time() };
    let worker = ground.start(config, Registry::new(diary.clone()).with(act));
    let mut listening = until_listening(&ground, None).await;
    let called = async {
        for _ in 0..5 {
            sqlx::query("SELECT pg_terminate_backend($1)")
                .bind(listening)
                .execute(&ground.pool)
                .await
                .expect("terminates");
            listening = until_listening(&ground, Some(listening)).await;
            let job = ground.put(&Do::Nothing).await;
            ground.until_state(job.job_id, "gone").await;
        }
    };
    tokio::time::timeout(PATIENCE, called).await.expect("it is called");
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_notification_that_is_not_about_jobs_reaches_the_other_parts_of_the_process() {
    let (ground, diary) = (Ground::new().await, Diary::default());
    let connections = Connections::from(ground.pool.clone());
    let (notices, shutdown) = (connections.notices.clone(), dalsegno::shutdown::Shutdown::new());
    let registry = Registry::new(diary).with(act);
    let identity = dalsegno::queue::Identity::default();
    let run = run_worker(Ground::config(), identity, registry, connections, shutdown.clone());
    let worker = Worker { shutdown, running: tokio::spawn(run) };
    until("notifications arrive", async || notices.is_hearing()).await;
    for payload in ["schedules", "anything else"] {
        // Drops earlier notifications, such as that of the listener's start.
        let _ = tokio::time::timeout(Duration::ZERO, notices.heard()).await;
        sqlx::query("SELECT pg_notify('dalsegno', $1)")
            .bind(payload)
            .execute(&ground.pool)
            .await
            .expect("notifies");
        tokio::time::timeout(PATIENCE, notices.heard()).await.expect("rings");
    }
    ground.terminate("listener").await;
    tokio::time::timeout(PATIENCE, notices.heard()).await.expect("rings when it is lost");
    until("notifications arrive again", async || notices.is_hearing()).await;
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn terminated_connections_lose_nothing_and_end_no_worker() {
    let (ground, diary) = (Ground::new().await, Diary::default());
    let worker = ground.start(Ground::config(), Registry::new(diary.clone()).with(act));
    let mut jobs = Vec::new();
    for round in 0..20 {
        for _ in 0..10 {
            jobs.push(ground.put(&Do::Nothing).await.job_id);
        }
        let part = ["claimer", "completer", "heartbeat", "upkeep"][round % 4];
        ground.terminate(part).await;
    }
    for job in &jobs {
        ground.until_state(*job, "gone").await;
    }
    assert!(!worker.running.is_finished());
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn polling_alone_is_enough() {
    let (ground, diary) = (Ground::new().await, Diary::default());
    let config = Config { listen: false, ..Ground::config() };
    let worker = ground.start(config, Registry::new(diary.clone()).with(act));
    for _ in 0..3 {
        let job = ground.put(&Do::FailTwice).await;
        ground.until_state(job.job_id, "gone").await;
    }
    assert_eq!(ground.n_connections("listener").await, 0);
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_of_a_claim_whose_answer_was_lost_are_given_back() {
    let (ground, diary) = (Ground::new().await, Diary::default());
    let worker = ground.start(Ground::config(), Registry::new(diary.clone()).with(act));
    let first = ground.put(&Do::Nothing).await;
    ground.until_state(first.job_id, "gone").await;
    // State after a claim that committed while its connection broke.
    let lost: i64 = sqlx::query_scalar(
        "WITH job AS (SELECT job_id FROM dalsegno.enqueue('do', '\"nothing\"', run_at => now() + interval '1 hour'))
         SELECT job_id FROM job",
    )
    .fetch_one(&ground.pool)
    .await
    .expect("enqueues");
    sqlx::query(
        "UPDATE dalsegno.jobs SET state = 'running', wait_reason = NULL, lease = nextval('dalsegno.leases'), attempt = 1,
                claimed_at = now(), worker_id = (SELECT id FROM dalsegno.workers WHERE gone_at IS NULL) WHERE id = $1",
    )
    .bind(lost)
    .execute(&ground.pool)
    .await
    .expect("claims");
    ground.terminate("claimer").await;
    // Any job makes the claimer notice that its connection is gone.
    ground.put(&Do::Nothing).await;
    ground.until_state(lost, "gone").await;
    assert_eq!(ground.outcomes(lost).await, ["given_back", "done"]);
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_is_declared_lost_stops_its_runs_and_registers_anew() {
    let (ground, diary) = (Ground::new().await, Diary::default());
    let worker = ground.start(Ground::config(), Registry::new(diary.clone()).with(act));
    let job = ground.put(&Do::WaitForCancel).await;
    diary.until(1).await;
    sqlx::query(
        "UPDATE dalsegno.workers SET gone_at = now(), gone_reason = 'lost', waiting = false",
    )
    .execute(&ground.pool)
    .await
    .expect("declares it lost");
    let lines = diary.until(2).await;
    assert_eq!(lines[1], "stopped Some(LeaseLost)");
    let next = ground.put(&Do::Nothing).await;
    ground.until_state(next.job_id, "gone").await;
    assert_eq!(ground.state(job.job_id).await, "running", "a run without its lease writes nothing");
    assert!(ground.outcomes(job.job_id).await.is_empty());
    worker.shutdown.hard.cancel();
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_of_a_lost_worker_is_taken_back_by_another() {
    let (ground, diary) = (Ground::new().await, Diary::default());
    let job = ground.put(&Do::Nothing).await;
    // State of a killed worker: registered, with a claim, and silent since.
    sqlx::query(
        "WITH dead AS (INSERT INTO dalsegno.workers (id, lease_until, slots, queues)
                       VALUES (gen_random_uuid(), now() + interval '1 hour', 1, '{default}') RETURNING id)
         UPDATE dalsegno.jobs SET state = 'running', lease = nextval('dalsegno.leases'), attempt = 1, claimed_at = now(),
                worker_id = (SELECT id FROM dead) WHERE id = $1",
    )
    .bind(job.job_id)
    .execute(&ground.pool)
    .await
    .expect("claims");
    leases::end(&ground.pool, 0).await.expect("ends its lease");
    let worker = ground.start(Ground::config(), Registry::new(diary.clone()).with(act));
    ground.until_state(job.job_id, "gone").await;
    assert_eq!(ground.outcomes(job.job_id).await, ["lost", "done"]);
    assert_eq!(diary.lines(), ["Nothing 1"], "a crash burns no attempt");
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_starts_before_its_database_and_stops_without_it() {
    let diary = Diary::default();
    let pool = PgPoolOptions::new()
        .acquire_timeout(Duration::from_secs(1))
        .connect_lazy("postgres://nobody@127.0.0.1:9/none")
        .expect("is a URL");
    let shutdown = dalsegno::shutdown::Shutdown::new();
    let running = tokio::spawn(run_worker(
        Ground::config(),
        dalsegno::queue::Identity::default(),
        Registry::new(diary).with(act),
        pool,
        shutdown.clone(),
    ));
    tokio::task::yield_now().await;
    assert!(!running.is_finished());
    shutdown.soft.cancel();
    let stopped = tokio::time::timeout(PATIENCE, running).await;
    stopped.expect("stops in time").expect("does not panic").expect("stops in order");
}

/// A worker that lacks a part would look healthy.
#[tokio::test(flavor = "multi_thread")]
async fn a_part_of_the_worker_that_panics_ends_the_worker_with_an_error() {
    let points = [
        (CrashPoint::AfterClaim, "claimer"),
        (CrashPoint::AfterCommit, "writer of job results"),
        (CrashPoint::AfterRenew, "heartbeat"),
    ];
    for (point, part) in points {
        let ground = Ground::new().await;
        let go_on = Arc::new(Notify::new());
        let config = Config { panic_at: Some(point), ..Ground::config() };
        let registry = Registry::new(go_on.clone()).with(wait_for_it);
        let worker = ground.start(config, registry);
        let job = ground.put(&WaitForIt).await;
        if part == "heartbeat" {
            // A lease is renewed only while a job runs.
            worker.shutdown.soft.cancelled().await;
        }
        go_on.notify_one();
        let ended = tokio::time::timeout(PATIENCE, worker.running).await;
        let ended = ended.expect("the worker ends").expect("does not panic itself");
        let panicked =
            matches!(&ended, Err(WorkerError::Panicked { part: which }) if *which == part);
        assert!(panicked, "{part}: {ended:?}");
        // The next worker takes over the rest.
        ground.end_leases().await;
        go_on.notify_one();
        let next = ground.start(Ground::config(), Registry::new(go_on).with(wait_for_it));
        ground.until_state(job.job_id, "gone").await;
        next.stop().await;
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct WaitForIt;

impl Job for WaitForIt {
    const KIND: &'static str = "wait for it";
}

async fn wait_for_it(_: WaitForIt, _: Run, go_on: Arc<Notify>) -> HandlerResult {
    go_on.notified().await;
    go_on.notify_one();
    Ok(End::Done)
}

/// A job with two queries and one attempt.
#[derive(Debug, Serialize, Deserialize)]
struct AskTwice;

impl Job for AskTwice {
    const KIND: &'static str = "ask twice";

    fn policy() -> Policy {
        let backoff = Backoff { first: Duration::from_millis(50), cap: Duration::from_millis(200) };
        Policy { max_attempts: 1, backoff, ..Policy::default() }
    }
}

/// Runs the job; the test cuts the database off between the two queries.
async fn ask_twice(_: AskTwice, run: Run, (diary, go_on): (Diary, Arc<Notify>)) -> HandlerResult {
    sqlx::query("SELECT 1").execute(run.pool()).await.map_err(JobError::retry)?;
    diary.note(format!("attempt {}", run.attempt()));
    if diary.lines().len() == 1 {
        go_on.notified().await;
        // The broken connection is discarded; the next query opens a new one.
        let _ = sqlx::query("SELECT 1").execute(run.pool()).await;
    }
    let asked = sqlx::query("SELECT 2").execute(run.pool()).await;
    if let Err(error) = &asked {
        diary.note(format!("{error:?}"));
    }
    asked.map_err(JobError::retry)?;
    Ok(End::Done)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_balancer_that_accepts_and_closes_uses_up_no_attempt() {
    let ground = Ground::new().await;
    let proxy = Proxy::start(&ground.pool.connect_options()).await;
    let pool = PgPoolOptions::new()
        .acquire_timeout(Duration::from_secs(20))
        .connect_lazy(&proxy.url_with_tls_preferred(&ground.pool.connect_options()))
        .expect("is a URL");
    let (diary, go_on) = (Diary::default(), Arc::new(Notify::new()));
    let shutdown = dalsegno::shutdown::Shutdown::new();
    let running = tokio::spawn(run_worker(
        Ground::config(),
        dalsegno::queue::Identity::default(),
        Registry::new((diary.clone(), go_on.clone())).with(ask_twice),
        pool.clone(),
        shutdown.clone(),
    ));
    let job = ground.put(&AskTwice).await;
    diary.until(1).await;
    proxy.close();
    go_on.notify_one();
    diary.until(2).await;
    proxy.heal();
    ground.until_state(job.job_id, "gone").await;
    let lines = diary.lines();
    assert!(lines[1].starts_with("Protocol("), "{lines:?}");
    assert_eq!(lines[2], "attempt 1", "{lines:?}");
    assert_eq!(ground.outcomes(job.job_id).await, ["snooze", "done"]);
    let worker = Worker { shutdown, running };
    worker.stop().await;
    proxy.end().await;
}

/// Returns the backend pid of the listening connection, once it differs from `not`: a terminated backend is listed for
/// a moment longer.
pub async fn until_listening(ground: &Ground, not: Option<i32>) -> i32 {
    let find = async || {
        sqlx::query_scalar::<_, i32>(
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database()
                AND application_name = 'dalsegno listener' AND query LIKE 'LISTEN%' AND pid IS DISTINCT FROM $1",
        )
        .bind(not)
        .fetch_optional(&ground.pool)
        .await
        .expect("looks")
    };
    until("a listening connection", async || find().await.is_some()).await;
    find().await.expect("still listens")
}

/// An error response without a code, as after a truncation.
#[derive(Debug, thiserror::Error)]
#[error("")]
struct NoCode;

impl DatabaseError for NoCode {
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
fn an_answer_without_a_code_is_a_lost_database() {
    let error = sqlx::Error::Database(Box::new(NoCode));
    assert_eq!(fault_of(&error), Some(Fault::Away));
    assert!(is_unavailable(&error));
}
