//! Sign-ins: browsers that have exchanged an API key for a cookie.
//!
//! The cookie has 256 random bits; the database stores its hash. A sign-in has the scopes of its key, at any moment, and ends with it. The
//! key of the configuration is recognised by its hash, so that a sign-in ends when that key changes.

mod error;

use chrono::{DateTime, TimeDelta, Utc};
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};
use sqlx::{PgConnection, PgExecutor};
use uuid::Uuid;

pub use self::error::Error;
use super::{
    Page, StatementError, ids,
    keys::{self, Digest},
};

/// Longest time between two sign-ins of a browser.
pub const MAX_LIFETIME: TimeDelta = TimeDelta::hours(12);
/// Time for which ended and expired sign-ins are listed.
const KEPT: TimeDelta = TimeDelta::days(30);
const BROWSER_MAX_CHARS: usize = 300;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SignIn {
    pub id: Uuid,
    pub created_at: DateTime<Utc>,
    pub expires_at: DateTime<Utc>,
    pub ended_at: Option<DateTime<Utc>>,
    /// The API key that was exchanged. Null: the key of the configuration.
    pub key_id: Option<Uuid>,
    /// The address that signed in.
    pub peer: Option<String>,
    /// The name that the browser gave.
    pub browser: Option<String>,
}

/// The key that a browser exchanges.
#[derive(Debug, Clone, Copy)]
pub enum ExchangedKey {
    Stored {
        id: Uuid,
        expires_at: Option<DateTime<Utc>>,
    },
    /// The key of the configuration.
    Admin(Digest),
}

/// A browser that signs in.
#[derive(Debug, Clone, Copy)]
pub struct New<'a> {
    pub key: ExchangedKey,
    pub peer: Option<&'a str>,
    pub browser: Option<&'a str>,
}

/// A sign-in with the hash of its cookie, and that of the configuration's key if it was exchanged.
#[derive(Debug, Clone)]
pub struct StoredSignIn {
    pub digest: Digest,
    pub sign_in: SignIn,
    pub admin_key: Option<Digest>,
}

impl SignIn {
    /// Returns true if the sign-in has neither ended nor expired. Its key decides, too.
    pub fn is_open(&self, now: DateTime<Utc>) -> bool {
        self.ended_at.is_none() && now < self.expires_at
    }
}

/// Stores a sign-in and returns the text of its cookie. Removes those that have ended long ago.
pub async fn create(
    conn: &mut PgConnection,
    new: &New<'_>,
    now: DateTime<Utc>,
) -> Result<(SignIn, SecretString), StatementError> {
    remove_old(&mut *conn, now - KEPT).await?;
    let cookie = fresh_cookie();
    let (key_id, admin_key, key_end) = match new.key {
        ExchangedKey::Stored { id, expires_at } => (Some(id), None, expires_at),
        ExchangedKey::Admin(digest) => (None, Some(digest), None),
    };
    let expires_at = key_end.map_or(now + MAX_LIFETIME, |end| end.min(now + MAX_LIFETIME));
    let browser = new.browser.map(|name| name.chars().take(BROWSER_MAX_CHARS).collect::<String>());
    let browser = browser.filter(|name| !name.is_empty());
    let digest = keys::digest(cookie.expose_secret());
    let sign_in = sqlx::query_as!(
        SignIn,
        "insert into dalsegno.sign_ins (id, created_at, expires_at, key_id, admin_key_sha256, sha256, peer, browser)
         values ($1, $2, $3, $4, $5, $6, $7, $8)
         returning id, created_at, expires_at, ended_at, key_id, peer, browser",
        ids::new_at(now),
        now,
        expires_at,
        key_id,
        admin_key.as_ref().map(|digest| &digest[..]),
        &digest[..],
        new.peer,
        browser.as_deref(),
    )
    .fetch_one(conn)
    .await
    .map_err(StatementError::to("store a sign-in"))?;
    Ok((sign_in, cookie))
}

/// Finds the sign-ins of cookies by their hashes, open or not.
pub async fn of_digests(
    executor: impl PgExecutor<'_>,
    digests: &[Digest],
) -> Result<Vec<StoredSignIn>, StatementError> {
    let digests: Vec<&[u8]> = digests.iter().map(<[u8; 32]>::as_slice).collect();
    let rows = sqlx::query!(
        "select id, created_at, expires_at, ended_at, key_id, peer, browser, admin_key_sha256, sha256
           from dalsegno.sign_ins where sha256 = any($1::bytea[])",
        &digests as _,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("find sign-ins"))?;
    let stored = rows.into_iter().map(|row| StoredSignIn {
        digest: Digest::try_from(row.sha256.as_slice()).unwrap_or_default(),
        admin_key: row.admin_key_sha256.and_then(|digest| digest.as_slice().try_into().ok()),
        sign_in: SignIn {
            id: row.id,
            created_at: row.created_at,
            expires_at: row.expires_at,
            ended_at: row.ended_at,
            key_id: row.key_id,
            peer: row.peer,
            browser: row.browser,
        },
    });
    Ok(stored.collect())
}

/// The newest first.
pub async fn list(
    executor: impl PgExecutor<'_>,
    page: Page,
) -> Result<Vec<SignIn>, StatementError> {
    sqlx::query_as!(
        SignIn,
        "select id, created_at, expires_at, ended_at, key_id, peer, browser from dalsegno.sign_ins
          where id < coalesce($1, 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid)
          order by id desc limit $2",
        page.after,
        page.limit,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list sign-ins"))
}

/// Ends a sign-in; true if it was open before.
pub async fn end(
    conn: &mut PgConnection,
    id: Uuid,
    now: DateTime<Utc>,
) -> Result<(SignIn, bool), Error> {
    let ended = sqlx::query!(
        "update dalsegno.sign_ins set ended_at = $2 where id = $1 and ended_at is null",
        id,
        now,
    )
    .execute(&mut *conn)
    .await
    .map_err(StatementError::to("end a sign-in"))?;
    let sign_in = sqlx::query_as!(
        SignIn,
        "select id, created_at, expires_at, ended_at, key_id, peer, browser from dalsegno.sign_ins where id = $1",
        id,
    )
    .fetch_optional(conn)
    .await
    .map_err(StatementError::to("read a sign-in"))?;
    let sign_in = sign_in.ok_or(Error::Unknown(id))?;
    Ok((sign_in, ended.rows_affected() == 1))
}

async fn remove_old(
    executor: impl PgExecutor<'_>,
    before: DateTime<Utc>,
) -> Result<(), StatementError> {
    sqlx::query!("delete from dalsegno.sign_ins where expires_at < $1", before)
        .execute(executor)
        .await
        .map(|_| ())
        .map_err(StatementError::to("remove old sign-ins"))
}

/// Makes the text of a cookie, from the thread's generator, which the system seeds.
pub fn fresh_cookie() -> SecretString {
    hex::encode(rand::random::<[u8; 32]>()).into()
}
