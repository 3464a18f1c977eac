//! Substring search in transcripts.

use chrono::{DateTime, Utc};
use sqlx::PgExecutor;
use uuid::Uuid;

use crate::domain::StatementError;

/// A search in transcripts.
#[derive(Debug, Clone, Copy)]
pub struct Search<'a> {
    /// The sessions, each with its last turn that is searched.
    pub sessions: &'a [(Uuid, i32)],
    /// Turns left out, by session, because the provider has rejected the prompts of their tasks.
    pub without_turns: &'a [(Uuid, i32)],
    /// The text to find, as one piece and ignoring case.
    pub words: &'a str,
    /// Length of the excerpt around the first match, in characters.
    pub around_chars: i32,
    pub offset: i64,
    pub limit: i64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageHit {
    pub session_id: Uuid,
    pub turn: i32,
    pub said_at: DateTime<Utc>,
    pub role: String,
    pub excerpt: String,
}

/// Finds messages, the newest first. Reads all messages of the sessions.
pub async fn search(
    executor: impl PgExecutor<'_>,
    search: &Search<'_>,
) -> Result<Vec<MessageHit>, StatementError> {
    let (sessions, last_turns): (Vec<Uuid>, Vec<i32>) = search.sessions.iter().copied().unzip();
    let (rejected_in, rejected): (Vec<Uuid>, Vec<i32>) =
        search.without_turns.iter().copied().unzip();
    sqlx::query_as!(
        MessageHit,
        r#"select session_id, turn, created_at as said_at, role,
                  substring(text from greatest(1, strpos(lower(text), lower($2)) - $3 / 2) for $3) as "excerpt!"
             from unnest($1::uuid[], $8::integer[]) as s (id, last_turn)
             join dalsegno.messages as m on m.session_id = s.id and m.turn <= s.last_turn
            where strpos(lower(text), lower($2)) > 0
              and (session_id, turn) not in (select * from unnest($6::uuid[], $7::integer[]))
            order by created_at desc, session_id, seq desc limit $4 offset $5"#,
        &sessions,
        search.words,
        search.around_chars,
        search.limit,
        search.offset,
        &rejected_in,
        &rejected,
        &last_turns,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("search a transcript"))
}
