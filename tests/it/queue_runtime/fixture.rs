//! A database for each test, workers on it, and waits for conditions instead of sleeps.

use std::{
    future::Future,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use dalsegno::queue::{
    Config, EnqueueResult, Identity, Job, Options, Registry, WorkerError, enqueue, run_worker,
};
use dalsegno::shutdown::Shutdown;
use sqlx::{PgPool, postgres::PgPoolOptions};
use tokio::task::JoinHandle;

use crate::{app::TestDatabase, leases};

/// Longest wait for an expected event.
pub const MAX_WAIT: Duration = crate::app::SOON;

pub struct Fixture {
    pub pool: PgPool,
    // Dropped last: the connections go first.
    _database: TestDatabase,
}

pub struct Worker {
    pub shutdown: Shutdown,
    pub running: JoinHandle<Result<(), WorkerError>>,
}

/// Notes of handlers for the test, in order.
#[derive(Debug, Clone, Default)]
pub struct HandlerLog(Arc<Mutex<Vec<String>>>);

impl Fixture {
    pub async fn new() -> Self {
        let database = TestDatabase::migrated().await;
        let pool = PgPoolOptions::new().max_connections(20).connect_with(database.options.clone());
        Self { pool: pool.await.unwrap(), _database: database }
    }

    /// Returns a configuration with frequent heartbeats, and leases that outlast slow machines.
    pub fn config() -> Config {
        Config {
            slots: 8,
            heartbeat_secs: 1,
            lease_secs: 600,
            lease_margin_secs: 120,
            cancel_grace_secs: 120,
            ..Config::default()
        }
    }

    /// Returns a configuration of a worker that reacts to notifications only.
    pub fn notification_config() -> Config {
        Config {
            heartbeat_secs: 3_600,
            lease_secs: 10_000,
            poll_idle_ms: 3_600_000,
            listen_ping_secs: 3_600,
            ..Self::config()
        }
    }

    /// Ends the leases of all workers, as if they had died long ago.
    pub async fn end_leases(&self) {
        leases::end(&self.pool, std::process::id()).await.expect("ends leases");
    }

    pub fn start<S: Clone + Send + Sync + 'static>(
        &self,
        config: Config,
        registry: Registry<S>,
    ) -> Worker {
        let shutdown = Shutdown::new();
        let running = tokio::spawn(run_worker(
            config,
            Identity::default(),
            registry,
            self.pool.clone(),
            shutdown.clone(),
        ));
        Worker { shutdown, running }
    }

    pub async fn put<J: Job>(&self, job: &J) -> EnqueueResult {
        enqueue(&self.pool, job, &Options::default()).await.expect("enqueues")
    }

    pub async fn put_in<J: Job>(&self, job: &J, lane: &str) -> EnqueueResult {
        let options = Options { lane: Some(lane.to_owned()), ..Options::default() };
        enqueue(&self.pool, job, &options).await.expect("enqueues")
    }

    /// Returns the state of a job; `gone` if it is neither on the queue nor dead.
    pub async fn state(&self, job_id: i64) -> String {
        sqlx::query_scalar(
            "SELECT coalesce((SELECT state::text FROM dalsegno.jobs WHERE id = $1),
                             (SELECT 'dead' FROM dalsegno.dead_jobs WHERE id = $1), 'gone')",
        )
        .bind(job_id)
        .fetch_one(&self.pool)
        .await
        .expect("reads the state")
    }

    /// Returns the outcomes of a job's ended runs, in order.
    pub async fn outcomes(&self, job_id: i64) -> Vec<String> {
        sqlx::query_scalar(
            "SELECT outcome::text FROM dalsegno.runs WHERE job_id = $1 ORDER BY lease",
        )
        .bind(job_id)
        .fetch_all(&self.pool)
        .await
        .expect("reads the runs")
    }

    pub async fn until_state(&self, job_id: i64, wanted: &str) {
        let mut last = String::new();
        let deadline = Instant::now() + MAX_WAIT;
        while Instant::now() < deadline {
            last = self.state(job_id).await;
            if last == wanted {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("job {job_id} is {last}, not {wanted}, after {MAX_WAIT:?}");
    }

    /// Terminates the connections of a part of the workers, from the server's side.
    pub async fn terminate(&self, part: &str) -> i64 {
        sqlx::query_scalar(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
              WHERE datname = current_database() AND application_name = $1",
        )
        .bind(format!("dalsegno {part}"))
        .fetch_one(&self.pool)
        .await
        .expect("terminates")
    }

    /// Returns the number of connections of a part of the workers.
    pub async fn n_connections(&self, part: &str) -> i64 {
        sqlx::query_scalar(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = $1",
        )
        .bind(format!("dalsegno {part}"))
        .fetch_one(&self.pool)
        .await
        .expect("counts")
    }
}

impl Worker {
    /// Stops softly and waits for the end.
    pub async fn stop(self) {
        self.shutdown.soft.cancel();
        let stopped = tokio::time::timeout(MAX_WAIT, self.running).await;
        stopped.expect("stops in time").expect("does not panic").expect("stops in order");
    }
}

impl HandlerLog {
    pub fn note(&self, line: impl Into<String>) {
        self.0.lock().expect("is not poisoned").push(line.into());
    }

    pub fn lines(&self) -> Vec<String> {
        self.0.lock().expect("is not poisoned").clone()
    }

    pub async fn until(&self, n_lines: usize) -> Vec<String> {
        until("the handlers to report", async || self.lines().len() >= n_lines).await;
        self.lines()
    }
}

/// Waits for a condition, and fails after `MAX_WAIT`.
pub async fn until<F: Future<Output = bool>>(what: &str, condition: impl Fn() -> F) {
    let deadline = Instant::now() + MAX_WAIT;
    while !condition().await {
        assert!(Instant::now() < deadline, "waited {MAX_WAIT:?} for {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
