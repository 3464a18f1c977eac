//! Requests for reruns.

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};
use sqlx::{PgConnection, types::Json};
use uuid::Uuid;

use super::{
    CallRoute, Error, MAX_OF_TURN, MAX_TIMES, Rerun, RerunOptions, RerunRoute, RerunRoutes,
    RerunTurn, job,
};
use crate::{
    domain::{
        StatementError, campaigns,
        contexts::StoredContext,
        ids,
        labels::Labels,
        sessions::{self, SessionRow},
        text,
    },
    queue,
};

/// The longest agent file, in bytes: a prompt and its keys.
pub(super) const AGENT_FILE_MAX_BYTES: usize = 512 * 1024;

/// A call of a turn, to be made again.
#[derive(Debug, Clone, Copy)]
pub struct RerunRequest<'a> {
    /// The call. The caller has checked that it can be sent as it was.
    pub context: &'a StoredContext,
    pub options: &'a RerunOptions,
    pub times: i32,
    pub metadata: &'a Map<String, Value>,
}

/// Enqueues reruns of a call. Refuses options that the provider lacks, and models with a price without a budget for experiments.
pub async fn request(
    conn: &mut PgConnection,
    request: &RerunRequest<'_>,
    routes: &RerunRoutes,
    now: DateTime<Utc>,
) -> Result<Vec<Rerun>, Error> {
    let RerunRequest { context, options, times, metadata } = *request;
    check(options, times)?;
    Labels { tags: &[], metadata: Some(metadata) }.check()?;
    let own = CallRoute { provider: context.provider.clone(), model: context.model.clone() };
    let found = routes.find(&own, options)?;
    let campaign_id = sessions::get(&mut *conn, context.session_id).await?.campaign_id;
    if campaigns::lock_against_erasure(&mut *conn, campaign_id).await? == campaigns::Status::Closed
    {
        return Err(campaigns::Error::Closed(campaign_id).into());
    }
    check_budget(&mut *conn, campaign_id, &found).await?;
    // Two requests at once would take the same numbers.
    let session = sessions::lock(&mut *conn, context.session_id).await?;
    let first = next_number(&mut *conn, context, times).await?;
    for number in first..first + times {
        add(&mut *conn, &session, (request, &found.route), number, now).await?;
    }
    let all = super::list(conn, session.id, context.turn).await?;
    Ok(all.into_iter().filter(|rerun| rerun.number >= first).collect())
}

fn check(options: &RerunOptions, times: i32) -> Result<(), Error> {
    if !(1..=MAX_TIMES).contains(&times) {
        return Err(Error::Times(times));
    }
    if let Some(value) = options.temperature.filter(|value| !(0.0..=2.0).contains(value)) {
        return Err(Error::Temperature(value));
    }
    if let Some(file) = &options.agent_file {
        text::check("agent file", file, AGENT_FILE_MAX_BYTES)?;
    }
    if let Some(model) = &options.model {
        text::check("model", model, 200)?;
    }
    Ok(())
}

async fn check_budget(
    conn: &mut PgConnection,
    campaign_id: Uuid,
    found: &RerunRoute,
) -> Result<(), Error> {
    if !found.has_price {
        return Ok(());
    }
    let budget = campaigns::experiment_budget(conn, campaign_id).await?;
    match budget.limit_micros {
        Some(_) => Ok(()),
        None => {
            let CallRoute { provider, model } = found.route.clone();
            Err(Error::NoBudget { campaign_id, provider, model })
        }
    }
}

/// Returns the number of the turn's next rerun.
async fn next_number(
    conn: &mut PgConnection,
    context: &StoredContext,
    times: i32,
) -> Result<i32, Error> {
    let known = sqlx::query!(
        r#"select coalesce(max(number), 0) as "last!", count(*) as "n!" from dalsegno.reruns where session_id = $1 and turn = $2"#,
        context.session_id,
        context.turn,
    )
    .fetch_one(conn)
    .await
    .map_err(StatementError::to("count the reruns of a turn"))?;
    match known.n + i64::from(times) > MAX_OF_TURN {
        true => {
            let (session_id, turn) = (context.session_id, context.turn);
            Err(Error::TooMany { session_id, turn, n: known.n, times })
        }
        false => Ok(known.last + 1),
    }
}

async fn add(
    conn: &mut PgConnection,
    session: &SessionRow,
    (request, route): (&RerunRequest<'_>, &CallRoute),
    number: i32,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    let RerunRequest { context, options, .. } = *request;
    let (session_id, turn) = (session.id, context.turn);
    let id = ids::new_at(now);
    let queued = queue::Options {
        lane: Some(job::lane(session_id)),
        group_key: Some(session.campaign_id.to_string()),
        ..queue::Options::default()
    };
    let enqueued = queue::enqueue(&mut *conn, &RerunTurn { rerun_id: id }, &queued).await;
    let enqueued = enqueued.map_err(|source| Error::Enqueue { session_id, turn, source })?;
    sqlx::query!(
        "insert into dalsegno.reruns
           (id, session_id, campaign_id, job_id, created_at, turn, call, number, temperature, provider, model, agent_file, metadata)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)",
        id,
        session_id,
        session.campaign_id,
        enqueued.job_id,
        now,
        turn,
        context.call,
        number,
        options.temperature,
        route.provider,
        route.model,
        options.agent_file,
        Json(request.metadata) as _,
    )
    .execute(conn)
    .await
    .map(drop)
    .map_err(|error| StatementError::to("add a rerun")(error).into())
}
