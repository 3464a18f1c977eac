//! Size limits of the memory, and the warnings near them.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{Config, Error, Kind, MemoryCaller};
use crate::domain::StatementError;

/// Maximum number of valid edicts in a campaign: every call names all of them.
pub(super) const MAX_EDICTS: i64 = 100;

/// An item to be stored, and the one that it replaces.
pub(super) struct ItemWrite<'a> {
    pub(super) campaign_id: Uuid,
    pub(super) kind: Kind,
    /// The replaced item, which does not count as a second edict. Its old version still counts for its author.
    pub(super) replaced: Option<Uuid>,
    pub(super) title: &'a str,
    pub(super) body: &'a str,
}

/// Checks the limits. Returns an error beyond a limit, and a warning near one.
pub(super) async fn check(
    conn: &mut PgConnection,
    wish: &ItemWrite<'_>,
    by: &MemoryCaller<'_>,
    config: &Config,
    now: DateTime<Utc>,
) -> Result<Option<String>, Error> {
    let mut warnings = Vec::new();
    if is_near_limit(wish.body.len() as u64, config.item_max_bytes as u64, config) {
        warnings.push(format!(
            "the item has {} of at most {} bytes: split it before it grows",
            wish.body.len(),
            config.item_max_bytes
        ));
    }
    if !by.is_operator() {
        warnings.extend(check_agent(&mut *conn, wish, by, config).await?);
    }
    if wish.kind == Kind::Edict {
        warnings.extend(check_edicts(conn, wish, config, now).await?);
    }
    Ok((!warnings.is_empty()).then(|| warnings.join("; ")))
}

/// Checks the total size of an agent's items. Everything stored counts, including replaced versions and revoked or expired items.
/// Otherwise an agent that rewrites one record, or writes items that expire at once, could fill the database.
async fn check_agent(
    conn: &mut PgConnection,
    wish: &ItemWrite<'_>,
    by: &MemoryCaller<'_>,
    config: &Config,
) -> Result<Option<String>, Error> {
    let others = sqlx::query_scalar!(
        r#"select (coalesce((select sum(bytes) from dalsegno.memory_items
                              where campaign_id = $1 and author = $2 and origin = 'agent'), 0)
                   + coalesce((select sum(octet_length(title) + octet_length(body)) from dalsegno.memory_versions
                                where campaign_id = $1 and author = $2 and origin = 'agent'), 0))::bigint as "bytes!""#,
        wish.campaign_id,
        by.label(),
    )
    .fetch_one(conn)
    .await
    .map_err(StatementError::to("count the bytes of an agent's items"))?;
    let limit = config.agent_max_bytes;
    let new = i64::try_from(wish.title.len() + wish.body.len()).unwrap_or(i64::MAX);
    let bytes = others.saturating_add(new);
    if bytes > limit {
        return Err(Error::Full { bytes, limit });
    }
    Ok(is_near_limit(bytes.unsigned_abs(), limit.unsigned_abs(), config).then(|| {
        format!(
            "your items in this campaign have {bytes} of {limit} bytes, including earlier versions, revoked and expired items: write only what will be needed"
        )
    }))
}

async fn check_edicts(
    conn: &mut PgConnection,
    wish: &ItemWrite<'_>,
    config: &Config,
    now: DateTime<Utc>,
) -> Result<Option<String>, Error> {
    let others = sqlx::query!(
        r#"select count(*) as "n!", coalesce(sum(octet_length(body)), 0)::bigint as "bytes!" from dalsegno.memory_items
            where campaign_id = $1 and kind = 'edict' and revoked_at is null
              and (expires_at is null or expires_at > $2) and ($3::uuid is null or id <> $3)"#,
        wish.campaign_id,
        now,
        wish.replaced,
    )
    .fetch_one(conn)
    .await
    .map_err(StatementError::to("count the bytes of a campaign's edicts"))?;
    if others.n >= MAX_EDICTS {
        return Err(Error::TooManyEdicts { limit: MAX_EDICTS });
    }
    let bytes = others.bytes.saturating_add(i64::try_from(wish.body.len()).unwrap_or(i64::MAX));
    let room = i64::from(config.edicts_max_bytes);
    Ok((bytes > room).then(|| {
        format!(
            "the edicts have {bytes} bytes together, and agents are shown {room} of them, the oldest first; of the others they are shown only the names"
        )
    }))
}

fn is_near_limit(bytes: u64, limit: u64, config: &Config) -> bool {
    bytes.saturating_mul(100) >= limit.saturating_mul(config.warn_percent.into())
}
