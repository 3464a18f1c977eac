//! Reservations of reruns at the budget for experiments.

use sqlx::PgConnection;
use uuid::Uuid;

use super::Rerun;
use crate::{
    domain::{
        Amount, StatementError,
        amount::{Limit, Owner, Refusal},
        campaigns,
    },
    queue::{self, admin},
};

#[derive(Debug, thiserror::Error)]
pub enum ReserveError {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error(transparent)]
    Queue(#[from] queue::Error),
    #[error(transparent)]
    Database(#[from] StatementError),
}

/// Reserves money for the call of a rerun, or refuses it: an amount, or all that is left for a call whose cost is unknown. Without a
/// budget, every amount is refused. A reservation of an earlier run of the job is replaced. Returns the amount. The caller commits.
pub async fn reserve(
    conn: &mut PgConnection,
    campaign_id: Uuid,
    rerun: &Rerun,
    micros: Option<i64>,
) -> Result<i64, ReserveError> {
    let budget = campaigns::lock_experiment_budget(&mut *conn, campaign_id).await?;
    let reserved = reserved_by_others(&mut *conn, campaign_id, rerun.id).await?;
    let limit_micros = budget.limit_micros.unwrap_or(0);
    let micros = micros.unwrap_or((limit_micros - budget.spent_micros - reserved).max(1));
    let limit = Limit { micros: Some(limit_micros), tokens: None };
    let amount = |micros| Amount { micros, tokens: 0 };
    let owner = Owner::Experiments(campaign_id);
    limit.check(owner, amount(budget.spent_micros), amount(reserved), amount(micros))?;
    sqlx::query!(
        "update dalsegno.reruns set reserved_micros = $2 where id = $1 and state = 'queued'",
        rerun.id,
        micros,
    )
    .execute(conn)
    .await
    .map_err(StatementError::to("reserve money for a rerun"))?;
    Ok(micros)
}

/// Releases the reservation of a rerun whose call was not made.
pub async fn release(conn: &mut PgConnection, id: Uuid) -> Result<(), StatementError> {
    sqlx::query!("update dalsegno.reruns set reserved_micros = null where id = $1", id)
        .execute(conn)
        .await
        .map(drop)
        .map_err(StatementError::to("release the reservation of a rerun"))
}

/// Adds up the reservations of other reruns whose jobs have not ended.
async fn reserved_by_others(
    conn: &mut PgConnection,
    campaign_id: Uuid,
    id: Uuid,
) -> Result<i64, ReserveError> {
    let others = sqlx::query!(
        r#"select job_id as "job_id!", reserved_micros as "micros!" from dalsegno.reruns
            where campaign_id = $1 and id <> $2 and state = 'queued' and reserved_micros is not null and job_id is not null"#,
        campaign_id,
        id,
    )
    .fetch_all(&mut *conn)
    .await
    .map_err(StatementError::to("add up the reservations of reruns"))?;
    let jobs: Vec<i64> = others.iter().map(|other| other.job_id).collect();
    let ended = match jobs.is_empty() {
        true => Vec::new(),
        false => admin::list_ended_jobs(conn, &jobs).await?,
    };
    let is_open = |job_id: i64| !ended.iter().any(|job| job.id == job_id);
    Ok(others.iter().filter(|other| is_open(other.job_id)).map(|other| other.micros).sum())
}
