//! Looking items up. Items that the caller may not read are left out or not found.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::{PgConnection, PgExecutor};
use uuid::Uuid;

use super::{Error, Item, Kind, MemoryCaller, Origin, Trust, name};
use crate::domain::{
    Page, StatementError,
    ids::{self, PartialId},
};

/// A filter for lists of items.
#[derive(Debug, Clone, Copy, Default)]
pub struct Filter<'a> {
    pub kind: Option<Kind>,
    /// Journal entries of this owner only.
    pub owner: Option<&'a str>,
    /// True to include revoked and expired items.
    pub with_ended: bool,
}

/// A current or earlier version of an item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = MemoryVersion)]
pub struct Version {
    pub version: i32,
    pub title: String,
    pub bytes: i32,
    pub trust: Trust,
    pub origin: Origin,
    pub author: String,
    pub task_id: Option<Uuid>,
    pub turn: Option<i32>,
    pub written_at: DateTime<Utc>,
}

/// Lists items without their bodies, the newest first.
pub async fn list(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
    filter: Filter<'_>,
    who: &MemoryCaller<'_>,
    page: Page,
    now: DateTime<Utc>,
) -> Result<Vec<Item>, StatementError> {
    if let (Some(Kind::Journal), Some(owner)) = (filter.kind, who.journals().column()) {
        return list_of_owner(executor, campaign_id, (filter, owner), page, now).await;
    }
    sqlx::query_as!(
        Item,
        r#"select id, campaign_id, kind as "kind: Kind", nullif(owner, '') as owner, name, version, title, null::text as body,
                  bytes as "bytes!", trust as "trust: Trust", origin as "origin: Origin", author, task_id, turn, created_at, written_at,
                  expires_at, revoked_at, revoked_by
             from dalsegno.memory_items
            where campaign_id = $1 and ($2::text is null or kind = $2) and ($3::text is null or owner = $3)
              and (kind <> 'journal' or $4::text is null or owner = $4)
              and ($5 or (revoked_at is null and (expires_at is null or expires_at > $6)))
              and ($7::uuid is null or id < $7)
            order by id desc limit $8"#,
        campaign_id,
        filter.kind.map(Kind::as_str),
        filter.owner,
        who.journals().column(),
        filter.with_ended,
        now,
        page.after,
        page.limit,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list a memory"))
}

/// Lists one journal. Sorts all of its entries, because a scan along the campaign's ids might find them far apart.
async fn list_of_owner(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
    (filter, owner): (Filter<'_>, &str),
    page: Page,
    now: DateTime<Utc>,
) -> Result<Vec<Item>, StatementError> {
    sqlx::query_as!(
        Item,
        r#"with own as materialized (
             select id from dalsegno.memory_items
              where campaign_id = $1 and kind = 'journal' and owner = $2 and ($3::text is null or owner = $3)
                and ($4 or (revoked_at is null and (expires_at is null or expires_at > $5)))
                and ($6::uuid is null or id < $6))
           select m.id, m.campaign_id, m.kind as "kind: Kind", nullif(m.owner, '') as owner, m.name, m.version, m.title, null::text as body,
                  m.bytes as "bytes!", m.trust as "trust: Trust", m.origin as "origin: Origin", m.author, m.task_id, m.turn, m.created_at,
                  m.written_at, m.expires_at, m.revoked_at, m.revoked_by
             from (select id from own order by id desc limit $7) as page join dalsegno.memory_items as m on m.id = page.id
            order by m.id desc"#,
        campaign_id,
        owner,
        filter.owner,
        filter.with_ended,
        now,
        page.after,
        page.limit,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list a journal"))
}

/// Selects whole items; `$rest` follows the name of the table.
macro_rules! select_items {
    ($rest:literal, $($argument:expr),+ $(,)?) => {
        sqlx::query_as!(
            Item,
            r#"select id, campaign_id, kind as "kind: Kind", nullif(owner, '') as owner, name, version, title, body,
                  bytes as "bytes!", trust as "trust: Trust", origin as "origin: Origin", author, task_id, turn, created_at, written_at,
                  expires_at, revoked_at, revoked_by
             from dalsegno.memory_items"# + $rest,
            $($argument),+
        )
    };
}

/// Lists whole items for an operator's export, in the order of their first publication.
pub async fn list_whole(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
    page: Page,
    now: DateTime<Utc>,
) -> Result<Vec<Item>, StatementError> {
    select_items!(
        "
            where campaign_id = $1 and revoked_at is null and (expires_at is null or expires_at > $2)
              and ($3::uuid is null or id > $3)
            order by id limit $4",
        campaign_id,
        now,
        page.after,
        page.limit,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("read the memory of a campaign"))
}

/// Reads the current version by name. Only operators can read a revoked or expired item.
pub async fn by_name(
    conn: &mut PgConnection,
    campaign_id: Uuid,
    (kind, owner, name): (Kind, Option<&str>, &str),
    who: &MemoryCaller<'_>,
    now: DateTime<Utc>,
) -> Result<Item, Error> {
    let owner = who.owner_of_read(kind, owner)?;
    let no_item = || Error::NoItem { kind: kind.as_str(), name: name::clean_name(name) };
    let item = find(conn, campaign_id, kind, owner, name).await?.ok_or_else(no_item)?;
    match who.is_operator() || item.is_valid(now) {
        true => Ok(item),
        false => Err(Error::Over { kind: kind.as_str(), name: item.name }),
    }
}

/// Reads the current version by id, for operators.
pub async fn get(conn: &mut PgConnection, campaign_id: Uuid, id: Uuid) -> Result<Item, Error> {
    select_items!(" where campaign_id = $1 and id = $2", campaign_id, id,)
        .fetch_optional(conn)
        .await
        .map_err(StatementError::to("read an item"))?
        .ok_or(Error::NoId(id))
}

/// Returns an item in one of its versions.
pub async fn at_version(conn: &mut PgConnection, item: Item, version: i32) -> Result<Item, Error> {
    if version == item.version {
        return Ok(item);
    }
    let row = sqlx::query!(
        r#"select written_at, task_id, turn, origin as "origin: Origin", author, trust as "trust: Trust", title, body,
                  octet_length(title) + octet_length(body) as "bytes!"
             from dalsegno.memory_versions where item_id = $1 and version = $2"#,
        item.id,
        version,
    )
    .fetch_optional(conn)
    .await
    .map_err(StatementError::to("read an earlier version of an item"))?;
    let current = item.version;
    let Some(row) = row else {
        let (kind, name) = (item.kind.as_str(), item.name);
        return Err(Error::NoVersion { kind, name, version, current });
    };
    Ok(Item {
        version,
        written_at: row.written_at,
        task_id: row.task_id,
        turn: row.turn,
        origin: row.origin,
        author: row.author,
        trust: row.trust,
        title: row.title,
        body: Some(row.body),
        bytes: row.bytes,
        ..item
    })
}

/// Lists all versions, the newest first; at most a hundred.
pub async fn versions(
    conn: &mut PgConnection,
    item: &Item,
) -> Result<Vec<Version>, StatementError> {
    sqlx::query_as!(
        Version,
        r#"select version as "version!", title as "title!", bytes as "bytes!", trust as "trust!: Trust", origin as "origin!: Origin",
                  author as "author!", task_id, turn, written_at as "written_at!"
             from (select version, title, octet_length(title) + octet_length(body) as bytes, trust, origin, author, task_id, turn, written_at
                     from dalsegno.memory_versions where item_id = $1
                   union all
                   select version, title, bytes, trust, origin, author, task_id, turn, written_at
                     from dalsegno.memory_items where id = $1) as v
            order by version desc"#,
        item.id,
    )
    .fetch_all(conn)
    .await
    .map_err(StatementError::to("list the versions of an item"))
}

/// Finds an item by name, valid or not.
pub(super) async fn find(
    conn: &mut PgConnection,
    campaign_id: Uuid,
    kind: Kind,
    owner: &str,
    name: &str,
) -> Result<Option<Item>, StatementError> {
    // An invalid name cannot exist, and Postgres rejects NUL in a parameter.
    if !crate::domain::agents::is_name(name) || owner.contains('\0') {
        return Ok(None);
    }
    select_items!(
        " where campaign_id = $1 and kind = $2 and owner = $3 and name = $4",
        campaign_id,
        kind as Kind,
        owner,
        name,
    )
    .fetch_optional(conn)
    .await
    .map_err(StatementError::to("find an item"))
}

/// Resolves the id that a person has given.
pub async fn find_id(
    executor: impl PgExecutor<'_>,
    given: &PartialId,
    within: Option<&[Uuid]>,
) -> Result<Uuid, ids::NotFound> {
    ids::find_id!(
        executor,
        given,
        within,
        ("item", "memory ls"),
        "dalsegno.memory_items",
        "campaign_id",
        "t.kind || ' ' || t.name"
    )
}
