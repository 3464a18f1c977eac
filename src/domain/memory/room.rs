//! How much an agent may keep, and when it is told that it comes near.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{Config, Error, Kind, Who};
use crate::domain::Failed;

/// Edicts that hold in one campaign: all of them are named in every call.
const MAX_EDICTS: i64 = 100;

/// What is to be stored, and what it takes the place of.
pub(super) struct Wish<'a> {
    pub(super) campaign_id: Uuid,
    pub(super) kind: Kind,
    /// What is replaced: it is no second edict. Its version before still counts for its author.
    pub(super) replaced: Option<Uuid>,
    pub(super) title: &'a str,
    pub(super) body: &'a str,
}

/// Refuses what goes beyond a limit, and gives the words of a warning for what comes near one.
pub(super) async fn check(
    conn: &mut PgConnection,
    wish: &Wish<'_>,
    by: &Who<'_>,
    config: &Config,
    now: DateTime<Utc>,
) -> Result<Option<String>, Error> {
    let mut warnings = Vec::new();
    if is_near(wish.body.len() as u64, config.item_max_bytes as u64, config) {
        warnings.push(format!(
            "the item has {} of the {} bytes that it may have: split it before it grows",
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

/// Whatever it has written counts as long as it is stored: the version that is replaced now, too, and what holds no more. Otherwise an agent
/// that keeps writing one record anew, or items that expire at once, would fill the database within its limit.
async fn check_agent(
    conn: &mut PgConnection,
    wish: &Wish<'_>,
    by: &Who<'_>,
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
    .map_err(Failed::to("measure what an agent has written"))?;
    let limit = config.agent_max_bytes;
    let new = i64::try_from(wish.title.len() + wish.body.len()).unwrap_or(i64::MAX);
    let bytes = others.saturating_add(new);
    if bytes > limit {
        return Err(Error::Full { bytes, limit });
    }
    Ok(is_near(bytes.unsigned_abs(), limit.unsigned_abs(), config).then(|| {
        format!(
            "what you have written in this campaign has {bytes} of {limit} bytes, with earlier versions and what holds no more: write what \
             will be needed, and no more"
        )
    }))
}

async fn check_edicts(
    conn: &mut PgConnection,
    wish: &Wish<'_>,
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
    .map_err(Failed::to("measure the edicts of a campaign"))?;
    if others.n >= MAX_EDICTS {
        return Err(Error::TooManyEdicts { limit: MAX_EDICTS });
    }
    let bytes = others.bytes.saturating_add(i64::try_from(wish.body.len()).unwrap_or(i64::MAX));
    let room = i64::from(config.edicts_max_bytes);
    Ok((bytes > room).then(|| {
        format!(
            "the edicts have {bytes} bytes together, and agents are told {room}, the oldest first: of the others they are told the \
             names, and have to read them"
        )
    }))
}

fn is_near(bytes: u64, limit: u64, config: &Config) -> bool {
    bytes.saturating_mul(100) >= limit.saturating_mul(config.warn_percent.into())
}
