//! Open sessions per credential.

use sqlx::PgExecutor;

use crate::domain::StatementError;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CredentialUse {
    pub provider: String,
    pub credential: String,
    pub sessions: i64,
}

/// Counts the open sessions of each provider's credentials.
pub async fn uses_by_credential(
    executor: impl PgExecutor<'_>,
) -> Result<Vec<CredentialUse>, StatementError> {
    sqlx::query_as!(
        CredentialUse,
        r#"select provider, credential as "credential!", count(*) as "sessions!" from dalsegno.sessions
            where credential is not null and closed_at is null group by provider, credential order by provider, credential"#,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("count the sessions per credential"))
}
