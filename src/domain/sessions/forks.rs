//! Reads for forks: the session that is forked, and names that are in use.

use sqlx::PgExecutor;
use uuid::Uuid;

use super::{Error, Reason, SessionRow, State, select_live};
use crate::domain::StatementError;

/// Reads a session and keeps it from being removed until the transaction ends. Its turns go on.
pub async fn lock_against_removal(
    executor: impl PgExecutor<'_>,
    id: Uuid,
) -> Result<SessionRow, Error> {
    select_live!("id = $1 for key share", id)
        .fetch_optional(executor)
        .await
        .map_err(StatementError::to("read the session to fork"))?
        .ok_or(Error::Unknown(id))
}

/// Lists the instances of an agent that have sessions in a campaign, open or closed.
pub async fn instances(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
    agent: &str,
) -> Result<Vec<String>, StatementError> {
    sqlx::query_scalar!(
        "select distinct instance from dalsegno.sessions where campaign_id = $1 and agent_type = $2",
        campaign_id,
        agent,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list the instances of an agent"))
}
