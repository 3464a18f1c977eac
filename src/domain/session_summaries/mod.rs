//! Session summaries: the memory of a conversation whose session has expired.
//!
//! When a session has expired, its newest accepted summary and excerpts of later messages are stored. The successor does that, or the
//! cleanup if it removes the session first. The successor begins with them. No model is called.
//!
//! Invariant: a conversation has at most one row, of its last expired session. A successor consumes the row, and a session that begins
//! fresh deletes it. A cleanup removes it after its retention, an erasure with its campaign.
//!
//! Race: a cleanup and a new task reach an expired session at once. Both lock its row. If the task waits, it finds no session after the
//! cleanup's commit, and finds the row that the cleanup has stored.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sqlx::{PgConnection, PgExecutor, types::Json};
use uuid::Uuid;

use super::StatementError;
use crate::context::compaction::REFERENCE;

/// Rule for the memory of an expired session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExpiryRule {
    /// The successor begins with a summary of the expired session.
    #[default]
    Summary,
    /// The successor begins without a memory.
    Fresh,
}

/// The memory that an expired session passes to its successor.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionSummary {
    pub session_id: Uuid,
    pub last_seq: i64,
    pub board_cursor: i64,
    pub context_tokens: i64,
    pub turn_count: i32,
    pub interrupted: bool,
    pub rung: Option<String>,
    pub model: Option<String>,
    pub node: Option<String>,
    /// The newest accepted summary, or None if there was none.
    pub summary: Option<String>,
    pub pins: Value,
    pub flow: Option<Value>,
    /// Prompts of people that were shown verbatim beside that summary.
    pub prompts: Option<Value>,
    /// Excerpts of later messages.
    pub excerpts: Vec<Excerpt>,
}

/// A prompt or an answer, shortened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Excerpt {
    pub seq: i64,
    pub role: crate::transcript::Role,
    /// The agent that asked, or None for a person.
    pub by: Option<String>,
    pub text: String,
}

/// A summary as a successor shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct SummaryText {
    pub summary: String,
    pub pins: Value,
    /// Approximate size in tokens.
    pub tokens: i64,
}

/// Stores the memory of these sessions where it is worth keeping. Returns the number of stored summaries. Sessions that expired up to
/// `forgotten_until` are left out. The caller has locked the sessions.
pub async fn store(
    conn: &mut PgConnection,
    session_ids: &[Uuid],
    forgotten_until: DateTime<Utc>,
    now: DateTime<Utc>,
) -> Result<i64, StatementError> {
    let worth = worth_keeping(&mut *conn, session_ids, forgotten_until).await?;
    sqlx::query_file!("src/domain/session_summaries/keep.sql", session_ids, &worth, now, REFERENCE,)
        .execute(conn)
        .await
        .map(|done| i64::try_from(done.rows_affected()).unwrap_or(i64::MAX))
        .map_err(StatementError::to("keep the summaries of expired sessions"))
}

