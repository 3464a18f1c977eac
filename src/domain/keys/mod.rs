//! API keys: their scopes, rotation and end.
//!
//! The text of a key exists once, in the answer to its creation; the database stores a hash. A key ends by expiring or by being revoked,
//! and never comes back. A rotation makes a successor of the same name and scopes, and leaves the old one valid for some time, so that
//! clients can replace it. A key may be bound to campaigns; its successors are bound to the same.
//!
//! Invariant: of each name, at most one key is the latest: neither revoked nor replaced. Concurrent rotations of one key meet at its row,
//! and new keys of one name at the index.

mod error;
mod look;
mod rotate;
mod scope;
mod secret;

use chrono::{DateTime, Utc};
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use sqlx::{PgConnection, PgExecutor};
use uuid::Uuid;

pub use self::{
    error::Error,
    look::{
        StoredKey, any_usable, find, get, ids_of_name, list, of_handles, of_ids, record_use,
        select_named,
    },
    rotate::rotate,
    scope::{Scope, UnknownScope},
    secret::{Digest, PREFIX, digest, handle, is_same},
};
use super::{StatementError, campaigns, ids, operation_keys};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = ApiKey)]
pub struct Key {
    pub id: Uuid,
    pub name: String,
    /// The middle part of the key's text, which identifies a leaked key.
    pub handle: String,
    pub scopes: Vec<Scope>,
    pub created_at: DateTime<Utc>,
    /// The creator, as the audit log names actors.
    pub created_by: String,
    pub expires_at: Option<DateTime<Utc>>,
    pub revoked_at: Option<DateTime<Utc>>,
    /// Time of the last use, up to a minute late.
    pub last_used_at: Option<DateTime<Utc>>,
    /// The successor that a rotation has made.
    pub replaced_by: Option<Uuid>,
    /// The campaigns that it is bound to; `null` for a key that reaches all.
    pub campaigns: Option<Vec<Uuid>>,
}

/// A key that was just made, with its text, which is shown only this once.
#[derive(Debug)]
pub struct NewKey {
    pub key: Key,
    pub text: SecretString,
}

#[derive(Debug, Clone, Copy)]
pub struct New<'a> {
    pub name: &'a str,
    pub scopes: &'a [Scope],
    /// The campaigns that it is bound to; `None`: it reaches all.
    pub campaigns: Option<&'a [Uuid]>,
    pub created_by: &'a str,
    pub expires_at: Option<DateTime<Utc>>,
}

impl Key {
    /// Returns true if the key is accepted at this moment.
    pub fn is_usable(&self, now: DateTime<Utc>) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|at| now < at)
    }

    pub fn allows(&self, needed: Scope) -> bool {
        self.scopes.iter().any(|scope| scope.implies(needed))
    }
}

/// Makes a key. Its name must not be that of another key that is neither revoked nor replaced. Idempotency keys of earlier holders of the
/// name are free again.
pub async fn create(
    conn: &mut PgConnection,
    new: &New<'_>,
    now: DateTime<Utc>,
) -> Result<NewKey, Error> {
    if new.expires_at.is_some_and(|at| at <= now) {
        return Err(Error::Expired);
    }
    for campaign in new.campaigns.unwrap_or_default() {
        campaigns::get(&mut *conn, *campaign).await?;
    }
    let made = insert(&mut *conn, ids::new_at(now), new, now).await?;
    operation_keys::remove_of_caller(conn, new.name).await?;
    Ok(made)
}

/// Revokes a key; true if it was not revoked before. Processes that have just looked it up accept it for some seconds.
pub async fn revoke(
    conn: &mut PgConnection,
    id: Uuid,
    now: DateTime<Utc>,
) -> Result<(Key, bool), Error> {
    let revoked = sqlx::query!(
        "update dalsegno.api_keys set revoked_at = $2 where id = $1 and revoked_at is null",
        id,
        now,
    )
    .execute(&mut *conn)
    .await
    .map_err(StatementError::to("revoke a key"))?;
    Ok((get(conn, id).await?, revoked.rows_affected() == 1))
}

async fn insert(
    executor: impl PgExecutor<'_>,
    id: Uuid,
    new: &New<'_>,
    now: DateTime<Utc>,
) -> Result<NewKey, Error> {
    let fresh = secret::fresh();
    let scopes: Vec<String> = new.scopes.iter().map(|scope| scope.as_str().to_owned()).collect();
    let row = sqlx::query_as!(
        look::Row,
        "insert into dalsegno.api_keys (id, created_at, expires_at, handle, name, created_by, scopes, sha256, campaigns)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
         on conflict (name) where revoked_at is null and replaced_by is null do nothing
         returning id, name, handle, scopes, created_at, created_by, expires_at, revoked_at, last_used_at, replaced_by, campaigns",
        id,
        now,
        new.expires_at,
        fresh.handle,
        new.name,
        new.created_by,
        &scopes,
        &fresh.digest[..],
        new.campaigns,
    )
    .fetch_optional(executor)
    .await
    .map_err(StatementError::to("store a key"))?;
    match row {
        Some(row) => Ok(NewKey { key: row.into(), text: fresh.text }),
        None => Err(Error::NameTaken(new.name.to_owned())),
    }
}
