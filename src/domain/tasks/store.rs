//! Storing a task, its job and its first event: one call of `dalsegno.store_task` for all ways of adding tasks.

use chrono::{DateTime, SubsecRound as _, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sqlx::{PgConnection, postgres::PgDatabaseError, types::Json};
use uuid::Uuid;

use super::{
    AddResult, Config, Error, New, RunTurn, State, Task,
    add::{check_new, job, mode_of, priority_of},
    bulk, get,
};
use crate::{
    domain::{
        Amount, StatementError,
        amount::{OnLimit, Owner, Refusal, Unit},
        campaigns, ids,
    },
    queue::{self, Job as _},
};

/// Adds a task and its job, in the caller's transaction or as a statement of its own. After an error the caller must roll back. Tasks
/// with links, nodes, parameters, a result schema, attachments or a time for the answer need a transaction, because they take several
/// statements.
pub async fn add(
    conn: &mut PgConnection,
    config: &Config,
    new: &New<'_>,
    now: DateTime<Utc>,
) -> Result<AddResult, Error> {
    if !new.links.is_none()
        || new.node.is_some()
        || new.has_parameters()
        || new.result_schema.is_some()
        || !new.attachments.is_empty()
        || new.within_secs.is_some()
    {
        return bulk::add_linked(conn, config, new, now).await;
    }
    check_new(config, new)?;
    let row = Row::of(new, now);
    let stored = sqlx::query_as!(
        StoredTask,
        r#"select task_id, job_id as "job_id!", created as "created!"
             from dalsegno.store_task(id => $1, at => $2, campaign_id => $3, agent => $4, instance => $5, prompt => $6,
                  session_mode => $7, budget_micros => $8, budget_tokens => $9, idempotency_key => $10, priority => $11,
                  run_at => $12, asked => $13, kind => $14, queue => $15, max_attempts => $16, added_by => $17,
                  traceparent => $18, tags => $19, metadata => $20)"#,
        row.id,
        row.at,
        row.campaign_id,
        row.agent,
        row.instance,
        row.prompt,
        row.session_mode,
        row.budget_micros,
        row.budget_tokens,
        row.idempotency_key,
        row.priority,
        row.run_at,
        row.asked,
        row.kind,
        row.queue,
        row.max_attempts,
        row.added_by,
        row.traceparent,
        row.tags,
        row.metadata.map(Json) as _,
    )
    .fetch_one(&mut *conn)
    .await
    .map_err(|error| refused(error, new))?;
    added(conn, new, &row, stored).await
}

/// Adds several concurrently requested tasks in this order, in one statement that is a transaction of its own. The tasks have no links.
///
/// If one is refused, or would wait for another transaction, all fail. The caller then adds them one by one, provided that [nothing was
/// written](Error::has_written_nothing). Errors after the commit belong to single tasks.
pub async fn add_together(
    conn: &mut PgConnection,
    config: &Config,
    news: &[New<'_>],
    now: DateTime<Utc>,
) -> Result<Vec<Result<AddResult, Error>>, Error> {
    for new in news {
        check_new(config, new)?;
    }
    let rows: Vec<Row<'_>> = news.iter().map(|new| Row::of(new, now)).collect();
    let stored = sqlx::query_as!(
        StoredTask,
        r#"select task_id, job_id as "job_id!", created as "created!" from dalsegno.store_tasks($1)"#,
        Json(&rows) as _,
    )
    .fetch_all(&mut *conn)
    .await
    .map_err(StatementError::to("store tasks"))?;
    let mut all = Vec::with_capacity(news.len());
    for ((new, row), stored) in news.iter().zip(&rows).zip(stored) {
        all.push(added(&mut *conn, new, row, stored).await);
    }
    Ok(all)
}

/// Refuses a task early if its campaign cannot run it, now or later. Takes no lock: the turn makes the decision.
pub(super) async fn check_campaign(
    conn: &mut PgConnection,
    campaign_id: Uuid,
) -> Result<(), Error> {
    sqlx::query!("select dalsegno.check_campaign_takes_tasks($1)", campaign_id)
        .execute(conn)
        .await
        .map(drop)
        .map_err(|error| match refused_for_campaign(&error, campaign_id) {
            Some(refusal) => refusal,
            None => {
                StatementError { action: "check whether a campaign accepts tasks", source: error }
                    .into()
            }
        })
}

/// The arguments of `dalsegno.store_task`, by their names.
#[derive(Serialize)]
struct Row<'a> {
    id: Uuid,
    at: DateTime<Utc>,
    campaign_id: Uuid,
    agent: &'a str,
    instance: &'a str,
    prompt: &'a str,
    session_mode: &'static str,
    budget_micros: Option<i64>,
    budget_tokens: Option<i64>,
    idempotency_key: Option<&'a str>,
    priority: i32,
    run_at: Option<DateTime<Utc>>,
    asked: String,
    kind: &'static str,
    queue: &'static str,
    max_attempts: i32,
    added_by: Option<&'a str>,
    traceparent: Option<&'a str>,
    /// None if empty; the statement then writes no labels.
    tags: Option<&'a [String]>,
    metadata: Option<&'a Map<String, Value>>,
}

struct StoredTask {
    /// None if the idempotency key belongs to a job without a task.
    task_id: Option<Uuid>,
    job_id: i64,
    created: bool,
}

/// The detail of an error of `dalsegno.check_campaign_takes_tasks` about an exhausted budget.
#[derive(Deserialize)]
struct UsedUp {
    unit: Unit,
    limit: i64,
    spent: i64,
}

impl<'a> Row<'a> {
    fn of(new: &New<'a>, now: DateTime<Utc>) -> Self {
        // Microseconds, as Postgres stores the time: the answer equals the stored row.
        let at = now.trunc_subsecs(6);
        let id = ids::new_at(now);
        let (RunTurn { asked }, _) = job(new, id);
        let policy = RunTurn::policy();
        Self {
            id,
            at,
            campaign_id: new.campaign_id,
            agent: &new.agent.name,
            instance: new.instance,
            prompt: new.prompt,
            session_mode: mode_of(new).as_str(),
            budget_micros: new.budget.micros.or(new.agent.budget.micros),
            budget_tokens: new.budget.tokens.or(new.agent.budget.tokens),
            idempotency_key: new.idempotency_key,
            priority: priority_of(new),
            run_at: new.run_at.map(|run_at| run_at.trunc_subsecs(6)),
            asked,
            kind: RunTurn::KIND,
            queue: policy.queue,
            max_attempts: policy.max_attempts.into(),
            added_by: new.added_by,
            traceparent: new.traceparent,
            tags: Some(new.labels.tags).filter(|tags| !tags.is_empty()),
            metadata: new.labels.metadata.filter(|metadata| !metadata.is_empty()),
        }
    }
}

async fn added(
    conn: &mut PgConnection,
    new: &New<'_>,
    row: &Row<'_>,
    stored: StoredTask,
) -> Result<AddResult, Error> {
    let id = stored.task_id.ok_or(Error::NoTaskOfJob(stored.job_id))?;
    if !stored.created {
        return Ok(AddResult { task: get(conn, id).await?, created: false });
    }
    let task = Task {
        id,
        campaign_id: row.campaign_id,
        agent: row.agent.to_owned(),
        instance: row.instance.to_owned(),
        session_mode: mode_of(new),
        state: State::Queued,
        prompt: row.prompt.to_owned(),
        result: None,
        result_json: None,
        error: None,
        budget_micros: row.budget_micros,
        budget_tokens: row.budget_tokens,
        spent_micros: 0,
        spent_tokens: 0,
        job_id: stored.job_id,
        session_id: None,
        turn: None,
        created_at: row.at,
        started_at: None,
        ended_at: None,
    };
    Ok(AddResult { task, created: true })
}

fn refused(error: sqlx::Error, new: &New<'_>) -> Error {
    refused_for_campaign(&error, new.campaign_id).unwrap_or_else(|| {
        match (queue::Error::of("store a task")(error), new.idempotency_key) {
            (queue::Error::Conflict { .. }, Some(key)) => Error::KeyTaken(key.to_owned()),
            (error, _) => error.into(),
        }
    })
}

/// Maps errors by the constraint names that the SQL function gives to requirements on a campaign.
fn refused_for_campaign(error: &sqlx::Error, campaign_id: Uuid) -> Option<Error> {
    let raised = error.as_database_error()?.try_downcast_ref::<PgDatabaseError>()?;
    match raised.constraint()? {
        "campaign_exists" => Some(campaigns::Error::Unknown(campaign_id).into()),
        "campaign_is_open" => Some(campaigns::Error::Closed(campaign_id).into()),
        "campaign_has_budget" => {
            let UsedUp { unit, limit, spent } = serde_json::from_str(raised.detail()?).ok()?;
            // One token or micro-unit: the check is only that anything is left.
            let (owner, reserved, needed) = (Owner::Campaign(campaign_id), 0, 1);
            let (call, on_limit, ends) = (Amount { micros: 1, tokens: 1 }, OnLimit::Fail, None);
            let refusal =
                Refusal { owner, unit, limit, spent, reserved, needed, call, on_limit, ends };
            Some(refusal.into())
        }
        _ => None,
    }
}
