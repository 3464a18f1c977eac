//! Session summaries: what a conversation remembers when its session has expired.
//!
//! One rule: the successor, or the cleanup that removes the expired session if it comes first, stores the newest accepted summary and
//! excerpts of what was said since; the successor begins with that. No model is called.
//!
//! Invariant: a conversation has one row at most, of its last session that has expired. A successor takes the row over, a session
//! that begins fresh forgets it, a cleanup removes it when its time is over, an erasure with its campaign.
//!
//! Race: a cleanup and a new task come to an expired session at once. Both lock its row. The task that waits finds no session after
//! the commit of the cleanup, and the row that it has stored.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sqlx::{PgConnection, PgExecutor, types::Json};
use uuid::Uuid;

use super::Failed;

/// What happens to the memory of an expired session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExpiryRule {
    /// Its successor begins with a summary of it.
    #[default]
    Summary,
    /// Its successor begins without a memory.
    Fresh,
}

/// What an expired session leaves to its successor.
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
    /// The newest accepted summary. `None`: there was none.
    pub summary: Option<String>,
    pub pins: Value,
    pub flow: Option<Value>,
    /// What people wrote that stood word for word beside that summary.
    pub prompts: Option<Value>,
    /// Of what was said since.
    pub excerpts: Vec<Excerpt>,
}

/// A prompt or an answer, shortened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Excerpt {
    pub seq: i64,
    pub role: crate::transcript::Role,
    /// The agent that asked.
    pub by: Option<String>,
    pub text: String,
}

/// A summary as a successor shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct SummaryText {
    pub summary: String,
    pub pins: Value,
    /// What it takes, about.
    pub tokens: i64,
}

/// Keeps the memory of those of these sessions that have one worth keeping, and says of how many that was. What expired until
/// `forgotten_until` is not remembered. The caller has locked the sessions.
pub async fn keep(
    conn: &mut PgConnection,
    session_ids: &[Uuid],
    forgotten_until: DateTime<Utc>,
    now: DateTime<Utc>,
) -> Result<i64, Failed> {
    let worth = worth_keeping(&mut *conn, session_ids, forgotten_until).await?;
    sqlx::query_file!("src/domain/session_summaries/keep.sql", session_ids, &worth, now)
        .execute(conn)
        .await
        .map(|done| i64::try_from(done.rows_affected()).unwrap_or(i64::MAX))
        .map_err(Failed::to("keep the summaries of expired sessions"))
}

/// Those of these sessions whose memory is kept when they go.
pub async fn worth_keeping(
    executor: impl PgExecutor<'_>,
    session_ids: &[Uuid],
    forgotten_until: DateTime<Utc>,
) -> Result<Vec<Uuid>, Failed> {
    sqlx::query_file_scalar!(
        "src/domain/session_summaries/worth_keeping.sql",
        session_ids,
        forgotten_until,
    )
    .fetch_all(executor)
    .await
    .map_err(Failed::to("look which sessions have a summary to keep"))
}

/// Takes over what a conversation remembers, if it is not too old.
pub async fn take(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
    agent: &str,
    instance: &str,
    forgotten_until: DateTime<Utc>,
) -> Result<Option<SessionSummary>, Failed> {
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
    .map_err(Failed::to("take over the summary of an expired session"))
}

/// Forgets what a conversation remembers: it begins fresh.
pub async fn forget(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
    agent: &str,
    instance: &str,
) -> Result<(), Failed> {
    sqlx::query!(
        "delete from dalsegno.session_summaries where campaign_id = $1 and agent = $2 and instance = $3",
        campaign_id,
        agent,
        instance,
    )
    .execute(executor)
    .await
    .map(drop)
    .map_err(Failed::to("forget the summary of an expired session"))
}

/// The same for all conversations of an agent in a campaign, or of all its agents.
pub async fn forget_agents(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
    agent: Option<&str>,
) -> Result<(), Failed> {
    sqlx::query!(
        "delete from dalsegno.session_summaries where campaign_id = $1 and ($2::text is null or agent = $2)",
        campaign_id,
        agent,
    )
    .execute(executor)
    .await
    .map(drop)
    .map_err(Failed::to("forget the summaries of expired sessions"))
}

/// How many are of sessions that expired until then.
pub async fn count_until(
    executor: impl PgExecutor<'_>,
    until: DateTime<Utc>,
) -> Result<i64, Failed> {
    sqlx::query_scalar!(
        r#"select count(*) as "n!" from dalsegno.session_summaries where expired_at <= $1"#,
        until,
    )
    .fetch_one(executor)
    .await
    .map_err(Failed::to("count old summaries"))
}

/// Removes up to `limit` of sessions that expired until then.
pub async fn remove_until(
    executor: impl PgExecutor<'_>,
    until: DateTime<Utc>,
    limit: i64,
) -> Result<i64, Failed> {
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
    .map_err(Failed::to("remove old summaries"))
}

/// Removes up to `limit` of a campaign.
pub async fn remove_some(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
    limit: i64,
) -> Result<i64, Failed> {
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
    .map_err(Failed::to("erase kept summaries"))
}
