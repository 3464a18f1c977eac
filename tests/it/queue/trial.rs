//! A trial of the queue: a database, the enqueued jobs, and the check of their results.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use dalsegno::{
    jobs::trial::Note,
    queue::{self, Job, Options},
};
use sqlx::{PgPool, postgres::PgPoolOptions};
use tokio::time::Instant;

use super::{
    checker::{Expected, violations},
    journal::Journal,
    supervisor::WorkerSupervisor,
    watch::StuckJobWatch,
};
use crate::{
    app::{SOON, TestDatabase},
    cluster::scratch_folder,
    leases::LeaseEnder,
};

/// The lease of [`SHORT_LEASES`].
#[cfg(feature = "chaos")]
pub const LEASE: Duration = Duration::from_secs(5);

/// Settings of workers whose leases expire during the test. All others have long ones.
pub const SHORT_LEASES: [(&str, &str); 3] = [
    ("DALSEGNO_QUEUE__LEASE_SECS", "5"),
    ("DALSEGNO_QUEUE__LEASE_MARGIN_SECS", "1"),
    ("DALSEGNO_QUEUE__CANCEL_GRACE_SECS", "1"),
];

const TABLES: &str = "
    CREATE SCHEMA trial;
    CREATE TABLE trial.enqueued (job_id bigint PRIMARY KEY, kind text NOT NULL);
    CREATE TABLE trial.starts (job_id bigint, lease bigint, lane text, lane_no bigint, worker bigint, started_at timestamptz,
                               PRIMARY KEY (job_id, lease));
    CREATE TABLE trial.effects (job_id bigint, lease bigint, lane text, lane_no bigint, worker bigint, what text,
                                started_at timestamptz, ended_at timestamptz, PRIMARY KEY (job_id, lease));
    CREATE TABLE trial.refusals (job_id bigint, lease bigint, PRIMARY KEY (job_id, lease));
";

/// A database with the tables of the trial, and the jobs that the test knows to be committed.
pub struct Trial {
    pub pool: PgPool,
    pub workers: LeaseEnder,
    url: String,
    watch: StuckJobWatch,
    acknowledged: Mutex<Vec<i64>>,
    lane_ends: Mutex<HashMap<String, i64>>,
    folder: tempfile::TempDir,
    // Dropped last: the fields above still have connections to it.
    _database: Option<TestDatabase>,
}

impl Trial {
    /// Creates a trial in a database of the shared server.
    pub async fn new() -> Self {
        let database = TestDatabase::migrated().await;
        let (pool, url) = (database.pool().await, database.url());
        Self::in_database(pool, url, Some(database)).await
    }

