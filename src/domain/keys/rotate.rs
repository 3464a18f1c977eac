//! Rotation of keys.

use chrono::{DateTime, TimeDelta, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{Error, New, NewKey, get, insert};
use crate::domain::{StatementError, ids};

/// Makes a successor of the same name, scopes and lifetime. The old key stays valid for `overlap`, or until it would have expired anyway.
pub async fn rotate(
    conn: &mut PgConnection,
    id: Uuid,
    overlap: TimeDelta,
    created_by: &str,
    now: DateTime<Utc>,
) -> Result<NewKey, Error> {
    let successor = ids::new_at(now);
    // First, so that the name is free. A concurrent rotation waits here, and then finds the key replaced. The successor has to exist only
    // at the commit, when the foreign key is checked.
    let replaced = sqlx::query!(
        "update dalsegno.api_keys set replaced_by = $2, expires_at = least(expires_at, $3)
          where id = $1 and revoked_at is null and replaced_by is null
         returning (select o.expires_at from dalsegno.api_keys as o where o.id = $1) as was_to_expire_at",
        id,
        successor,
        now + overlap,
    )
    .fetch_optional(&mut *conn)
    .await
    .map_err(StatementError::to("replace a key"))?;
    let old = get(&mut *conn, id).await?;
    let Some(replaced) = replaced else {
        return Err(match old.replaced_by {
            Some(successor) if old.revoked_at.is_none() => Error::Replaced { id, successor },
            _ => Error::Revoked(id),
        });
    };
    let life = replaced.was_to_expire_at.map(|at| at - old.created_at);
    let new = New {
        name: &old.name,
        scopes: &old.scopes,
        campaigns: old.campaigns.as_deref(),
        created_by,
        expires_at: life.map(|life| now + life),
    };
    insert(conn, successor, &new, now).await
}
