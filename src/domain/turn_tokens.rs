//! Turn tokens: the credentials with which the child process of a turn authenticates.
//!
//! A token is valid while its turn runs, so it needs no revocation. Only its hash is stored. The queue decides whether the run still has
//! its job ([`crate::queue::is_run_by`]).
//!
//! Race: a delayed worker makes the token of a turn that was ended and followed by another one. The token of the later turn stays.

use chrono::{DateTime, Utc};
use secrecy::{ExposeSecret as _, SecretString};
use sha2::{Digest as _, Sha256};
use sqlx::PgExecutor;
use uuid::Uuid;

use super::StatementError;

/// Prefix of every token.
pub const PREFIX: &str = "dalt_";

/// The turn that a token was made for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bearer {
    pub session_id: Uuid,
    pub turn: i32,
}

/// Makes the token of a turn, which replaces the token of an earlier turn of the session. `None`: a later turn has a token already.
pub async fn mint(
    executor: impl PgExecutor<'_>,
    bearer: &Bearer,
    now: DateTime<Utc>,
) -> Result<Option<SecretString>, StatementError> {
    let text = format!("{PREFIX}{}", hex::encode(rand::random::<[u8; 32]>()));
    let stored = sqlx::query!(
        "insert into dalsegno.turn_tokens (session_id, turn, sha256, minted_at) values ($1, $2, $3, $4)
         on conflict (session_id) do update set turn = excluded.turn, sha256 = excluded.sha256, minted_at = excluded.minted_at
          where turn_tokens.turn <= excluded.turn",
        bearer.session_id,
        bearer.turn,
        &digest(&text),
        now,
    )
    .execute(executor)
    .await
    .map_err(StatementError::to("store the token of a turn"))?;
    Ok((stored.rows_affected() == 1).then(|| text.into()))
}

/// Finds the turn of a token. Does not check that the turn still runs.
pub async fn find(
    executor: impl PgExecutor<'_>,
    token: &SecretString,
) -> Result<Option<Bearer>, StatementError> {
    sqlx::query_as!(
        Bearer,
        "select session_id, turn from dalsegno.turn_tokens where sha256 = $1",
        &digest(token.expose_secret()),
    )
    .fetch_optional(executor)
    .await
    .map_err(StatementError::to("find the token of a turn"))
}

fn digest(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}
