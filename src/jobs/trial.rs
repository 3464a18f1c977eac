//! Jobs for tests of the queue: they record their effects, fail and stop as told, or abort the worker.
//!
//! They write into the schema `trial`, which each test creates in its own database. Only the rows that a handler wrote
//! itself prove what was done. `trial.starts` has a row per run, of any outcome; `trial.effects` has a row per effect;
//! `trial.refusals` has one per commit that the fence refused.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use serde::{Deserialize, Serialize};
use sqlx::{Connection as _, PgPool, Postgres, Transaction};
use tokio::time::sleep;

use super::Services;
use crate::causes::causes;
use crate::queue::{
    Backoff, CommitError, End, HandlerResult, HoldUntil, Job, JobError, Policy, Registry, Run,
};

/// Works for a while, then records its effect.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Note {
    /// Place of this job in its lane, in the order of the enqueues.
    pub lane_no: i64,
    /// Time that it works, in milliseconds.
    pub millis: u64,
    /// Works on until this file exists.
    #[serde(default)]
    pub gate: Option<PathBuf>,
    /// Attempts that fail before one succeeds.
    #[serde(default)]
    pub failures: i16,
    /// Times that it snoozes before it ends.
    #[serde(default)]
    pub snoozes: i64,
    /// Kind of its end.
    #[serde(default)]
    pub end: NoteEnd,
    /// Ignores a stop, and goes on when the worker gives it up.
    #[serde(default)]
    pub deaf: bool,
}

/// The end of a note.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoteEnd {
    /// The effect and the end of the job are one commit.
    #[default]
    Own,
    /// The effect is committed, then the worker writes the end.
    Batched,
    /// The effect and the death of the job are one commit.
    Death,
}

/// Aborts the worker process each time it runs.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Abort {}

/// Runs until it is told to stop, and logs when and why.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Sleep {}

const POLICY: Policy = Policy {
    queue: "turns",
    max_attempts: 5,
    backoff: Backoff { first: Duration::from_millis(100), cap: Duration::from_secs(1) },
    deadline: None,
    lane_failure: crate::queue::LaneFailure::Continue,
};

impl Job for Note {
    const KIND: &'static str = "trial.note";

    fn policy() -> Policy {
        POLICY
    }
}

impl Job for Abort {
    const KIND: &'static str = "trial.abort";

    fn policy() -> Policy {
        POLICY
    }
}

impl Job for Sleep {
    const KIND: &'static str = "trial.sleep";

    fn policy() -> Policy {
        POLICY
    }
}

/// Registers the kinds of this file.
pub(super) fn register(registry: Registry<Arc<Services>>) -> Registry<Arc<Services>> {
    registry
        .with::<Note, _, _>(|note, run, _| take_note(note, run))
        .with::<Abort, _, _>(|_: Abort, run, _| abort(run))
        .with::<Sleep, _, _>(|_: Sleep, run, _| sleep_until_stopped(run))
}

async fn take_note(note: Note, run: Run) -> HandlerResult {
    write_start(&run, note.lane_no).await.map_err(JobError::retry)?;
    let work = work(note.millis, note.gate.as_deref());
    if note.deaf {
        work.await;
        drop_dead_connections(run.pool()).await;
        // As a task of its own it goes on when the worker gives the handler up.
        return tokio::spawn(end_note(note, run)).await.map_err(JobError::retry)?;
    }
    if run.cancel().run_until_cancelled(work).await.is_none() {
        tracing::info!(job.id = run.job_id(), why = ?run.stop_reason(), "told to stop");
        return Err(JobError::retry("told to stop"));
    }
    end_note(note, run).await
}

async fn work(millis: u64, gate: Option<&Path>) {
    sleep(Duration::from_millis(millis)).await;
    while gate.is_some_and(|gate| !gate.exists()) {
        sleep(Duration::from_millis(10)).await;
    }
}

/// Pings each idle connection. A connection that a failover has cut would fail the next statement, and the note with
/// it.
async fn drop_dead_connections(pool: &PgPool) {
    let mut alive = Vec::new();
    while alive.is_empty() || pool.num_idle() > 0 {
        match pool.acquire().await {
            Ok(mut connection) => match connection.ping().await {
                Ok(()) => alive.push(connection),
                Err(error) => tracing::debug!(error = causes(&error), "a dead connection"),
            },
            Err(_) => sleep(Duration::from_millis(10)).await,
        }
    }
}

