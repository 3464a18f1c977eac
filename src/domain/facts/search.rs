//! Finding facts by their words.

use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::PgConnection;

use super::{Ended, Error, Fact, Source, Trust, check_name};
use crate::domain::{Failed, text};

/// The longest question.
const ASKED_MAX_BYTES: usize = 1000;

/// What was found.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = FactHit)]
pub struct Hit {
    #[serde(flatten)]
    pub fact: Fact,
    /// Larger is better; only to be compared within one answer.
    pub rank: f64,
}

/// What holds of a user and has all the words, the best first, or, where nothing has, what has some of them.
pub async fn search(
    conn: &mut PgConnection,
    user: &str,
    (words, limit): (&str, i64),
    language: &str,
    now: DateTime<Utc>,
) -> Result<Vec<Hit>, Error> {
    check_name(user)?;
    text::check("question", words, ASKED_MAX_BYTES)?;
    if !text::asks_for_a_word(words) {
        return Err(Error::NoWords);
    }
    let all = matching(&mut *conn, user, (words, limit), true, language, now).await?;
    match all.is_empty() {
        true => Ok(matching(conn, user, (words, limit), false, language, now).await?),
        false => Ok(all),
    }
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
        is_plain(words),
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

/// Whether it is nothing but words, so that an index may look for some of them first.
fn is_plain(question: &str) -> bool {
    let is_operator =
        |word: &str| word.starts_with('-') || word.contains('"') || word.eq_ignore_ascii_case("or");
    !question.split_whitespace().any(is_operator)
}
