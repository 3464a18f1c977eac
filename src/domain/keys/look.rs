//! Looking keys up.

use chrono::{DateTime, TimeDelta, Utc};
use sqlx::PgExecutor;
use uuid::Uuid;

use super::{Error, Key, secret};
use crate::domain::{Page, StatementError, ids::PartialId};

/// Precision of a key's last use.
const USE_RECORD_INTERVAL: TimeDelta = TimeDelta::minutes(1);

/// A key as the table has it.
pub(super) struct Row {
    pub(super) id: Uuid,
    pub(super) name: String,
    pub(super) handle: String,
    pub(super) scopes: Vec<String>,
    pub(super) created_at: DateTime<Utc>,
    pub(super) created_by: String,
    pub(super) expires_at: Option<DateTime<Utc>>,
    pub(super) revoked_at: Option<DateTime<Utc>>,
    pub(super) last_used_at: Option<DateTime<Utc>>,
    pub(super) replaced_by: Option<Uuid>,
    pub(super) campaigns: Option<Vec<Uuid>>,
}

impl From<Row> for Key {
    fn from(row: Row) -> Self {
        Self {
            id: row.id,
            name: row.name,
            handle: row.handle,
            // Scopes that a newer version has added are ignored.
            scopes: row.scopes.iter().filter_map(|scope| scope.parse().ok()).collect(),
            created_at: row.created_at,
            created_by: row.created_by,
            expires_at: row.expires_at,
            revoked_at: row.revoked_at,
            last_used_at: row.last_used_at,
            replaced_by: row.replaced_by,
            campaigns: row.campaigns,
        }
    }
}

/// A key with the hash of its text.
#[derive(Debug)]
pub struct StoredKey {
    pub key: Key,
    pub digest: secret::Digest,
}

/// Finds keys by handle, usable or not.
pub async fn of_handles(
    executor: impl PgExecutor<'_>,
    handles: &[String],
) -> Result<Vec<StoredKey>, StatementError> {
    let rows = sqlx::query!(
        "select id, name, handle, scopes, created_at, created_by, expires_at, revoked_at, last_used_at, replaced_by, campaigns, sha256
           from dalsegno.api_keys where handle = any($1)",
        handles,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("find API keys"))?;
    let stored = rows.into_iter().map(|row| StoredKey {
        digest: secret::Digest::try_from(row.sha256.as_slice()).unwrap_or_default(),
        key: Row {
            id: row.id,
            name: row.name,
            handle: row.handle,
            scopes: row.scopes,
            created_at: row.created_at,
            created_by: row.created_by,
            expires_at: row.expires_at,
            revoked_at: row.revoked_at,
            last_used_at: row.last_used_at,
            replaced_by: row.replaced_by,
            campaigns: row.campaigns,
        }
        .into(),
    });
    Ok(stored.collect())
}

/// Finds keys by id, usable or not.
pub async fn of_ids(
    executor: impl PgExecutor<'_>,
    ids: &[Uuid],
) -> Result<Vec<Key>, StatementError> {
    let rows = sqlx::query_as!(
        Row,
        "select id, name, handle, scopes, created_at, created_by, expires_at, revoked_at, last_used_at, replaced_by, campaigns
           from dalsegno.api_keys where id = any($1)",
        ids,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("find API keys by their ids"))?;
    Ok(rows.into_iter().map(Key::from).collect())
}

/// Records the use of a key, at most once a minute for all processes together. Skips a locked row: another process is about to write the
/// same, or to end the key.
pub async fn record_use(
    executor: impl PgExecutor<'_>,
    id: Uuid,
    now: DateTime<Utc>,
) -> Result<(), StatementError> {
    sqlx::query!(
        "update dalsegno.api_keys set last_used_at = $2
          where id = (select k.id from dalsegno.api_keys as k
                       where k.id = $1 and (k.last_used_at is null or k.last_used_at <= $3)
                         for update skip locked)",
        id,
        now,
        now - USE_RECORD_INTERVAL,
    )
    .execute(executor)
    .await
    .map(|_| ())
    .map_err(StatementError::to("record the last use of an API key"))
}

