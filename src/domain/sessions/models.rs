//! Providers and models of sessions.

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
