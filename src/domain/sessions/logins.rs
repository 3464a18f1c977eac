//! Open sessions per credential.

use sqlx::PgExecutor;

use crate::domain::Failed;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OnLogin {
    pub provider: String,
    pub login: String,
    pub sessions: i64,
}

/// Counts the open sessions of each provider's credentials.
pub async fn by_login(executor: impl PgExecutor<'_>) -> Result<Vec<OnLogin>, Failed> {
    sqlx::query_as!(
        OnLogin,
        r#"select provider, login as "login!", count(*) as "sessions!" from dalsegno.sessions
            where login is not null and state <> 'closed' group by provider, login order by provider, login"#,
    )
    .fetch_all(executor)
    .await
    .map_err(Failed::to("count the sessions per credential"))
}
