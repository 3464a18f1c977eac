//! Manifests: records of the context that each call was sent.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use sqlx::{PgExecutor, types::Json};
use uuid::Uuid;

use super::{StatementError, json_rows};
use crate::context::manifest::{Kind, PartReason, Trust};

/// A manifest to store. Serialized as JSON, it is a row of a statement's parameter (`json_rows`).
#[derive(Debug, Clone, Copy, Serialize)]
pub struct New<'a> {
    pub session_id: Uuid,
    pub turn: i32,
    /// Counts the calls of the turn from 0.
    pub call: i16,
    pub manifest: &'a Value,
    #[serde(serialize_with = "json_rows::bytea")]
    pub sha256: [u8; 32],
    pub estimated_tokens: i64,
    /// The provider's own count of the prompt.
    pub real_tokens: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Manifest {
    pub turn: i32,
    pub call: i16,
    pub created_at: DateTime<Utc>,
    pub estimated_tokens: i64,
    pub real_tokens: Option<i64>,
    pub manifest: Value,
}

impl Manifest {
    /// Returns its parts as the API shows them.
    pub fn parts(&self) -> Vec<Part> {
        parts_of(&self.manifest)
    }
}

/// Returns the parts of a manifest as the API shows them.
pub fn parts_of(manifest: &Value) -> Vec<Part> {
    let stored = StoredManifest::deserialize(manifest).unwrap_or_default();
    stored.parts.into_iter().map(Part::from).collect()
}

/// The context of a call, as its manifest records it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct CallContext {
    /// Number of the call in its turn, from 1.
    pub call: i32,
    pub created_at: DateTime<Utc>,
    /// Estimate of the service before the call, for all parts that are sent.
    pub estimated_tokens: i64,
    /// The provider's own count of the prompt. Null if it reports none.
    pub counted_tokens: Option<i64>,
    /// In the order in which they are sent.
    pub parts: Vec<Part>,
}

/// A part of a context, sent or left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = ContextPart)]
pub struct Part {
    // Texts, because a newer version may have stored a name that this one does not know.
    #[schema(value_type = Kind)]
    pub kind: String,
    /// The row, file or version that the part was made from.
    pub id: Option<String>,
    pub span: Option<Span>,
    /// SHA-256 of the text. Null if the text was not loaded because it is not sent.
    pub sha256: Option<String>,
    /// Estimated tokens.
    pub tokens: i64,
    pub sent: bool,
    pub trust: Trust,
    /// Of posts: the number of posts of each trust level.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = BTreeMap<String, i64>)]
    pub by_trust: BTreeMap<String, i64>,
    /// The reason why the part is sent or left out.
    #[schema(value_type = PartReason)]
    pub why: String,
    /// The same in words.
    pub reason: String,
}

impl Part {
    /// Returns true if a summary stood in its place.
    pub fn is_folded(&self) -> bool {
        matches!(parse_name(&self.why), Some(PartReason::Folded))
    }
}

/// The messages of the session, or the posts of the board, that a part consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = ContextPartSpan)]
pub struct Span {
    pub from_seq: i64,
    pub to_seq: i64,
    /// Number of messages or posts. Null if they were not loaded.
    pub count: Option<i64>,
}

impl Span {
    /// Formats the numbers: `4`, or `1 to 4`.
    pub fn as_range(&self) -> String {
        match self.from_seq == self.to_seq {
            true => self.from_seq.to_string(),
            false => format!("{} to {}", self.from_seq, self.to_seq),
        }
    }

    /// Formats the numbers of a span that a part may have: `none`, `4`, or `1 to 4`.
    pub fn format_range(span: Option<Self>) -> String {
        span.map_or_else(|| "none".to_owned(), |span| span.as_range())
    }
}

/// The stored form of a manifest.
#[derive(Debug, Default, Deserialize)]
struct StoredManifest {
    #[serde(default)]
    parts: Vec<StoredPart>,
}

#[derive(Debug, Deserialize)]
struct StoredPart {
    kind: String,
    id: Option<String>,
    span: Option<Span>,
    sha256: Option<String>,
    tokens: i64,
    sent: bool,
    why: String,
    #[serde(default)]
    by_trust: BTreeMap<String, i64>,
}

