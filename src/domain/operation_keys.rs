//! Idempotency keys of operations: the stored output of each change that a caller made under a key.
//!
//! A call claims its key before it changes anything, in the transaction of the change.
//!
//! Race: two calls with one key. The second waits until the first has ended, and then finds its output. After a rollback it claims the
//! key itself.

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::{PgConnection, PgExecutor};
use uuid::Uuid;

use super::StatementError;

/// A key with its operation and caller.
#[derive(Debug, Clone, Copy)]
pub struct OperationKey<'a> {
    /// The caller, as the audit log names it.
    pub caller: &'a str,
    /// The id of the operation.
    pub operation: &'a str,
    pub key: &'a str,
}

/// The call that claimed a key first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FirstCall {
    pub input_sha256: Vec<u8>,
    pub output: Option<Value>,
}

/// Claims the key, or returns the call that claimed it first.
pub async fn claim(
    conn: &mut PgConnection,
    key: OperationKey<'_>,
    input_sha256: &[u8],
    now: DateTime<Utc>,
) -> Result<Option<FirstCall>, StatementError> {
    let OperationKey { caller, operation, key } = key;
    loop {
        let claimed = sqlx::query!(
            "insert into dalsegno.operation_keys (caller, operation, key, input_sha256, created_at)
             values (dalsegno.caller_of($1), $2, $3, $4, $5) on conflict do nothing",
            caller,
            operation,
            key,
            input_sha256,
            now,
        )
        .execute(&mut *conn)
        .await
        .map_err(StatementError::to("claim an idempotency key"))?;
        if claimed.rows_affected() > 0 {
            return Ok(None);
        }
        let first = sqlx::query_as!(
            FirstCall,
            "select input_sha256, output from dalsegno.operation_keys
              where caller = dalsegno.caller_of($1) and operation = $2 and key = $3",
            caller,
            operation,
            key,
        )
        .fetch_optional(&mut *conn)
        .await
        .map_err(StatementError::to("find an idempotency key"))?;
        // A cleanup may have removed the row in between; then the loop claims the key.
        if first.is_some() {
            return Ok(first);
        }
    }
}

/// Stores the output of the call that has claimed the key, before its transaction commits.
pub async fn store(
    executor: impl PgExecutor<'_>,
    key: OperationKey<'_>,
    subject: &str,
    output: &Value,
) -> Result<(), StatementError> {
    sqlx::query!(
        "update dalsegno.operation_keys set subject = $4, output = $5
          where caller = dalsegno.caller_of($1) and operation = $2 and key = $3",
        key.caller,
        key.operation,
        key.key,
        subject,
        output,
    )
    .execute(executor)
    .await
    .map(drop)
    .map_err(StatementError::to("store the output of an idempotency key"))
}

/// Removes up to `limit` keys from before a moment. Returns their number.
pub async fn remove_old(
    executor: impl PgExecutor<'_>,
    before: DateTime<Utc>,
    limit: i64,
) -> Result<u64, StatementError> {
    sqlx::query!(
        "delete from dalsegno.operation_keys
          where ctid = any(array(select ctid from dalsegno.operation_keys where created_at < $1 limit $2))",
        before,
        limit,
    )
    .execute(executor)
    .await
    .map(|removed| removed.rows_affected())
    .map_err(StatementError::to("remove old idempotency keys"))
}

/// Removes the keys of changes of these subjects: ids and lanes. A name can be that of another thing, too.
pub async fn remove_of_subjects(
    executor: impl PgExecutor<'_>,
    subjects: &[String],
) -> Result<(), StatementError> {
    sqlx::query!("delete from dalsegno.operation_keys where subject = any($1)", subjects)
        .execute(executor)
        .await
        .map(drop)
        .map_err(StatementError::to("remove the idempotency keys of what is erased"))
}

/// Removes the keys of changes of a campaign: it is their subject, or the `campaign_id` of something in their output.
pub async fn remove_of_campaign(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
) -> Result<(), StatementError> {
    // As `operation_keys_by_campaign` has it.
    sqlx::query!(
        "delete from dalsegno.operation_keys
          where subject = $1 or jsonb_path_query_array(output, 'strict $.**.campaign_id') ? $1",
        campaign_id.to_string(),
    )
    .execute(executor)
    .await
    .map(drop)
    .map_err(StatementError::to("remove the idempotency keys of a campaign"))
}

/// Removes the keys of changes of what is known about a user: their outputs name it.
pub async fn remove_of_user(
    executor: impl PgExecutor<'_>,
    user: &str,
) -> Result<(), StatementError> {
    sqlx::query!("delete from dalsegno.operation_keys where output ->> 'user' = $1", user)
        .execute(executor)
        .await
        .map(drop)
        .map_err(StatementError::to("remove the idempotency keys of a user"))
}

/// Removes the keys of the API keys of a name, which is given to another one.
pub async fn remove_of_caller(
    executor: impl PgExecutor<'_>,
    name: &str,
) -> Result<(), StatementError> {
    sqlx::query!("delete from dalsegno.operation_keys where caller = $1", name)
        .execute(executor)
        .await
        .map(drop)
        .map_err(StatementError::to("remove the idempotency keys of a caller"))
}
