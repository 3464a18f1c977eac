//! Writing items.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx::PgConnection;
use uuid::Uuid;

use super::{
    Config, Error, Item, Kind, MemoryCaller, Trust, name,
    read::find,
    size_limits::{self, ItemWrite},
    vectors::request_embeddings,
};
use crate::domain::{
    StatementError, campaigns,
    feed::{self, Kind as FeedKind},
    ids,
};

/// Maximum number of versions of one item. Longer histories belong in a document elsewhere.
pub(super) const MAX_VERSIONS: i32 = 100;

/// An item to write.
#[derive(Debug, Clone, Copy)]
pub struct New<'a> {
    pub kind: Kind,
    /// Journal owner, set by operators only; an agent writes its own journal.
    pub owner: Option<&'a str>,
    /// The name. Optional for journal entries only.
    pub name: Option<&'a str>,
    pub title: &'a str,
    pub body: &'a str,
    pub expires_at: Option<DateTime<Utc>>,
    /// The version to replace; 0 requires a new item. `None` replaces any version.
    pub expected_version: Option<i32>,
    /// True for an import from a file.
    pub is_imported: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = MemoryWritten)]
pub struct PublishResult {
    #[serde(flatten)]
    pub item: Item,
    /// False if the item had this content already; its version stays the same.
    pub changed: bool,
    /// A limit that is nearly used up.
    pub warning: Option<String>,
}

/// The effect that writing would have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    First,
    Next,
    Same,
}

/// Writes an item or its next version. A revoked or expired item becomes valid again.
///
/// Operators cannot write in a closed campaign, because an erasure may have begun. Agents can until their turns end; an erasure waits for
/// these turns.
///
/// Requests vectors last: from then on, other writers may wait until the caller commits.
pub async fn publish(
    conn: &mut PgConnection,
    campaign_id: Uuid,
    new: &New<'_>,
    by: &MemoryCaller<'_>,
    config: &Config,
    now: DateTime<Utc>,
) -> Result<PublishResult, Error> {
    let written = write(&mut *conn, campaign_id, new, by, config, now).await?;
    if written.changed {
        request_embeddings(conn, config).await?;
    }
    Ok(written)
}

/// Writes an item without requesting vectors, for callers that write several and request them once.
pub(super) async fn write(
    conn: &mut PgConnection,
    campaign_id: Uuid,
    new: &New<'_>,
    by: &MemoryCaller<'_>,
    config: &Config,
    now: DateTime<Utc>,
) -> Result<PublishResult, Error> {
    let owner = new.check(by, config, now)?;
    lock_memory(&mut *conn, campaign_id, by).await?;
    let id = ids::new_at(now);
    let generated = name::of_entry(id, now);
    let name = new.name.unwrap_or(&generated);
    lock(&mut *conn, campaign_id, new.kind, owner, name).await?;
    let found = find(&mut *conn, campaign_id, new.kind, owner, name).await?;
    let replaced = match &found {
        Some(item) => new.check_against(item, by, now)?,
        None => new.check_first(name)?,
    };
    if let Some(same) = replaced.filter(|item| new.is_unchanged(item, by, now)) {
        return Ok(PublishResult { item: same.clone(), changed: false, warning: None });
    }
    let wish = ItemWrite {
        campaign_id,
        kind: new.kind,
        replaced: replaced.map(|item| item.id),
        title: new.title,
        body: new.body,
    };
    let warning = size_limits::check(&mut *conn, &wish, by, config, now).await?;
    let item = new.as_item(campaign_id, (id, owner, name), replaced, by, now);
    match replaced {
        Some(before) => replace(&mut *conn, before, &item, config).await?,
        None => insert(&mut *conn, &item, config).await?,
    }
    feed::append(conn, &[event(&item, FeedKind::MemoryPublished, by)], now).await?;
    Ok(PublishResult { item, changed: true, warning })
}

