//! The journal of a trial: rows that handlers wrote themselves, and the queue's records.

use chrono::{DateTime, Utc};
use sqlx::{FromRow, PgPool, postgres::PgRow};

/// All data for the checker.
#[derive(Debug, Clone, Default)]
pub struct Journal {
    pub enqueued: Vec<EnqueuedJob>,
    pub starts: Vec<Start>,
    pub effects: Vec<Effect>,
    /// Commits that the fence refused, as the handlers saw them: (job, lease).
    pub refusals: Vec<(i64, i64)>,
    pub runs: Vec<Run>,
    pub dead: Vec<DeadLetter>,
    pub live: Vec<LiveJob>,
}

/// A job that the test has enqueued.
#[derive(Debug, Clone, FromRow)]
pub struct EnqueuedJob {
    pub job_id: i64,
    pub kind: String,
}

/// A run, as recorded by its handler at its beginning.
#[derive(Debug, Clone, FromRow)]
pub struct Start {
    pub job_id: i64,
    pub lease: i64,
    pub worker: i64,
    pub started_at: DateTime<Utc>,
}

/// An effect, as recorded by its handler.
#[derive(Debug, Clone, FromRow)]
pub struct Effect {
    pub job_id: i64,
    pub lease: i64,
    pub worker: i64,
    pub lane: Option<String>,
    pub lane_no: i64,
    pub what: String,
    pub started_at: DateTime<Utc>,
    pub ended_at: DateTime<Utc>,
}

/// A run that ended, as recorded by the queue.
#[derive(Debug, Clone, FromRow)]
pub struct Run {
    pub job_id: i64,
    pub lease: i64,
    pub attempt: i16,
    pub outcome: String,
    pub ended_at: DateTime<Utc>,
}

/// A dead letter.
#[derive(Debug, Clone, FromRow)]
pub struct DeadLetter {
    pub id: i64,
    pub reason: String,
    pub error: Option<String>,
}

/// A job that is still on the queue.
#[derive(Debug, Clone, FromRow)]
pub struct LiveJob {
    pub id: i64,
    pub state: String,
    pub attempt: i16,
    pub crash_count: i16,
    pub lease: Option<i64>,
}

impl Journal {
    pub async fn read(pool: &PgPool) -> Self {
        let refusals = sqlx::query_as("SELECT job_id, lease FROM trial.refusals");
        Self {
            enqueued: rows(pool, "SELECT job_id, kind FROM trial.enqueued ORDER BY job_id").await,
            starts: rows(pool, "SELECT * FROM trial.starts ORDER BY started_at").await,
            effects: rows(pool, "SELECT * FROM trial.effects ORDER BY started_at, ended_at").await,
            refusals: refusals.fetch_all(pool).await.unwrap(),
            runs: rows(
                pool,
                "SELECT job_id, lease, attempt, outcome::text, ended_at FROM dalsegno.runs ORDER BY ended_at",
            )
            .await,
            dead: rows(pool, "SELECT id, reason, error FROM dalsegno.dead_jobs").await,
            live: rows(
                pool,
                "SELECT id, state::text, attempt::int2, crash_count::int2, lease FROM dalsegno.jobs ORDER BY id",
            )
            .await,
        }
    }

    /// Counts the runs with this outcome, over all jobs.
    pub fn n_runs(&self, outcome: &str) -> usize {
        self.runs.iter().filter(|run| run.outcome == outcome).count()
    }
}

async fn rows<T>(pool: &PgPool, sql: &'static str) -> Vec<T>
where
    T: for<'r> FromRow<'r, PgRow> + Send + Unpin,
{
    sqlx::query_as(sql).fetch_all(pool).await.unwrap()
}
