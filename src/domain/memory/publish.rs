//! Writing.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx::PgConnection;
use uuid::Uuid;

use super::{
    Config, Error, Item, Kind, Trust, Who, name,
    read::find,
    room::{self, Wish},
    vectors::request_embeddings,
};
use crate::domain::{
    Failed, campaigns,
    feed::{self, Kind as FeedKind},
    ids,
};

/// Versions of one item that are kept. Who needs more keeps a document elsewhere.
const MAX_VERSIONS: i32 = 100;

/// What is to be written.
#[derive(Debug, Clone, Copy)]
pub struct New<'a> {
    pub kind: Kind,
    /// Whose journal, where an operator writes; an agent's is its own.
    pub owner: Option<&'a str>,
    /// Only an entry of a journal may do without one.
    pub name: Option<&'a str>,
    pub title: &'a str,
    pub body: &'a str,
    pub expires_at: Option<DateTime<Utc>>,
    /// 0: there is none yet. `None`: in place of whatever there is.
    pub expected_version: Option<i32>,
    /// Taken in from a file.
    pub is_imported: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = MemoryWritten)]
pub struct Written {
    #[serde(flatten)]
    pub item: Item,
    /// False: it said so already, and stays at its version.
    pub changed: bool,
    /// What comes near a limit.
    pub warning: Option<String>,
}

/// What writing comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    First,
    Next,
    Same,
}

/// Writes an item, or the next version of it. One that was revoked or has expired holds again.
///
/// Operators write nothing in a closed campaign: an erasure that has begun must not be written behind. Agents do while their turns
/// end, which an erasure waits for.
///
/// Vectors are asked for at the end: whoever else writes may wait for that until the caller commits.
pub async fn publish(
    conn: &mut PgConnection,
    campaign_id: Uuid,
    new: &New<'_>,
    by: &Who<'_>,
    config: &Config,
    now: DateTime<Utc>,
) -> Result<Written, Error> {
    let written = write(&mut *conn, campaign_id, new, by, config, now).await?;
    if written.changed {
        request_embeddings(conn, config).await?;
    }
    Ok(written)
}

/// As [`publish`], for whoever writes more than one and asks for vectors of all of them.
pub(super) async fn write(
    conn: &mut PgConnection,
    campaign_id: Uuid,
    new: &New<'_>,
    by: &Who<'_>,
    config: &Config,
    now: DateTime<Utc>,
) -> Result<Written, Error> {
    let owner = new.check(by, config, now)?;
    hold(&mut *conn, campaign_id, by).await?;
    let id = ids::at(now);
    let generated = name::of_entry(id, now);
    let name = new.name.unwrap_or(&generated);
    lock(&mut *conn, campaign_id, new.kind, owner, name).await?;
    let found = find(&mut *conn, campaign_id, new.kind, owner, name).await?;
    let replaced = match &found {
        Some(item) => new.check_against(item, by, now)?,
        None => new.check_first(name)?,
    };
    if let Some(same) = replaced.filter(|item| new.is_said_by(item, by, now)) {
        return Ok(Written { item: same.clone(), changed: false, warning: None });
    }
    let wish = Wish {
        campaign_id,
        kind: new.kind,
        replaced: replaced.map(|item| item.id),
        title: new.title,
        body: new.body,
    };
    let warning = room::check(&mut *conn, &wish, by, config, now).await?;
    let item = new.as_item(campaign_id, (id, owner, name), replaced, by, now);
    match replaced {
        Some(before) => replace(&mut *conn, before, &item, config).await?,
        None => insert(&mut *conn, &item, config).await?,
    }
    feed::append(conn, &[event(&item, FeedKind::MemoryPublished, by)], now).await?;
    Ok(Written { item, changed: true, warning })
}

/// What writing would come to, if somebody wrote now: for whoever has to know it of many items first.
pub(super) async fn look(
    conn: &mut PgConnection,
    campaign_id: Uuid,
    new: &New<'_>,
    by: &Who<'_>,
    config: &Config,
    now: DateTime<Utc>,
) -> Result<Outcome, Error> {
    let owner = new.check(by, config, now)?;
    let name = new.name.unwrap_or_default();
    let Some(item) = find(conn, campaign_id, new.kind, owner, name).await? else {
        return new.check_first(name).map(|_| Outcome::First);
    };
    let is_same = new.is_said_by(new.check_against(&item, by, now)?.unwrap_or(&item), by, now);
    Ok(if is_same { Outcome::Same } else { Outcome::Next })
}

