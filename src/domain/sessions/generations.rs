//! The compaction that a session shows.

use serde_json::Value;
use sqlx::PgExecutor;
use uuid::Uuid;

use super::Error;
use crate::domain::StatementError;

/// Allocates the number of the next compaction. Numbers of failed attempts are not reused.
pub async fn next_generation(executor: impl PgExecutor<'_>, id: Uuid) -> Result<i32, Error> {
    sqlx::query_scalar!(
        "update dalsegno.sessions set last_generation = last_generation + 1
          where id = $1 and closed_at is null returning last_generation",
        id,
    )
    .fetch_optional(executor)
    .await
    .map_err(StatementError::to("number a compaction"))?
    .ok_or(Error::Closed(id))
}

/// Shows generation `to` in place of `from`. Returns false if another one is shown by now.
pub async fn show_generation(
    executor: impl PgExecutor<'_>,
    id: Uuid,
    from: i32,
    to: i32,
) -> Result<bool, Error> {
    // The checkpoint counted tokens of another view.
    sqlx::query!(
        "update dalsegno.sessions set generation = $3, checkpoint = null
          where id = $1 and generation = $2 and closed_at is null",
        id,
        from,
        to,
    )
    .execute(executor)
    .await
    .map(|done| done.rows_affected() == 1)
    .map_err(|source| StatementError { action: "show a compaction", source }.into())
}

/// Reads the record of summary attempts of an open session, and locks its row until the transaction ends.
pub async fn lock_breaker(executor: impl PgExecutor<'_>, id: Uuid) -> Result<Option<Value>, Error> {
    sqlx::query_scalar!(
        "select compaction_breaker from dalsegno.sessions where id = $1 and closed_at is null for no key update",
        id,
    )
    .fetch_optional(executor)
    .await
    .map_err(StatementError::to("lock a session"))?
    .ok_or(Error::Closed(id))
}

/// Adds the tokens of a call outside of a turn, even if the session was closed during the call.
pub async fn add_tokens(
    executor: impl PgExecutor<'_>,
    id: Uuid,
    tokens: i64,
) -> Result<(), StatementError> {
    sqlx::query!(
        "update dalsegno.sessions set token_count = token_count + $2 where id = $1",
        id,
        tokens,
    )
    .execute(executor)
    .await
    .map(|_| ())
    .map_err(StatementError::to("count the tokens of a session"))
}

/// Stores the record of summary attempts. Must be committed before the model is called, so that a crash does not restore an attempt.
pub async fn store_breaker(
    executor: impl PgExecutor<'_>,
    id: Uuid,
    breaker: &Value,
) -> Result<(), Error> {
    let stored = sqlx::query!(
        "update dalsegno.sessions set compaction_breaker = $2 where id = $1 and closed_at is null",
        id,
        breaker,
    )
    .execute(executor)
    .await
    .map_err(StatementError::to("count an attempt at a summary"))?;
    if stored.rows_affected() == 1 { Ok(()) } else { Err(Error::Closed(id)) }
}
