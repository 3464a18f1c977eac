//! Finding items by their words.

use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::PgConnection;
use uuid::Uuid;

use super::{Config, Error, Item, Kind, Origin, Trust, Who};
use crate::domain::{Failed, text};

/// The longest question.
const ASKED_MAX_BYTES: usize = 1000;

/// A text that is as short is its own snippet.
const SHOWN_WHOLE_MAX_BYTES: i32 = 300;

/// What to look for.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// Words; `"in this order"`, `or` and `-without` mean what they do elsewhere.
    pub words: &'a str,
    pub kind: Option<Kind>,
    pub limit: i64,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = MemoryHit)]
pub struct Hit {
    #[serde(flatten)]
    pub item: Item,
    /// Larger is better; only to be compared within one answer.
    pub rank: f64,
    /// Where the words stand, between `**` and `**`.
    pub snippet: String,
}

/// How many of the words have to be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Match {
    All,
    /// For questions in whole sentences, of which no item has every word.
    Any,
}

/// The best first: what has all the words, or, where nothing has, what has some of them.
pub async fn search(
    conn: &mut PgConnection,
    campaign_id: Uuid,
    asked: Asked<'_>,
    who: &Who<'_>,
    config: &Config,
    now: DateTime<Utc>,
) -> Result<Vec<Hit>, Error> {
    text::check("question", asked.words, ASKED_MAX_BYTES)?;
    if !text::asks_for_a_word(asked.words) {
        return Err(Error::NoWords);
    }
    let all = matching(&mut *conn, campaign_id, asked, Match::All, who, config, now).await?;
    match all.is_empty() {
        true => Ok(matching(conn, campaign_id, asked, Match::Any, who, config, now).await?),
        false => Ok(all),
    }
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
        is_plain(asked.words),
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

/// Whether it is nothing but words, so that an index may look for some of them first.
fn is_plain(question: &str) -> bool {
    let is_operator =
        |word: &str| word.starts_with('-') || word.contains('"') || word.eq_ignore_ascii_case("or");
    !question.split_whitespace().any(is_operator)
}