    /// Creates a trial on a server that the test may kill.
    pub async fn on_own_server(url: String) -> Self {
        let pool = PgPoolOptions::new().max_connections(10).connect(&url).await.unwrap();
        dalsegno::db::migrate(&pool).await.unwrap();
        Self::in_database(pool, url, None).await
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns a gate for notes, which is closed until the test [opens](open) it.
    pub fn gate(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Enqueues a note, as the next of its lane if it has one.
    pub async fn note(&self, lane: Option<&str>, note: Note) -> i64 {
        self.try_note(lane, note).await.unwrap()
    }

    /// Like `note`, with a database that may be unavailable. After an error, the job may exist or not.
    pub async fn try_note(&self, lane: Option<&str>, mut note: Note) -> anyhow::Result<i64> {
        if let Some(lane) = lane {
            let mut ends = self.lane_ends.lock().unwrap_or_else(PoisonError::into_inner);
            let end = ends.entry(lane.to_owned()).or_default();
            *end += 1;
            note.lane_no = *end;
        }
        self.enqueue(lane, &note).await
    }

    /// Enqueues another job.
    pub async fn job<J: Job + Sync>(&self, lane: Option<&str>, job: &J) -> i64 {
        self.enqueue(lane, job).await.unwrap()
    }

    /// Records a job that was enqueued in another way, for the checker.
    pub async fn record(&self, job_id: i64, kind: &str) {
        sqlx::query("INSERT INTO trial.enqueued (job_id, kind) VALUES ($1, $2)")
            .bind(job_id)
            .bind(kind)
            .execute(&self.pool)
            .await
            .unwrap();
        self.acknowledge(job_id);
    }

    /// Forgets all acknowledged jobs but the first `n_kept`, and returns them.
    pub fn expect_lost(&self, n_kept: usize) -> Vec<i64> {
        let mut known = self.acknowledged.lock().unwrap_or_else(PoisonError::into_inner);
        known.split_off(n_kept)
    }

    pub fn n_acknowledged(&self) -> usize {
        self.acknowledged.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    pub async fn count(&self, sql: &'static str) -> i64 {
        sqlx::query_scalar(sql).fetch_one(&self.pool).await.unwrap()
    }

    /// Waits until a row count reaches `at_least`.
    pub async fn until(&self, what: &str, at_least: i64, sql: &'static str) {
        crate::app::eventually(what, async || {
            // The server may be unavailable for a moment; the deadline of `eventually` is the limit.
            let counted = sqlx::query_scalar::<_, i64>(sql).fetch_one(&self.pool).await;
            counted.is_ok_and(|n| n >= at_least).then_some(())
        })
        .await;
    }

    /// Waits until `holds`, and fails after `limit`.
    #[cfg(feature = "chaos")]
    pub async fn until_within(
        &self,
        limit: Duration,
        what: &str,
        mut holds: impl AsyncFnMut() -> bool,
    ) {
        let deadline = Instant::now() + limit;
        while !holds().await {
            assert!(Instant::now() < deadline, "not within {limit:?}: {what}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Waits until at most `n_left` jobs are left, and replaces dead workers. Fails with the states of the remaining
    /// jobs. The [watch](super::watch) detects stuck jobs meanwhile.
    pub async fn settle(&self, supervisor: &mut WorkerSupervisor<'_>, n_left: i64) {
        let deadline = Instant::now() + SOON;
        loop {
            supervisor.replace_dead();
            let n_live = sqlx::query_scalar::<_, i64>("SELECT count(*) FROM dalsegno.jobs");
            let n_live = n_live.fetch_one(&self.pool).await;
            if n_live.as_ref().is_ok_and(|n| *n <= n_left) {
                return;
            }
            if Instant::now() >= deadline {
                let journal = Journal::read(&self.pool).await;
                panic!("still there after {SOON:?}: {:#?}\n{}", journal.live, supervisor.logs());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Reads the journal, and fails with all violations.
    pub async fn check(&self, expected: &Expected) -> Journal {
        let journal = Journal::read(&self.pool).await;
        let mut found = violations(&journal, expected);
        let known: Vec<i64> = journal.enqueued.iter().map(|job| job.job_id).collect();
        let acknowledged = self.acknowledged.lock().unwrap_or_else(PoisonError::into_inner).clone();
        found.extend(
            acknowledged
                .iter()
                .filter(|id| !known.contains(id))
                .map(|id| format!("job {id} was acknowledged and is not there")),
        );
        found.extend(self.watch.seen());
        assert!(found.is_empty(), "{} violations:\n{}", found.len(), found.join("\n"));
        journal
    }

    /// Closes all connections, at the end of each test. The drop of the database blocks the runtime; a connection that
    /// is just being opened would keep the server waiting for its password.
    pub async fn end(&self) {
        self.watch.end().await;
        self.pool.close().await;
    }

    async fn in_database(pool: PgPool, url: String, database: Option<TestDatabase>) -> Self {
        sqlx::raw_sql(TABLES).execute(&pool).await.unwrap();
        Self {
            watch: StuckJobWatch::begin(pool.clone()),
            workers: LeaseEnder::default(),
            pool,
            url,
            acknowledged: Mutex::default(),
            lane_ends: Mutex::default(),
            folder: scratch_folder(),
            _database: database,
        }
    }

    /// Commits the job together with the test's record of it, so that neither exists alone.
    async fn enqueue<J: Job + Sync>(&self, lane: Option<&str>, job: &J) -> anyhow::Result<i64> {
        let mut tx = self.pool.begin().await?;
        let options = Options { lane: lane.map(str::to_owned), ..Options::default() };
        let job_id = queue::enqueue(&mut *tx, job, &options).await?.job_id;
        sqlx::query("INSERT INTO trial.enqueued (job_id, kind) VALUES ($1, $2)")
            .bind(job_id)
            .bind(J::KIND)
            .execute(&mut *tx)
            .await?;
        tx.commit().await?;
        self.acknowledge(job_id);
        Ok(job_id)
    }

    fn acknowledge(&self, job_id: i64) {
        self.acknowledged.lock().unwrap_or_else(PoisonError::into_inner).push(job_id);
    }
}

/// Releases the notes that wait at this gate.
pub fn open(gate: &Path) {
    std::fs::write(gate, "").unwrap();
}