impl From<StoredPart> for Part {
    fn from(stored: StoredPart) -> Self {
        let StoredPart { kind, id, span, sha256, tokens, sent, why, by_trust } = stored;
        let trust = parse_name(&kind).map_or(Trust::Untrusted, Kind::trust);
        let reason = match parse_name::<PartReason>(&why) {
            Some(reason) => reason.as_text().to_owned(),
            None => why.replace('_', " "),
        };
        Self { kind, id, span, sha256, tokens, sent, trust, by_trust, why, reason }
    }
}

/// Returns `None` for a name of a newer version.
fn parse_name<T: DeserializeOwned>(name: &str) -> Option<T> {
    serde_json::from_value(name.into()).ok()
}

#[cfg(test)]
impl New<'static> {
    pub(super) fn example() -> Self {
        Self {
            session_id: Uuid::nil(),
            turn: 1,
            call: 0,
            manifest: &Value::Null,
            sha256: [0; 32],
            estimated_tokens: 0,
            real_tokens: None,
        }
    }
}

pub async fn insert(
    executor: impl PgExecutor<'_>,
    new: &New<'_>,
    now: DateTime<Utc>,
) -> Result<(), StatementError> {
    sqlx::query!(
        "insert into dalsegno.manifests (session_id, turn, call, created_at, estimated_tokens, real_tokens, sha256, manifest)
         values ($1, $2, $3, $4, $5, $6, $7, $8)",
        new.session_id,
        new.turn,
        new.call,
        now,
        new.estimated_tokens,
        new.real_tokens,
        new.sha256.as_slice(),
        new.manifest,
    )
    .execute(executor)
    .await
    .map(|_| ())
    .map_err(StatementError::to("store a manifest"))
}

/// Lists the manifests of a session after the given turn, in order.
pub async fn list(
    executor: impl PgExecutor<'_>,
    session_id: Uuid,
    after_turn: i32,
    limit: i64,
) -> Result<Vec<Manifest>, StatementError> {
    sqlx::query_as!(
        Manifest,
        "select turn, call, created_at, estimated_tokens, real_tokens, manifest
           from dalsegno.manifests where session_id = $1 and turn > $2 order by turn, call limit $3",
        session_id,
        after_turn,
        limit,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("read the manifests of a session"))
}

/// Manifests of consecutive turns.
#[derive(Debug)]
pub struct Page {
    /// In order, each turn with all of its calls.
    pub stored: Vec<Manifest>,
    pub has_more: bool,
}

/// Lists the manifests of up to `limit` turns after a turn.
pub async fn page(
    executor: impl PgExecutor<'_>,
    session_id: Uuid,
    after_turn: i32,
    limit: i64,
) -> Result<Page, StatementError> {
    let rows = sqlx::query!(
        r#"with next as (
             select distinct turn from dalsegno.manifests where session_id = $1 and turn > $2 order by turn limit $3::bigint + 1),
           page as (select turn from next order by turn limit $3)
           select m.turn, m.call, m.created_at, m.estimated_tokens, m.real_tokens, m.manifest,
                  (select count(*) from next) > $3 as "has_more!"
             from dalsegno.manifests as m where m.session_id = $1 and m.turn in (select turn from page) order by m.turn, m.call"#,
        session_id,
        after_turn,
        limit,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("read a page of manifests"))?;
    let has_more = rows.first().is_some_and(|row| row.has_more);
    let stored = rows.into_iter().map(|row| Manifest {
        turn: row.turn,
        call: row.call,
        created_at: row.created_at,
        estimated_tokens: row.estimated_tokens,
        real_tokens: row.real_tokens,
        manifest: row.manifest,
    });
    Ok(Page { stored: stored.collect(), has_more })
}

/// Returns the newest turn of a session with a manifest.
pub async fn newest_turn(
    executor: impl PgExecutor<'_>,
    session_id: Uuid,
) -> Result<Option<i32>, StatementError> {
    sqlx::query_scalar!(
        "select turn from dalsegno.manifests where session_id = $1 order by turn desc limit 1",
        session_id,
    )
    .fetch_optional(executor)
    .await
    .map_err(StatementError::to("find the newest context of a session"))
}