/// Predicts the effect of writing an item now. Used to check many items before the first is written.
pub(super) async fn predict_outcome(
    conn: &mut PgConnection,
    campaign_id: Uuid,
    new: &New<'_>,
    by: &MemoryCaller<'_>,
    config: &Config,
    now: DateTime<Utc>,
) -> Result<Outcome, Error> {
    let owner = new.check(by, config, now)?;
    let name = new.name.unwrap_or_default();
    let Some(item) = find(conn, campaign_id, new.kind, owner, name).await? else {
        return new.check_first(name).map(|_| Outcome::First);
    };
    let is_same = new.is_unchanged(new.check_against(&item, by, now)?.unwrap_or(&item), by, now);
    Ok(if is_same { Outcome::Same } else { Outcome::Next })
}

/// Waits for other writers of the campaign's memory, and keeps an erasure from beginning until the transaction ends.
pub(super) async fn lock_memory(
    conn: &mut PgConnection,
    campaign_id: Uuid,
    by: &MemoryCaller<'_>,
) -> Result<(), Error> {
    let status = campaigns::lock_against_erasure(&mut *conn, campaign_id).await?;
    if by.is_operator() && status == campaigns::Status::Closed {
        return Err(campaigns::Error::Closed(campaign_id).into());
    }
    sqlx::query!(
        "select pg_advisory_xact_lock(hashtextextended('dalsegno memory ' || $1::uuid::text, 0))",
        campaign_id,
    )
    .fetch_one(conn)
    .await
    .map_err(StatementError::to("wait for other writers of a memory"))?;
    Ok(())
}

/// Builds the feed event: the changed item and the author, without the text.
pub(super) fn event(item: &Item, kind: FeedKind, by: &MemoryCaller<'_>) -> feed::New {
    let (task_id, _) = by.task_and_turn();
    feed::New {
        campaign_id: Some(item.campaign_id),
        task_id,
        session_id: None,
        kind,
        data: json!({
            "id": item.id, "kind": item.kind, "name": item.name, "owner": item.owner, "version": item.version,
            "author": by.label(), "origin": by.origin(),
        }),
    }
}

impl New<'_> {
    /// Checks all that needs no database. Returns the owner.
    fn check<'b>(
        &'b self,
        by: &MemoryCaller<'b>,
        config: &Config,
        now: DateTime<Utc>,
    ) -> Result<&'b str, Error> {
        let owner = by.owner_of_new(self.kind, self.owner)?;
        match self.name {
            Some(name) => name::check(name)?,
            None if self.kind == Kind::Journal => {}
            None => name::check("")?,
        }
        name::check_title(self.title)?;
        name::check_body(self.body, config)?;
        match self.expires_at.filter(|end| *end <= now) {
            Some(end) => Err(Error::Expired(end)),
            None => Ok(owner),
        }
    }

    fn check_first<'b>(&self, name: &str) -> Result<Option<&'b Item>, Error> {
        match self.expected_version.filter(|expected| *expected != 0) {
            Some(_) => Err(Error::NoItem { kind: self.kind.as_str(), name: name.to_owned() }),
            None => Ok(None),
        }
    }

    fn check_against<'b>(
        &self,
        found: &'b Item,
        by: &MemoryCaller<'_>,
        now: DateTime<Utc>,
    ) -> Result<Option<&'b Item>, Error> {
        let (kind, name, current) = (self.kind.as_str(), found.name.clone(), found.version);
        if let Some(expected) = self.expected_version.filter(|expected| *expected != current) {
            return Err(Error::Changed { kind, name, expected, current });
        }
        if self.kind == Kind::Journal && !self.is_unchanged(found, by, now) {
            return Err(Error::Written(name));
        }
        if current >= MAX_VERSIONS && !self.is_unchanged(found, by, now) {
            return Err(Error::TooManyVersions { kind, name, versions: current });
        }
        Ok(Some(found))
    }

    /// Returns true if a valid item has the same content. A change of the trust level counts as a difference.
    fn is_unchanged(&self, item: &Item, by: &MemoryCaller<'_>, now: DateTime<Utc>) -> bool {
        let said = (item.title.as_str(), item.body.as_deref(), item.expires_at);
        // Importing an unchanged export changes nothing.
        let is_trusted =
            self.is_imported || self.trust(by) == item.trust || item.trust == Trust::Operator;
        item.is_valid(now) && said == (self.title, Some(self.body), self.expires_at) && is_trusted
    }

    fn trust(&self, by: &MemoryCaller<'_>) -> Trust {
        if self.is_imported { Trust::Imported } else { by.trust() }
    }

    fn as_item(
        &self,
        campaign_id: Uuid,
        (id, owner, name): (Uuid, &str, &str),
        replaced: Option<&Item>,
        by: &MemoryCaller<'_>,
        now: DateTime<Utc>,
    ) -> Item {
        let (task_id, turn) = by.task_and_turn();
        Item {
            id: replaced.map_or(id, |item| item.id),
            campaign_id,
            kind: self.kind,
            owner: Some(owner).filter(|owner| !owner.is_empty()).map(str::to_owned),
            name: name.to_owned(),
            version: replaced.map_or(1, |item| item.version + 1),
            title: self.title.to_owned(),
            body: Some(self.body.to_owned()),
            bytes: i32::try_from(self.title.len() + self.body.len()).unwrap_or(i32::MAX),
            trust: self.trust(by),
            origin: by.origin(),
            author: by.label().to_owned(),
            task_id,
            turn,
            created_at: replaced.map_or(now, |item| item.created_at),
            written_at: now,
            expires_at: self.expires_at,
            revoked_at: None,
            revoked_by: None,
        }
    }
}

