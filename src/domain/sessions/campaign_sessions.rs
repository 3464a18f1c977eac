//! Sessions of a campaign, for erasure and control.

use chrono::{DateTime, Utc};
use sqlx::PgExecutor;
use uuid::Uuid;

use crate::domain::StatementError;

/// A session's id and its id at the provider.
pub type SessionIds = (Uuid, Option<String>);

/// Locks up to `limit` idle sessions of a campaign. Skips rows that another transaction has locked; they come later.
pub async fn lock_of_campaign(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
    limit: i64,
) -> Result<Vec<SessionIds>, StatementError> {
    sqlx::query!(
        "select id, external_session_id from dalsegno.sessions
          where campaign_id = $1 and running_turn is null order by agent_type, id desc limit $2 for update skip locked",
        campaign_id,
        limit,
    )
    .map(|row| (row.id, row.external_session_id))
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("lock the sessions of a campaign"))
}

/// Returns true if a session of the campaign has a turn that has not ended.
pub async fn is_any_running(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
) -> Result<bool, StatementError> {
    sqlx::query_scalar!(
        r#"select exists (select from dalsegno.sessions where campaign_id = $1 and running_turn is not null) as "is_running!""#,
        campaign_id,
    )
    .fetch_one(executor)
    .await
    .map_err(StatementError::to("list the running turns of a campaign"))
}

/// Lists the sessions of an agent in which a turn runs, including ephemeral ones.
pub async fn running_of_agent(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
    agent: &str,
) -> Result<Vec<Uuid>, StatementError> {
    sqlx::query_scalar!(
        "select id from dalsegno.sessions where campaign_id = $1 and agent_type = $2 and running_turn is not null order by id",
        campaign_id,
        agent,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list the running turns of an agent"))
}

/// Lists the open sessions of an agent in a campaign, or of all its agents. Leaves out ephemeral ones.
pub async fn open_of_agents(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
    agent: Option<&str>,
) -> Result<Vec<Uuid>, StatementError> {
    sqlx::query_scalar!(
        "select id from dalsegno.sessions
          where campaign_id = $1 and ($2::text is null or agent_type = $2) and closed_at is null and not ephemeral order by id",
        campaign_id,
        agent,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list the open sessions of agents"))
}

/// A session that will show posts of the board to its agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoardReader {
    pub agent: String,
    pub instance: String,
    /// The last place of the board that the session has seen.
    pub board_cursor: i64,
}

/// Lists the open sessions of a campaign that have not seen the board up to a place. Leaves out expired ones, which no task continues.
pub async fn list_board_readers(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
    seq: i64,
    now: DateTime<Utc>,
) -> Result<Vec<BoardReader>, StatementError> {
    sqlx::query_as!(
        BoardReader,
        "select agent_type as agent, instance, board_cursor from dalsegno.sessions
          where campaign_id = $1 and closed_at is null and board_cursor < $2 and expires_at > $3",
        campaign_id,
        seq,
        now,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list the readers of a board"))
}
