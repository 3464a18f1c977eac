//! Contexts of calls beside turns, by their rows of the ledger. They are removed with the session; the ledger stays.

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::PgExecutor;
use uuid::Uuid;

use super::Purpose;
use crate::domain::StatementError;

/// A row of the ledger, with the context of its call if it was made beside turns.
#[derive(Debug, Clone, PartialEq)]
pub struct SideCall {
    pub ledger_id: i64,
    pub session_id: Option<Uuid>,
    /// The turn that it is charged to.
    pub turn: Option<i32>,
    pub purpose: Purpose,
    pub provider: String,
    pub model: String,
    pub called_at: DateTime<Utc>,
    /// The provider's own count of the prompt.
    pub counted_tokens: Option<i64>,
    /// `None` for calls of turns, after the removal of the session, and for calls of older versions.
    pub manifest: Option<Value>,
}

/// Stores the context of a call, unless its session was removed. The caller has locked the session, if it exists.
pub async fn insert_context(
    executor: impl PgExecutor<'_>,
    ledger_id: i64,
    session_id: Uuid,
    manifest: &Value,
) -> Result<(), StatementError> {
    sqlx::query!(
        "insert into dalsegno.usage_contexts (usage_id, session_id, manifest)
         select $1, $2, $3 where dalsegno.has_session($2)",
        ledger_id,
        session_id,
        manifest,
    )
    .execute(executor)
    .await
    .map(|_| ())
    .map_err(StatementError::to("store the context of a call beside turns"))
}

/// Finds a row of the ledger.
pub async fn find_side_call(
    executor: impl PgExecutor<'_>,
    ledger_id: i64,
) -> Result<Option<SideCall>, StatementError> {
    sqlx::query_as!(
        SideCall,
        r#"select u.id as ledger_id, u.session_id, u.turn, u.purpose as "purpose: Purpose", u.provider, u.model, u.called_at,
                  u.input_tokens + coalesce(u.cache_read_tokens, 0) + coalesce(u.cache_creation_tokens, 0) as counted_tokens,
                  c.manifest as "manifest?"
             from dalsegno.usage as u left join dalsegno.usage_contexts as c on c.usage_id = u.id where u.id = $1"#,
        ledger_id,
    )
    .fetch_optional(executor)
    .await
    .map_err(StatementError::to("read a call of the ledger"))
}

/// Lists the calls beside turns with a stored context that are charged to turns after `after_turn`, up to `to_turn`.
pub async fn side_calls(
    executor: impl PgExecutor<'_>,
    session_id: Uuid,
    after_turn: i32,
    to_turn: Option<i32>,
) -> Result<Vec<SideCall>, StatementError> {
    sqlx::query_as!(
        SideCall,
        r#"select u.id as ledger_id, u.session_id, u.turn, u.purpose as "purpose: Purpose", u.provider, u.model, u.called_at,
                  u.input_tokens + coalesce(u.cache_read_tokens, 0) + coalesce(u.cache_creation_tokens, 0) as counted_tokens,
                  c.manifest as "manifest?"
             from dalsegno.usage_contexts as c join dalsegno.usage as u on u.id = c.usage_id
            where c.session_id = $1 and u.turn > $2 and ($3::integer is null or u.turn <= $3) order by u.turn, u.id"#,
        session_id,
        after_turn,
        to_turn,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list the calls beside the turns of a session"))
}