async fn end_note(note: Note, run: Run) -> HandlerResult {
    if run.attempt() <= note.failures {
        return Err(JobError::retry("told to fail"));
    }
    if n_snoozes(&run).await.map_err(JobError::retry)? < note.snoozes {
        let tx = write_effect(&run, note.lane_no, "snooze").await.map_err(JobError::retry)?;
        let until = HoldUntil::After(Duration::from_millis(50));
        return settle(&run, run.commit_snooze(tx, until, None, "told to wait").await).await;
    }
    match note.end {
        NoteEnd::Own => {
            let tx = write_effect(&run, note.lane_no, "done").await.map_err(JobError::retry)?;
            settle(&run, run.commit(tx).await).await
        }
        NoteEnd::Death => {
            let tx = write_effect(&run, note.lane_no, "death").await.map_err(JobError::retry)?;
            settle(&run, run.commit_failure(tx, "told to die").await).await
        }
        NoteEnd::Batched => {
            let tx = write_effect(&run, note.lane_no, "batched").await.map_err(JobError::retry)?;
            tx.commit().await.map_err(JobError::retry)?;
            Ok(End::Done)
        }
    }
}

async fn abort(run: Run) -> HandlerResult {
    write_start(&run, 0).await.map_err(JobError::retry)?;
    std::process::abort()
}

async fn sleep_until_stopped(run: Run) -> HandlerResult {
    write_start(&run, 0).await.map_err(JobError::retry)?;
    run.cancel().cancelled().await;
    tracing::info!(job.id = run.job_id(), why = ?run.stop_reason(), "told to stop");
    Err(JobError::retry("told to stop"))
}

/// Records the start of a run. Times are the database's, before the work and inside the commit, so that tests can
/// compare workers.
async fn write_start(run: &Run, lane_no: i64) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO trial.starts (job_id, lease, lane, lane_no, worker, started_at) \
         VALUES ($1, $2, $3, $4, $5, clock_timestamp())",
    )
    .bind(run.job_id())
    .bind(run.lease())
    .bind(run.lane())
    .bind(lane_no)
    .bind(i64::from(std::process::id()))
    .execute(run.pool())
    .await?;
    tracing::info!(job.id = run.job_id(), "started the trial job");
    Ok(())
}

async fn write_effect(
    run: &Run,
    lane_no: i64,
    what: &str,
) -> Result<Transaction<'static, Postgres>, sqlx::Error> {
    let mut tx = run.pool().begin().await?;
    sqlx::query(
        "INSERT INTO trial.effects (job_id, lease, lane, lane_no, worker, what, started_at, ended_at) \
         SELECT $1, $2, $3, $4, $5, $6, s.started_at, clock_timestamp() \
           FROM trial.starts AS s WHERE s.job_id = $1 AND s.lease = $2",
    )
    .bind(run.job_id())
    .bind(run.lease())
    .bind(run.lane())
    .bind(lane_no)
    .bind(i64::from(std::process::id()))
    .bind(what)
    .execute(&mut *tx)
    .await?;
    Ok(tx)
}

async fn n_snoozes(run: &Run) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar("SELECT count(*) FROM trial.effects WHERE job_id = $1 AND what = 'snooze'")
        .bind(run.job_id())
        .fetch_one(run.pool())
        .await
}

/// Records a commit that the fence refused.
async fn settle(run: &Run, committed: Result<End, CommitError>) -> HandlerResult {
    if let Err(CommitError::LeaseLost { .. }) = &committed
        && let Err(error) = write_refusal(run.pool(), run).await
    {
        tracing::warn!(error = causes(&error), "cannot record that a commit was refused");
    }
    Ok(committed?)
}

async fn write_refusal(pool: &PgPool, run: &Run) -> Result<(), sqlx::Error> {
    sqlx::query("INSERT INTO trial.refusals (job_id, lease) VALUES ($1, $2)")
        .bind(run.job_id())
        .bind(run.lease())
        .execute(pool)
        .await
        .map(drop)
}