/// Lists the manifests of a turn's calls, in order.
pub async fn stored_of_turn(
    executor: impl PgExecutor<'_>,
    session_id: Uuid,
    turn: i32,
) -> Result<Vec<Manifest>, StatementError> {
    sqlx::query_as!(
        Manifest,
        "select turn, call, created_at, estimated_tokens, real_tokens, manifest
           from dalsegno.manifests where session_id = $1 and turn = $2 order by call",
        session_id,
        turn,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("read the manifests of a turn"))
}

/// The provider's count of a turn's first call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FirstCount {
    pub session_id: Uuid,
    pub turn: i32,
    pub counted_tokens: i64,
}

/// Lists the counts of the first calls of these turns, as far as they were counted. The lists belong together.
pub async fn first_counts(
    executor: impl PgExecutor<'_>,
    session_ids: &[Uuid],
    turns: &[i32],
) -> Result<Vec<FirstCount>, StatementError> {
    sqlx::query_as!(
        FirstCount,
        r#"select m.session_id, m.turn, m.real_tokens as "counted_tokens!"
             from unnest($1::uuid[], $2::integer[]) as t (session_id, turn)
             join dalsegno.manifests as m on m.session_id = t.session_id and m.turn = t.turn
            where m.call = 0 and m.real_tokens > 0"#,
        session_ids,
        turns,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("read the counts of first calls"))
}

/// The turns of a session with a call that contained a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnsWithPart {
    pub session_id: Uuid,
    /// The newest first.
    pub turns: Vec<i32>,
    /// Time of the newest of these calls.
    pub last_at: DateTime<Utc>,
}

/// Finds the turns of these sessions with a call that was sent this part. Reads up to `max_calls` calls of each session, the newest ones.
pub async fn turns_with_part(
    executor: impl PgExecutor<'_>,
    session_ids: &[Uuid],
    (kind, id): (Kind, &str),
    max_calls: i64,
) -> Result<Vec<TurnsWithPart>, StatementError> {
    let part = json!({ "parts": [{ "kind": kind, "id": id, "sent": true }] });
    sqlx::query_as!(
        TurnsWithPart,
        r#"select s.id as "session_id!", array_agg(distinct m.turn order by m.turn desc) as "turns!", max(m.created_at) as "last_at!"
             from unnest($1::uuid[]) as s (id)
            cross join lateral (
                  select turn, created_at, manifest from dalsegno.manifests
                   where session_id = s.id order by turn desc, call desc limit $3) as m
            where m.manifest @> $2 group by s.id"#,
        session_ids,
        part,
        max_calls,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("find the turns with a part in their context"))
}

/// Lists the contexts of a turn's calls, in order.
pub async fn of_turn(
    executor: impl PgExecutor<'_>,
    session_id: Uuid,
    turn: i32,
) -> Result<Vec<CallContext>, StatementError> {
    sqlx::query!(
        r#"select call, created_at, estimated_tokens, real_tokens, manifest as "manifest: Json<StoredManifest>"
             from dalsegno.manifests where session_id = $1 and turn = $2 order by call"#,
        session_id,
        turn,
    )
    .map(|row| CallContext {
        call: i32::from(row.call) + 1,
        created_at: row.created_at,
        estimated_tokens: row.estimated_tokens,
        counted_tokens: row.real_tokens,
        parts: row.manifest.0.parts.into_iter().map(Part::from).collect(),
    })
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("read the contexts of a turn"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_of_a_newer_version_are_shown_and_untrusted() {
        let stored = json!({ "kind": "weather", "tokens": 7, "sent": true, "why": "it_rains" });
        let part = Part::from(serde_json::from_value::<StoredPart>(stored).unwrap());
        assert_eq!((part.trust, part.reason.as_str()), (Trust::Untrusted, "it rains"));
        let stored = json!({ "kind": "skill", "tokens": 7, "sent": true, "why": "every_call" });
        let part = Part::from(serde_json::from_value::<StoredPart>(stored).unwrap());
        assert_eq!((part.trust, part.reason.as_str()), (Trust::Trusted, "sent with every call"));
    }
}
