//! The database under the bench, and the worker that runs on it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::Context;
use dalsegno::db;
use dalsegno::queue::{
    Config, End, EnqueueResult, HandlerResult, Identity, Job, JobError, Options, Registry, Run,
    WorkerError, enqueue_many, run_worker,
};
use dalsegno::shutdown::Shutdown;
use serde::{Deserialize, Serialize};
use sqlx::{Executor, PgPool, postgres::PgPoolOptions};
use tokio::{
    sync::{Notify, mpsc},
    task::JoinHandle,
};

use crate::common::{Database, Server};

/// A job that does nothing.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Noop {
    pub n: u64,
}

impl Job for Noop {
    const KIND: &'static str = "noop";
}

/// A job that commits its end in a transaction of its own, with a write.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct OwnCommit {
    pub n: u64,
}

impl Job for OwnCommit {
    const KIND: &'static str = "own_commit";
}

/// The database under the bench.
#[derive(Clone)]
pub struct Fixture {
    pub pool: PgPool,
    database: Database,
}

/// A worker in this process that counts its finished jobs.
pub struct Worker {
    shutdown: Shutdown,
    tally: Arc<Tally>,
    running: JoinHandle<Result<(), WorkerError>>,
}

/// Counters that handlers update.
pub struct Tally {
    n_done: AtomicUsize,
    target: AtomicUsize,
    reached: Notify,
    arrivals: mpsc::UnboundedSender<(u64, Instant)>,
}

impl Fixture {
    /// Creates a database of its own on the server, with the schema and two tables of the bench.
    pub async fn new(server: &Server) -> anyhow::Result<Self> {
        let database = Database::create(server).await?;
        let pool = PgPoolOptions::new()
            .max_connections(80)
            .test_before_acquire(false)
            .after_connect(|conn, _meta| {
                Box::pin(async move {
                    conn.execute("set plan_cache_mode = force_generic_plan; set jit = off").await?;
                    Ok(())
                })
            })
            .connect_with(database.options.clone())
            .await
            .context("connecting to the bench's database")?;
        db::migrate(&pool).await?;
        for table in [
            "create table bench_effects (n bigint)",
            "create table bench_bare (id bigint generated always as identity primary key, kind text, payload jsonb)",
        ] {
            sqlx::query(table).execute(&pool).await?;
        }
        Ok(Self { pool, database })
    }

    /// Drops the database.
    pub async fn remove(self) -> anyhow::Result<()> {
        self.pool.close().await;
        self.database.remove().await
    }

    /// Empties the queue and writes a checkpoint.
    pub async fn empty(&self) -> anyhow::Result<()> {
        sqlx::query(
            "TRUNCATE dalsegno.jobs, dalsegno.job_payloads, dalsegno.lanes, dalsegno.lane_sweeps, dalsegno.runs, dalsegno.dead_jobs,
                      dalsegno.workers, dalsegno.pauses, dalsegno.cancel_requests, dalsegno.idempotency_keys,
                      dalsegno.transition_deltas, dalsegno.transition_totals, bench_effects, bench_bare",
        )
        .execute(&self.pool)
        .await?;
        sqlx::query("CHECKPOINT").execute(&self.pool).await?;
        Ok(())
    }

    /// Updates the statistics, as in a service in use.
    pub async fn analyze(&self) -> anyhow::Result<()> {
        for table in ["jobs", "job_payloads", "lanes"] {
            sqlx::query(sqlx::AssertSqlSafe(format!("VACUUM ANALYZE dalsegno.{table}")))
                .execute(&self.pool)
                .await?;
        }
        sqlx::query("CHECKPOINT").execute(&self.pool).await?;
        Ok(())
    }

    pub async fn fill<J: Job>(
        &self,
        jobs: impl Iterator<Item = (J, Options)>,
    ) -> anyhow::Result<Vec<EnqueueResult>> {
        let mut all = Vec::new();
        let mut jobs = jobs.peekable();
        while jobs.peek().is_some() {
            all.extend(enqueue_many(&self.pool, jobs.by_ref().take(5_000)).await?);
        }
        Ok(all)
    }

    pub fn start_worker(&self, slots: u32) -> (Worker, mpsc::UnboundedReceiver<(u64, Instant)>) {
        let (arrivals, arrived) = mpsc::unbounded_channel();
        let tally = Arc::new(Tally {
            n_done: AtomicUsize::new(0),
            target: AtomicUsize::new(usize::MAX),
            reached: Notify::new(),
            arrivals,
        });
        let registry = Registry::new(Arc::clone(&tally)).with(noop).with(own_commit);
        let shutdown = Shutdown::new();
        let config = Config { slots, ..Config::default() };
        let running = tokio::spawn(run_worker(
            config,
            Identity::default(),
            registry,
            self.pool.clone(),
            shutdown.clone(),
        ));
        (Worker { shutdown, tally, running }, arrived)
    }

    /// Returns the number of live jobs.
    pub async fn n_live(&self) -> anyhow::Result<i64> {
        Ok(sqlx::query_scalar("SELECT count(*) FROM dalsegno.jobs").fetch_one(&self.pool).await?)
    }

    /// Returns the number of row versions written so far in the tables of the queue.
    pub async fn row_versions(&self) -> anyhow::Result<i64> {
        sqlx::query("SELECT pg_stat_force_next_flush()").execute(&self.pool).await?;
        Ok(sqlx::query_scalar(
            "SELECT sum(n_tup_ins + n_tup_upd)::bigint FROM pg_stat_user_tables WHERE schemaname = 'dalsegno'",
        )
        .fetch_one(&self.pool)
        .await?)
    }
}

impl Worker {
    /// Waits until that many handlers have returned.
    pub async fn wait_for(&self, n_jobs: usize) {
        self.tally.target.store(n_jobs, Ordering::SeqCst);
        while self.tally.n_done.load(Ordering::SeqCst) < n_jobs {
            let reached = self.tally.reached.notified();
            if self.tally.n_done.load(Ordering::SeqCst) >= n_jobs {
                break;
            }
            let _ = tokio::time::timeout(Duration::from_secs(1), reached).await;
        }
    }

    /// Stops the worker; every end is written when this returns.
    pub async fn stop(self) -> anyhow::Result<()> {
        self.shutdown.soft.cancel();
        self.running.await??;
        Ok(())
    }
}

impl Tally {
    fn done(&self) {
        if self.n_done.fetch_add(1, Ordering::SeqCst) + 1 == self.target.load(Ordering::SeqCst) {
            self.reached.notify_waiters();
        }
    }
}

async fn noop(job: Noop, _run: Run, tally: Arc<Tally>) -> HandlerResult {
    if job.n & MARK != 0 {
        let _ = tally.arrivals.send((job.n & !MARK, Instant::now()));
    }
    tally.done();
    Ok(End::Done)
}

async fn own_commit(job: OwnCommit, run: Run, tally: Arc<Tally>) -> HandlerResult {
    let mut tx = run.pool().begin().await.map_err(JobError::retry)?;
    sqlx::query("INSERT INTO bench_effects VALUES ($1)")
        .bind(job.n as i64)
        .execute(&mut *tx)
        .await
        .map_err(JobError::retry)?;
    let end = run.commit(tx).await?;
    tally.done();
    Ok(end)
}

/// Marks a job that reports the moment it ran.
pub const MARK: u64 = 1 << 62;
