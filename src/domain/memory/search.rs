//! Finding items by their words, and by what they mean where that is known.

use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::PgConnection;
use uuid::Uuid;

use super::{Config, Error, Item, Kind, Origin, Trust, Who, meaning::nearest};
use crate::domain::{
    Failed,
    embeddings::{Meaning, fuse},
    text,
};

/// A text that is as short is its own snippet.
const SHOWN_WHOLE_MAX_BYTES: i32 = 300;

/// What to look for.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// Words; `"in this order"`, `or` and `-without` mean what they do elsewhere.
    pub words: &'a str,
    pub kind: Option<Kind>,
    pub limit: i64,
    /// What they mean, where somebody was asked. Nobody looks for it beside operators: they say exactly what is wanted.
    pub meaning: Option<&'a Meaning>,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = MemoryHit)]
pub struct Hit {
    #[serde(flatten)]
    pub item: Item,
    /// Larger is better; only to be compared within one answer.
    pub rank: f64,
    /// Where the words stand, between `**` and `**`. The beginning of what was found by its meaning alone.
    pub snippet: String,
}

/// How many of the words have to be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Match {
    All,
    /// For questions in whole sentences, of which no item has every word.
    Any,
}

/// The best first: what has all the words, or, where nothing has, what has some of them; and between them, what means about the same.
pub async fn search(
    conn: &mut PgConnection,
    campaign_id: Uuid,
    asked: Asked<'_>,
    who: &Who<'_>,
    config: &Config,
    now: DateTime<Utc>,
) -> Result<Vec<Hit>, Error> {
    text::check("question", asked.words, text::QUESTION_MAX_BYTES)?;
    if !text::asks_for_a_word(asked.words) {
        return Err(Error::NoWords);
    }
    let mut hits = matching(&mut *conn, campaign_id, asked, Match::All, who, config, now).await?;
    if hits.is_empty() && !text::forbids_a_word(asked.words) {
        hits = matching(&mut *conn, campaign_id, asked, Match::Any, who, config, now).await?;
    }
    match asked.meaning.filter(|_| text::is_plain(asked.words)) {
        None => Ok(hits),
        Some(meaning) => {
            let near = nearest(&mut *conn, campaign_id, asked, meaning, who, now).await?;
            Ok(together(conn, campaign_id, hits, &near, asked.limit, now).await?)
        }
    }
}

/// One list of what was found both ways.
async fn together(
    conn: &mut PgConnection,
    campaign_id: Uuid,
    mut hits: Vec<Hit>,
    near: &[Uuid],
    limit: i64,
    now: DateTime<Utc>,
) -> Result<Vec<Hit>, Failed> {
    if near.is_empty() {
        return Ok(hits);
    }
    let by_words: Vec<Uuid> = hits.iter().map(|hit| hit.item.id).collect();
    let fused = fuse(&by_words, near, usize::try_from(limit).unwrap_or(0));
    let wordless = fused.iter().map(|(id, _)| *id).filter(|id| !by_words.contains(id));
    hits.extend(found_by_meaning(conn, campaign_id, &wordless.collect::<Vec<_>>(), now).await?);
    let ranked = fused.into_iter().filter_map(|(id, rank)| {
        let at = hits.iter().position(|hit| hit.item.id == id)?;
        Some(Hit { rank, ..hits.swap_remove(at) })
    });
    Ok(ranked.collect())
}

/// As far as they still hold.
async fn found_by_meaning(
    conn: &mut PgConnection,
    campaign_id: Uuid,
    ids: &[Uuid],
    now: DateTime<Utc>,
) -> Result<Vec<Hit>, Failed> {
    let items = sqlx::query_as!(
        Item,
        r#"select id, campaign_id, kind as "kind: Kind", nullif(owner, '') as owner, name, version, title,
                  case when octet_length(body) <= $4 then body else left(body, $4) || ' ...' end as body, bytes as "bytes!",
                  trust as "trust: Trust", origin as "origin: Origin", author, task_id, turn, created_at, written_at, expires_at,
                  revoked_at, revoked_by
             from dalsegno.memory_items
            where campaign_id = $1 and id = any($2) and revoked_at is null and (expires_at is null or expires_at > $3)"#,
        campaign_id,
        ids,
        now,
        SHOWN_WHOLE_MAX_BYTES,
    )
    .fetch_all(conn)
    .await
    .map_err(Failed::to("read what a memory has of a meaning"))?;
    let hits = items.into_iter().map(|mut item| {
        let snippet = item.body.take().unwrap_or_default();
        Hit { item, rank: 0.0, snippet }
    });
    Ok(hits.collect())
}

async fn matching(
    conn: &mut PgConnection,
    campaign_id: Uuid,
    asked: Asked<'_>,
    how: Match,
    who: &Who<'_>,
    config: &Config,
    now: DateTime<Utc>,
) -> Result<Vec<Hit>, Failed> {
    let rows = sqlx::query_file!(
        "src/domain/memory/search.sql",
        campaign_id,
        asked.words,
        config.language,
        how == Match::All,
        text::is_plain(asked.words),
        asked.kind.map(Kind::as_str),
        who.journals().column(),
        now,
        asked.limit,
        SHOWN_WHOLE_MAX_BYTES,
    )
    .fetch_all(conn)
    .await
    .map_err(Failed::to("search a memory"))?;
    let hits = rows.into_iter().map(|row| Hit {
        item: Item {
            id: row.id,
            campaign_id,
            kind: row.kind,
            owner: row.owner,
            name: row.name,
            version: row.version,
            title: row.title,
            body: None,
            bytes: row.bytes,
            trust: row.trust,
            origin: row.origin,
            author: row.author,
            task_id: row.task_id,
            turn: row.turn,
            created_at: row.created_at,
            written_at: row.written_at,
            expires_at: row.expires_at,
            revoked_at: None,
            revoked_by: None,
        },
        rank: row.rank.into(),
        snippet: row.snippet,
    });
    Ok(hits.collect())
}
