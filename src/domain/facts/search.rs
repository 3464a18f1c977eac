//! Finding facts by their words, and by what they mean where that is known.

use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::PgConnection;
use uuid::Uuid;

use super::{Ended, Error, Fact, Source, Trust, check_name, meaning::nearest};
use crate::domain::{
    Failed,
    embeddings::{Meaning, fuse},
    text,
};

/// What to look for.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// Words; `"in this order"`, `or` and `-without` mean what they do elsewhere.
    pub words: &'a str,
    pub limit: i64,
    /// What they mean, where somebody was asked. Nobody looks for it beside operators: they say exactly what is wanted.
    pub meaning: Option<&'a Meaning>,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = FactHit)]
pub struct Hit {
    #[serde(flatten)]
    pub fact: Fact,
    /// Larger is better; only to be compared within one answer.
    pub rank: f64,
}

/// What holds of a user, the best first: what has all the words, or, where nothing has, what has some of them; and between them, what means
/// about the same.
pub async fn search(
    conn: &mut PgConnection,
    user: &str,
    question: Question<'_>,
    language: &str,
    now: DateTime<Utc>,
) -> Result<Vec<Hit>, Error> {
    let Question { words, limit, meaning } = question;
    check_name(user)?;
    text::check("question", words, text::QUESTION_MAX_BYTES)?;
    if !text::asks_for_a_word(words) {
        return Err(Error::NoWords);
    }
    let mut hits = matching(&mut *conn, user, (words, limit), true, language, now).await?;
    if hits.is_empty() && !text::forbids_a_word(words) {
        hits = matching(&mut *conn, user, (words, limit), false, language, now).await?;
    }
    match meaning.filter(|_| text::is_plain(words)) {
        None => Ok(hits),
        Some(meaning) => {
            let near = nearest(&mut *conn, user, limit, meaning, now).await?;
            Ok(together(conn, user, hits, &near, limit, now).await?)
        }
    }
}

/// One list of what was found both ways.
async fn together(
    conn: &mut PgConnection,
    user: &str,
    mut hits: Vec<Hit>,
    near: &[Uuid],
    limit: i64,
    now: DateTime<Utc>,
) -> Result<Vec<Hit>, Failed> {
    if near.is_empty() {
        return Ok(hits);
    }
    let by_words: Vec<Uuid> = hits.iter().map(|hit| hit.fact.id).collect();
    let fused = fuse(&by_words, near, usize::try_from(limit).unwrap_or(0));
    let wordless = fused.iter().map(|(id, _)| *id).filter(|id| !by_words.contains(id));
    let facts = held_of(conn, user, &wordless.collect::<Vec<_>>(), now).await?;
    hits.extend(facts.into_iter().map(|fact| Hit { fact, rank: 0.0 }));
    let ranked = fused.into_iter().filter_map(|(id, rank)| {
        let at = hits.iter().position(|hit| hit.fact.id == id)?;
        Some(Hit { rank, ..hits.swap_remove(at) })
    });
    Ok(ranked.collect())
}

/// As far as they still hold.
async fn held_of(
    conn: &mut PgConnection,
    user: &str,
    ids: &[Uuid],
    now: DateTime<Utc>,
) -> Result<Vec<Fact>, Failed> {
    sqlx::query_as!(
        Fact,
        r#"select id, user_name as user, attribute, text, source as "source: Source", trust as "trust: Trust", author, campaign_id, session_id,
                  turn, task_id, recorded_at, valid_from, valid_until, ended_because as "ended_because: Ended", replaced_by, expires_at
             from dalsegno.facts
            where user_name = $1 and id = any($2) and valid_until is null and (expires_at is null or expires_at > $3)"#,
        user,
        ids,
        now,
    )
    .fetch_all(conn)
    .await
    .map_err(Failed::to("read the facts of a meaning"))
}

async fn matching(
    conn: &mut PgConnection,
    user: &str,
    (words, limit): (&str, i64),
    has_all: bool,
    language: &str,
    now: DateTime<Utc>,
) -> Result<Vec<Hit>, Failed> {
    let rows = sqlx::query_file!(
        "src/domain/facts/search.sql",
        user,
        words,
        language,
        has_all,
        text::is_plain(words),
        now,
        limit
    )
    .fetch_all(conn)
    .await
    .map_err(Failed::to("search the facts about a user"))?;
    let hits = rows.into_iter().map(|row| Hit {
        fact: Fact {
            id: row.id,
            user: row.user,
            attribute: row.attribute,
            text: row.text,
            source: row.source,
            trust: row.trust,
            author: row.author,
            campaign_id: row.campaign_id,
            session_id: row.session_id,
            turn: row.turn,
            task_id: row.task_id,
            recorded_at: row.recorded_at,
            valid_from: row.valid_from,
            valid_until: row.valid_until,
            ended_because: row.ended_because,
            replaced_by: row.replaced_by,
            expires_at: row.expires_at,
        },
        rank: row.rank.into(),
    });
    Ok(hits.collect())
}
