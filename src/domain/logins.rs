//! Logins whose limit is used up: they rest until a time, on all workers at once.

use chrono::{DateTime, Utc};
use sqlx::PgExecutor;

use super::Failed;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resting {
    pub login: String,
    pub until: DateTime<Utc>,
    pub why: String,
}

/// Lets a login rest. Of two times the later one counts.
pub async fn rest(
    executor: impl PgExecutor<'_>,
    provider: &str,
    resting: &Resting,
) -> Result<(), Failed> {
    sqlx::query!(
        "insert into dalsegno.resting_logins as r (provider, login, until, why) values ($1, $2, $3, $4)
         on conflict (provider, login) do update set until = excluded.until, why = excluded.why
          where r.until < excluded.until",
        provider,
        resting.login,
        resting.until,
        resting.why,
    )
    .execute(executor)
    .await
    .map(|_| ())
    .map_err(Failed::to("let a login rest"))
}

/// The logins of a provider that rest at this time.
pub async fn resting(
    executor: impl PgExecutor<'_>,
    provider: &str,
    now: DateTime<Utc>,
) -> Result<Vec<Resting>, Failed> {
    sqlx::query_as!(
        Resting,
        "select login, until, why from dalsegno.resting_logins where provider = $1 and until > $2 order by login",
        provider,
        now,
    )
    .fetch_all(executor)
    .await
    .map_err(Failed::to("look for logins that rest"))
}
