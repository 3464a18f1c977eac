//! Search over the texts of all campaigns: prompts and results, posts, memory, briefs, blackboards, facts and transcripts, the newest first.

mod job;
mod messages;
mod summaries;

use std::collections::HashSet;

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use super::{
    StatementError, blackboard, campaigns,
    class::{Class, Classify},
    facts, memory, posts,
    search::{Question, is_plain},
    tasks, text,
    text_query::{Span, TextHit, TextKind, TextQuery, TextRow},
};

pub use self::job::{IndexTexts, request_index};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Text(#[from] text::Error),
    #[error(transparent)]
    Database(#[from] StatementError),
}

impl Classify for Error {
    fn class(&self) -> Class {
        match self {
            Self::Text(error) => error.class(),
            Self::Database(error) => error.class(),
        }
    }
}

/// Finds texts of one kind, or of all, the newest first.
pub async fn search(
    conn: &mut PgConnection,
    query: &TextQuery<'_>,
    kind: Option<TextKind>,
    now: DateTime<Utc>,
) -> Result<Vec<TextHit>, Error> {
    Question { words: query.words, limit: query.limit, meaning: None }.check()?;
    let mut hits = Vec::new();
    for kind in TextKind::ALL.into_iter().filter(|it| kind.is_none_or(|kind| kind == *it)) {
        let rows = of_kind(&mut *conn, query, kind, now).await?;
        hits.extend(rows.into_iter().map(|row| row.into_hit(kind)));
    }
    hits.sort_by(TextHit::cmp_newest);
    hits.truncate(usize::try_from(query.limit).unwrap_or(0));
    Ok(hits)
}

async fn of_kind(
    conn: &mut PgConnection,
    query: &TextQuery<'_>,
    kind: TextKind,
    now: DateTime<Utc>,
) -> Result<Vec<TextRow>, StatementError> {
    let mut rows = match kind {
        // A campaign has few items.
        TextKind::Memory => return memory::find_texts(conn, query, now).await,
        // Facts about users belong to no campaign.
        TextKind::Fact if query.within.is_some() => return Ok(Vec::new()),
        TextKind::Fact => return facts::find_texts(conn, query, now).await,
        // People write briefs.
        TextKind::Brief if query.agent.is_some() => return Ok(Vec::new()),
        TextKind::Task => tasks::find_fresh_texts(&mut *conn, query, part_of(query.words)).await?,
        _ => Vec::new(),
    };
    let n_fresh = rows.len();
    for span in Span::before(query.before, now) {
        let n_found = i64::try_from(rows.len() - n_fresh).unwrap_or(i64::MAX);
        if n_found >= query.limit || span.is_before(query.since) {
            break;
        }
        rows.extend(match kind {
            TextKind::Task => tasks::find_ended_texts(&mut *conn, query, &span).await?,
            TextKind::Post => posts::find_texts(&mut *conn, query, &span).await?,
            TextKind::Message => messages::find(&mut *conn, query, &span).await?,
            TextKind::Summary => summaries::find(&mut *conn, query, &span).await?,
            TextKind::Brief => campaigns::find_texts(&mut *conn, query, &span).await?,
            TextKind::Blackboard => blackboard::find_texts(&mut *conn, query, &span).await?,
            TextKind::Memory | TextKind::Fact => Vec::new(),
        });
    }
    // A task may get its words between the two statements.
    let mut seen = HashSet::new();
    rows.retain(|row| kind != TextKind::Task || seen.insert(row.id));
    Ok(rows)
}

/// Returns a part that each match contains: the longest word of a question without operators, else nothing.
fn part_of(question: &str) -> &str {
    if !is_plain(question) {
        return "";
    }
    let words = question.split(|c: char| !c.is_alphanumeric());
    words.max_by_key(|word| word.chars().count()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_word_of_a_plain_question_is_in_each_match() {
        assert_eq!(part_of("the quay, at-night"), "night");
        assert_eq!(part_of("quay or lamp"), "");
        assert_eq!(part_of("…"), "");
    }
}
