//! Agents, providers and models of sessions.

use sqlx::PgExecutor;
use uuid::Uuid;

use crate::domain::StatementError;

/// The provider, the model and the credential of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionModel {
    pub id: Uuid,
    pub provider: String,
    pub model: String,
    pub credential: Option<String>,
}

/// Returns the models of these sessions.
pub async fn models_of(
    executor: impl PgExecutor<'_>,
    ids: &[Uuid],
) -> Result<Vec<SessionModel>, StatementError> {
    sqlx::query_as!(
        SessionModel,
        "select id, provider, model, credential from dalsegno.sessions where id = any($1)",
        ids,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("read the models of sessions"))
}

/// The agent of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionAgent {
    pub id: Uuid,
    pub agent: String,
    pub instance: String,
}

/// Returns the agents of those of these sessions that exist.
pub async fn agents_of(
    executor: impl PgExecutor<'_>,
    ids: &[Uuid],
) -> Result<Vec<SessionAgent>, StatementError> {
    sqlx::query_as!(
        SessionAgent,
        "select id, agent_type as agent, instance from dalsegno.sessions where id = any($1)",
        ids,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("read the agents of sessions"))
}
