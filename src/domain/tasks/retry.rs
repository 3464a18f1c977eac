//! Retries of failed and cancelled tasks.

use chrono::{DateTime, Utc};
use serde_json::json;
use sqlx::PgConnection;
use uuid::Uuid;

use super::{
    Error, RunJoinedTurn, RunTurn, State, Task, cascade, dead_letter, get, lane,
    provider_waits::end_provider_wait, waits,
};
use crate::{
    domain::{
        StatementError,
        feed::{self, Kind},
        tool_calls,
    },
    queue,
};

/// Puts a failed or cancelled task on the queue again, at the end of its lane. It gets fresh attempts, and keeps its request's priority
/// and earliest start; the time that its answer may take begins again. A task that has waited for others waits again for those that have not
/// ended. A trigger removes the refusal of a budget with the error.
pub async fn retry(conn: &mut PgConnection, id: Uuid, now: DateTime<Utc>) -> Result<Task, Error> {
    let task = get(&mut *conn, id).await?;
    if !matches!(task.state, State::Failed | State::Cancelled) {
        return Err(match task.state {
            State::Done => Error::Ended { id, state: task.state },
            state => Error::NotEnded { id, state },
        });
    }
    if is_erased(&mut *conn, task.campaign_id).await? {
        return Err(Error::Erased(id));
    }
    let (priority, run_at) = timing(&mut *conn, id).await?;
    let options = queue::Options {
        lane: Some(lane(task.campaign_id, &task.agent, &task.instance)),
        group_key: Some(task.campaign_id.to_string()),
        priority: Some(priority),
        run_at: run_at.filter(|run_at| *run_at > now),
        headers: Some(serde_json::json!({ "task": id })),
        ..queue::Options::default()
    };
    // A new job, because the old one may have been removed.
    dead_letter::discard_last_job(&mut *conn, task.job_id).await?;
    let asked = format!("again {id}");
    let waits = waits::has_any(&mut *conn, id).await?;
    let job_id = match waits {
        false => queue::enqueue(&mut *conn, &RunTurn { asked }, &options).await?.job_id,
        true => {
            waits::restart_wait(&mut *conn, id).await?;
            let jobs = vec![(RunJoinedTurn { asked }, options)];
            let enqueued = queue::enqueue_waiting(&mut *conn, jobs).await?;
            enqueued.first().map_or(task.job_id, |job| job.job_id)
        }
    };
    let hit = sqlx::query!(
        "update dalsegno.tasks
            set state = 'queued', started_at = null, ended_at = null, result = null, error = null, result_fault = null, cancelled_because = null, n_waits = 0, stop_asked_at = null, job_id = $2,
                run_at = case when within_secs is null then run_at else greatest(run_at, $4) end,
                first_job_id = coalesce(first_job_id, job_id)
          where id = $1 and job_id = $3 and state in ('failed', 'cancelled')",
        id,
        job_id,
        task.job_id,
        now,
    )
    .execute(&mut *conn)
    .await
    .map_err(StatementError::to("retry a task"))?;
    // Zero rows: a concurrent call retries it. The caller rolls back, which also removes the second job.
    let task = get(&mut *conn, id).await?;
    if hit.rows_affected() != 1 {
        return Err(Error::NotEnded { id, state: task.state });
    }
    end_provider_wait(&mut *conn, id).await?;
    let cancelled = cascade::list_cancelled_descendants(&mut *conn, id).await?;
    tool_calls::delete_cancelled(&mut *conn, id, &cancelled).await?;
    let event = task.event(Kind::TaskQueued, json!({ "again": true }));
    feed::append(conn, &[event], now).await?;
    Ok(task)
}

/// Reads the priority and the earliest start of a task's request.
async fn timing(
    conn: &mut PgConnection,
    id: Uuid,
) -> Result<(i32, Option<DateTime<Utc>>), StatementError> {
    let row = sqlx::query!("select priority, run_at from dalsegno.tasks where id = $1", id)
        .fetch_one(conn)
        .await
        .map_err(StatementError::to("read the due time of a task"))?;
    Ok((row.priority.into(), row.run_at))
}

/// Returns true if the campaign's texts are erased or an erasure has begun.
async fn is_erased(conn: &mut PgConnection, campaign_id: Uuid) -> Result<bool, StatementError> {
    sqlx::query_scalar!(r#"select dalsegno.is_erased($1) as "is_erased!""#, campaign_id)
        .fetch_one(conn)
        .await
        .map_err(StatementError::to("find an erasure"))
}