/// Locks the row, so that retention cannot remove it meanwhile.
pub(super) async fn lock(
    conn: &mut PgConnection,
    campaign_id: Uuid,
    kind: Kind,
    owner: &str,
    name: &str,
) -> Result<(), StatementError> {
    sqlx::query!(
        r#"select id from dalsegno.memory_items where campaign_id = $1 and kind = $2 and owner = $3 and name = $4 for update"#,
        campaign_id,
        kind as Kind,
        owner,
        name,
    )
    .fetch_optional(conn)
    .await
    .map(drop)
    .map_err(StatementError::to("lock an item"))
}

async fn insert(
    conn: &mut PgConnection,
    item: &Item,
    config: &Config,
) -> Result<(), StatementError> {
    sqlx::query!(
        "insert into dalsegno.memory_items
                (id, campaign_id, created_at, written_at, expires_at, task_id, version, turn, kind, owner, name, origin, author, trust,
                 language, title, body)
         values ($1, $2, $3, $3, $4, $5, 1, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)",
        item.id,
        item.campaign_id,
        item.written_at,
        item.expires_at,
        item.task_id,
        item.turn,
        item.kind as Kind,
        item.owner.as_deref().unwrap_or_default(),
        item.name,
        item.origin as super::Origin,
        item.author,
        item.trust as Trust,
        config.language,
        item.title,
        item.body.as_deref().unwrap_or_default(),
    )
    .execute(conn)
    .await
    .map(drop)
    .map_err(StatementError::to("store an item of a memory"))
}

/// Writes the next version and keeps the previous one.
async fn replace(
    conn: &mut PgConnection,
    before: &Item,
    item: &Item,
    config: &Config,
) -> Result<(), StatementError> {
    sqlx::query!(
        "insert into dalsegno.memory_versions
                (item_id, campaign_id, written_at, task_id, version, turn, origin, author, trust, title, body)
         select id, campaign_id, written_at, task_id, version, turn, origin, author, trust, title, body
           from dalsegno.memory_items where id = $1",
        before.id,
    )
    .execute(&mut *conn)
    .await
    .map_err(StatementError::to("store a version of an item"))?;
    sqlx::query!(
        "update dalsegno.memory_items
            set version = $2, written_at = $3, expires_at = $4, task_id = $5, turn = $6, origin = $7, author = $8, trust = $9,
                language = $10, title = $11, body = $12, revoked_at = null, revoked_by = null
          where id = $1",
        item.id,
        item.version,
        item.written_at,
        item.expires_at,
        item.task_id,
        item.turn,
        item.origin as super::Origin,
        item.author,
        item.trust as Trust,
        config.language,
        item.title,
        item.body.as_deref().unwrap_or_default(),
    )
    .execute(conn)
    .await
    .map(drop)
    .map_err(StatementError::to("store the next version of an item"))
}
