//! Revoking items.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{
    Error, Item, Kind, MemoryCaller, name,
    publish::{event, lock, lock_memory},
    read::find,
};
use crate::domain::{StatementError, feed};

/// Revokes an item: agents can no longer list, find or read it, people still can. Publishing it again makes it valid again.
pub async fn revoke(
    conn: &mut PgConnection,
    campaign_id: Uuid,
    (kind, owner, called): (Kind, Option<&str>, &str),
    by: &MemoryCaller<'_>,
    now: DateTime<Utc>,
) -> Result<Item, Error> {
    by.check_revoke(kind)?;
    let owner = by.owner_of_read(kind, owner)?;
    lock_memory(&mut *conn, campaign_id, by).await?;
    name::check(called)?;
    lock(&mut *conn, campaign_id, kind, owner, called).await?;
    let no_item = || Error::NoItem { kind: kind.as_str(), name: called.to_owned() };
    let mut item = find(&mut *conn, campaign_id, kind, owner, called).await?.ok_or_else(no_item)?;
    if item.revoked_at.is_some() {
        return Err(Error::Revoked { kind: kind.as_str(), name: item.name });
    }
    sqlx::query!(
        "update dalsegno.memory_items set revoked_at = $2, revoked_by = $3 where id = $1",
        item.id,
        now,
        by.label(),
    )
    .execute(&mut *conn)
    .await
    .map_err(StatementError::to("revoke an item"))?;
    item.revoked_at = Some(now);
    item.revoked_by = Some(by.label().to_owned());
    feed::append(conn, &[event(&item, feed::Kind::MemoryRevoked, by)], now).await?;
    Ok(item)
}