/// Waits for whoever else writes in the memory of the campaign, and keeps an erasure from beginning meanwhile.
pub(super) async fn hold(
    conn: &mut PgConnection,
    campaign_id: Uuid,
    by: &Who<'_>,
) -> Result<(), Error> {
    let status = campaigns::hold(&mut *conn, campaign_id).await?;
    if by.is_operator() && status == campaigns::Status::Closed {
        return Err(campaigns::Error::Closed(campaign_id).into());
    }
    sqlx::query!(
        "select pg_advisory_xact_lock(hashtextextended('dalsegno memory ' || $1::uuid::text, 0))",
        campaign_id,
    )
    .fetch_one(conn)
    .await
    .map_err(Failed::to("wait for whoever writes in a memory"))?;
    Ok(())
}

/// Says what is different and who did it, and nothing of what it says.
pub(super) fn event(item: &Item, kind: FeedKind, by: &Who<'_>) -> feed::New {
    let (task_id, _) = by.place();
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
    /// What can be said without looking. Gives the owner.
    fn check<'b>(
        &'b self,
        by: &Who<'b>,
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
        by: &Who<'_>,
        now: DateTime<Utc>,
    ) -> Result<Option<&'b Item>, Error> {
        let (kind, name, current) = (self.kind.as_str(), found.name.clone(), found.version);
        if let Some(expected) = self.expected_version.filter(|expected| *expected != current) {
            return Err(Error::Changed { kind, name, expected, current });
        }
        if self.kind == Kind::Journal && !self.is_said_by(found, by, now) {
            return Err(Error::Written(name));
        }
        if current >= MAX_VERSIONS && !self.is_said_by(found, by, now) {
            return Err(Error::TooManyVersions { kind, name, versions: current });
        }
        Ok(Some(found))
    }

    /// Whether it holds already with the same words. Who vouches for it now is a difference.
    fn is_said_by(&self, item: &Item, by: &Who<'_>, now: DateTime<Utc>) -> bool {
        let said = (item.title.as_str(), item.body.as_deref(), item.expires_at);
        // Who takes in what an export has written changes nothing.
        let is_trusted =
            self.is_imported || self.trust(by) == item.trust || item.trust == Trust::Operator;
        item.holds(now) && said == (self.title, Some(self.body), self.expires_at) && is_trusted
    }

    fn trust(&self, by: &Who<'_>) -> Trust {
        if self.is_imported { Trust::Imported } else { by.trust() }
    }

    fn as_item(
        &self,
        campaign_id: Uuid,
        (id, owner, name): (Uuid, &str, &str),
        replaced: Option<&Item>,
        by: &Who<'_>,
        now: DateTime<Utc>,
    ) -> Item {
        let (task_id, turn) = by.place();
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

/// Keeps retention from removing it meanwhile.
pub(super) async fn lock(
    conn: &mut PgConnection,
    campaign_id: Uuid,
    kind: Kind,
    owner: &str,
    name: &str,
) -> Result<(), Failed> {
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
    .map_err(Failed::to("lock an item"))
}

async fn insert(conn: &mut PgConnection, item: &Item, config: &Config) -> Result<(), Failed> {
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
    .map_err(Failed::to("store an item of a memory"))
}

/// The version before is kept.
async fn replace(
    conn: &mut PgConnection,
    before: &Item,
    item: &Item,
    config: &Config,
) -> Result<(), Failed> {
    sqlx::query!(
        "insert into dalsegno.memory_versions
                (item_id, campaign_id, written_at, task_id, version, turn, origin, author, trust, title, body)
         select id, campaign_id, written_at, task_id, version, turn, origin, author, trust, title, body
           from dalsegno.memory_items where id = $1",
        before.id,
    )
    .execute(&mut *conn)
    .await
    .map_err(Failed::to("keep a version of an item"))?;
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
    .map_err(Failed::to("store the next version of an item"))
}