/// Returns those of these sessions whose memory is kept when they are removed.
pub async fn worth_keeping(
    executor: impl PgExecutor<'_>,
    session_ids: &[Uuid],
    forgotten_until: DateTime<Utc>,
) -> Result<Vec<Uuid>, StatementError> {
    sqlx::query_file_scalar!(
        "src/domain/session_summaries/worth_keeping.sql",
        session_ids,
        forgotten_until,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list expired sessions with a summary"))
}

/// Takes and deletes the stored memory of a conversation, unless it is too old.
pub async fn take(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
    agent: &str,
    instance: &str,
    forgotten_until: DateTime<Utc>,
) -> Result<Option<SessionSummary>, StatementError> {
    sqlx::query!(
        r#"delete from dalsegno.session_summaries
            where campaign_id = $1 and agent = $2 and instance = $3 and expired_at > $4
           returning session_id, last_seq, board_cursor, context_tokens, turn_count, interrupted, rung, model, node, summary, pins, flow, prompts,
                     excerpts as "excerpts: Json<Vec<Excerpt>>""#,
        campaign_id,
        agent,
        instance,
        forgotten_until,
    )
    .map(|row| SessionSummary {
        session_id: row.session_id,
        last_seq: row.last_seq,
        board_cursor: row.board_cursor,
        context_tokens: row.context_tokens,
        turn_count: row.turn_count,
        interrupted: row.interrupted,
        rung: row.rung,
        model: row.model,
        node: row.node,
        summary: row.summary,
        pins: row.pins,
        flow: row.flow,
        prompts: row.prompts,
        excerpts: row.excerpts.0,
    })
    .fetch_optional(executor)
    .await
    .map_err(StatementError::to("use the summary of an expired session"))
}

/// Lists the instances of an agent whose memory is stored in a campaign.
pub async fn instances(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
    agent: &str,
) -> Result<Vec<String>, StatementError> {
    sqlx::query_scalar!(
        "select instance from dalsegno.session_summaries where campaign_id = $1 and agent = $2",
        campaign_id,
        agent,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list the kept summaries of an agent"))
}

/// Deletes the stored memory of a conversation, which then begins fresh.
pub async fn delete(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
    agent: &str,
    instance: &str,
) -> Result<(), StatementError> {
    sqlx::query!(
        "delete from dalsegno.session_summaries where campaign_id = $1 and agent = $2 and instance = $3",
        campaign_id,
        agent,
        instance,
    )
    .execute(executor)
    .await
    .map(drop)
    .map_err(StatementError::to("remove the summary of an expired session"))
}

/// Deletes the stored memory of all conversations of an agent in a campaign, or of all its agents.
pub async fn delete_of_agents(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
    agent: Option<&str>,
) -> Result<(), StatementError> {
    sqlx::query!(
        "delete from dalsegno.session_summaries where campaign_id = $1 and ($2::text is null or agent = $2)",
        campaign_id,
        agent,
    )
    .execute(executor)
    .await
    .map(drop)
    .map_err(StatementError::to("remove the summaries of expired sessions"))
}

/// Counts the summaries of sessions that expired up to `until`.
pub async fn count_until(
    executor: impl PgExecutor<'_>,
    until: DateTime<Utc>,
) -> Result<i64, StatementError> {
    sqlx::query_scalar!(
        r#"select count(*) as "n!" from dalsegno.session_summaries where expired_at <= $1"#,
        until,
    )
    .fetch_one(executor)
    .await
    .map_err(StatementError::to("count old summaries"))
}

/// Removes up to `limit` summaries of sessions that expired up to `until`.
pub async fn remove_until(
    executor: impl PgExecutor<'_>,
    until: DateTime<Utc>,
    limit: i64,
) -> Result<i64, StatementError> {
    sqlx::query_scalar!(
        r#"with old as (select campaign_id, agent, instance from dalsegno.session_summaries
                         where expired_at <= $1 order by expired_at limit $2 for update skip locked),
                gone as (delete from dalsegno.session_summaries as k using old as o
                          where k.campaign_id = o.campaign_id and k.agent = o.agent and k.instance = o.instance returning 1)
           select count(*) as "n!" from gone"#,
        until,
        limit,
    )
    .fetch_one(executor)
    .await
    .map_err(StatementError::to("remove old summaries"))
}

/// Removes up to `limit` summaries of a campaign.
pub async fn remove_some(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
    limit: i64,
) -> Result<i64, StatementError> {
    sqlx::query_scalar!(
        r#"with gone as (
             delete from dalsegno.session_summaries
              where campaign_id = $1 and (agent, instance) in (select agent, instance from dalsegno.session_summaries
                                                                where campaign_id = $1 limit $2) returning 1)
           select count(*) as "n!" from gone"#,
        campaign_id,
        limit,
    )
    .fetch_one(executor)
    .await
    .map_err(StatementError::to("erase kept summaries"))
}