impl Key {
    /// Returns true if [`record_use`] would write, by the last use known here.
    pub fn should_record_use(&self, now: DateTime<Utc>) -> bool {
        self.last_used_at.is_none_or(|at| at <= now - USE_RECORD_INTERVAL)
    }
}

/// Returns true if at least one key is accepted.
pub async fn any_usable(
    executor: impl PgExecutor<'_>,
    now: DateTime<Utc>,
) -> Result<bool, StatementError> {
    sqlx::query_scalar!(
        r#"select exists (select from dalsegno.api_keys
                           where revoked_at is null and (expires_at is null or expires_at > $1)) as "any!""#,
        now,
    )
    .fetch_one(executor)
    .await
    .map_err(StatementError::to("check whether an API key exists"))
}

pub async fn get(executor: impl PgExecutor<'_>, id: Uuid) -> Result<Key, Error> {
    sqlx::query_as!(
        Row,
        "select id, name, handle, scopes, created_at, created_by, expires_at, revoked_at, last_used_at, replaced_by, campaigns
           from dalsegno.api_keys where id = $1",
        id,
    )
    .fetch_optional(executor)
    .await
    .map_err(StatementError::to("read a key"))?
    .map(Key::from)
    .ok_or_else(|| Error::Unknown(id.to_string()))
}

/// Lists keys, the newest first.
pub async fn list(executor: impl PgExecutor<'_>, page: Page) -> Result<Vec<Key>, StatementError> {
    let rows = sqlx::query_as!(
        Row,
        "select id, name, handle, scopes, created_at, created_by, expires_at, revoked_at, last_used_at, replaced_by, campaigns
           from dalsegno.api_keys
          where id < coalesce($1, 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid)
          order by id desc limit $2",
        page.after,
        page.limit,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list API keys"))?;
    Ok(rows.into_iter().map(Key::from).collect())
}

/// Finds the keys that a person can mean: all of that name which are not revoked, and those with this handle or id. The newest first.
pub async fn find(executor: impl PgExecutor<'_>, text: &str) -> Result<Vec<Key>, StatementError> {
    let given = text.parse::<PartialId>().ok();
    let rows = sqlx::query_as!(
        Row,
        "select id, name, handle, scopes, created_at, created_by, expires_at, revoked_at, last_used_at, replaced_by, campaigns
           from dalsegno.api_keys
          where (name = $1 and revoked_at is null) or handle = $1 or id between $2 and $3
             or right(replace(id::text, '-', ''), length($4)) = $4
          order by id desc",
        text,
        given.as_ref().map(|given| given.least),
        given.as_ref().map(|given| given.most),
        given.as_ref().and_then(|given| given.end.as_deref()),
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("find an API key"))?;
    Ok(rows.into_iter().map(Key::from).collect())
}

/// Lists the ids of the keys with a name or a handle, also of revoked ones.
pub async fn ids_of_name(
    executor: impl PgExecutor<'_>,
    text: &str,
) -> Result<Vec<Uuid>, StatementError> {
    sqlx::query_scalar!(
        "select id from dalsegno.api_keys where name = $1 or handle = $1 order by id desc limit 100",
        text,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("find API keys by their name"))
}

/// Selects from the keys that [`find`] has found: all of that name, or else the only one.
pub fn select_named(text: &str, found: Vec<Key>) -> Result<Vec<Key>, Error> {
    let named: Vec<Key> = found.iter().filter(|key| key.name == text).cloned().collect();
    match (named.is_empty(), found.len()) {
        (false, _) => Ok(named),
        (true, 1) => Ok(found),
        (true, 0) => Err(Error::Unknown(format!("`{text}`"))),
        (true, _) => {
            let fitting: Vec<String> =
                found.iter().map(|key| format!("{} ({})", key.handle, key.name)).collect();
            Err(Error::Several { given: text.to_owned(), fitting: fitting.join(", ") })
        }
    }
}
