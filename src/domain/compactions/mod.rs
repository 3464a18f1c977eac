//! Compactions: summaries that stand in for older messages, and those that were refused.
//!
//! The session stores the generation that it shows; see [`super::sessions::show_generation`]. Applying and undoing change only that number,
//! and remove neither messages nor summaries.
//!
//! Race: several compactions may be prepared at once from the same view. The first one that is shown makes the others stale.

mod answer;
mod archives;
mod comparison;
mod config;
mod error;
mod kept_prompts;
mod read;
mod rejected_attempt;
mod request;
mod show;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sqlx::{PgConnection, PgExecutor};
use uuid::Uuid;

pub use self::{
    answer::{Answer, read_answer},
    archives::{Archive, OpenedArchive, Replacement, archives, open_archive},
    comparison::{
        CompactionComparison, ExactValue, MessagePlace, ReplacedMessage, ReplacedTexts, ValuePlace,
        replaced_texts,
    },
    config::Config,
    error::Error,
    kept_prompts::KeptPrompts,
    read::read,
    rejected_attempt::RejectedAttempt,
    request::{CompactSession, lane, request},
    show::{ShowOutcome, apply, apply_newest, newest_prepared, undo},
};
use super::{
    StatementError,
    session_summaries::{SessionSummary, SummaryText},
};
use crate::context::compaction::REFERENCE;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Compaction {
    pub generation: i32,
    /// The generation whose view was compacted; 0 is the whole transcript.
    pub parent: i32,
    pub from_seq: i64,
    pub to_seq: i64,
    pub cause: Cause,
    pub outcome: Outcome,
    pub turn: i32,
    /// The way in which the summary was made: first, retry, alternate, extract.
    pub rung: Option<String>,
    pub model: Option<String>,
    /// The node of the session, if it stood at one: the summary then covers only the exchanges there.
    pub node: Option<String>,
    pub summary: Option<String>,
    /// Data of the replacement that stands in front of the summary.
    #[serde(skip)]
    pub flow: Option<Value>,
    /// Texts of people in the compacted turns that are kept word for word: whole prompts, sentences of others, and the number of prompts
    /// that are only in the archive. Null for compactions of earlier versions.
    #[schema(value_type = Option<Object>)]
    pub prompts: Option<Value>,
    pub pins: Value,
    pub refusals: Value,
    pub tokens_before: i64,
    pub tokens_after: Option<i64>,
    pub created_at: DateTime<Utc>,
    pub applied_at: Option<DateTime<Utc>>,
    pub undone_at: Option<DateTime<Utc>>,
}

impl Compaction {
    /// Returns true if it stands in for messages that no summary has read.
    pub fn is_reference(&self) -> bool {
        self.summary.as_deref() == Some(REFERENCE)
    }

    /// Returns true if it is a reference to messages of its own session. Those of an inherited one are in the predecessor.
    fn refers_to_own_session(&self) -> bool {
        self.is_reference() && self.cause != Cause::Inherited
    }
}

/// The cause of a compaction.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, sqlx::Type, utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
#[sqlx(type_name = "text", rename_all = "snake_case")]
#[schema(as = CompactionCause)]
pub enum Cause {
    Auto,
    /// The provider refused the prompt for its length.
    Overflow,
    Manual,
    /// Came from the predecessor of the session.
    Inherited,
}

#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, sqlx::Type, utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
#[sqlx(type_name = "text", rename_all = "snake_case")]
#[schema(as = CompactionOutcome)]
pub enum Outcome {
    /// Good, and not shown yet.
    Prepared,
    /// Shown, now or once.
    Applied,
    /// The view had changed before it could be shown.
    Stale,
    Refused,
}

/// A compaction to be stored.
#[derive(Debug, Clone)]
pub struct New<'a> {
    pub session_id: Uuid,
    /// From [`super::sessions::next_generation`].
    pub generation: i32,
    pub parent: i32,
    pub from_seq: i64,
    pub to_seq: i64,
    pub cause: Cause,
    pub turn: i32,
    pub model: Option<&'a str>,
    pub tokens_before: i64,
    /// Summaries that were not good enough, with the reasons.
    pub refusals: &'a Value,
    /// The node that was folded, if the session stood at one.
    pub node: Option<&'a str>,
    /// `None`: no summary was good enough.
    pub accepted: Option<AcceptedSummary<'a>>,
}

#[derive(Debug, Clone, Copy)]
pub struct AcceptedSummary<'a> {
    pub summary: &'a str,
    pub pins: &'a Value,
    pub rung: &'a str,
    pub tokens_after: i64,
    pub flow: Option<&'a Value>,
    /// Texts that people wrote, word for word.
    pub prompts: Option<&'a Value>,
}

/// The result of applying a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApplyOutcome {
    Shown,
    /// Another compaction or an undo has changed the view meanwhile, and this one does not continue it any more.
    Stale,
}

/// Stores a prepared or a refused compaction; neither is shown yet.
pub async fn insert(
    executor: impl PgExecutor<'_>,
    new: &New<'_>,
    now: DateTime<Utc>,
) -> Result<(), StatementError> {
    let outcome = if new.accepted.is_some() { Outcome::Prepared } else { Outcome::Refused };
    sqlx::query!(
        "insert into dalsegno.compactions
                (session_id, generation, parent, from_seq, to_seq, cause, outcome, turn, rung, model, summary, pins, refusals,
                 tokens_before, tokens_after, created_at, node, flow, prompts)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, coalesce($12, '[]'::jsonb), $13, $14, $15, $16, $17, $18, $19)",
        new.session_id,
        new.generation,
        new.parent,
        new.from_seq,
        new.to_seq,
        new.cause as Cause,
        outcome as Outcome,
        new.turn,
        new.accepted.map(|accepted| accepted.rung),
        new.model,
        new.accepted.map(|accepted| accepted.summary),
        new.accepted.map(|accepted| accepted.pins),
        new.refusals,
        new.tokens_before,
        new.accepted.map(|accepted| accepted.tokens_after),
        now,
        new.node,
        new.accepted.and_then(|accepted| accepted.flow),
        new.accepted.and_then(|accepted| accepted.prompts),
    )
    .execute(executor)
    .await
    .map(|_| ())
    .map_err(StatementError::to("store a compaction"))
}

pub async fn get(
    executor: impl PgExecutor<'_>,
    session_id: Uuid,
    generation: i32,
) -> Result<Option<Compaction>, StatementError> {
    sqlx::query_as!(
        Compaction,
        r#"select generation, parent, from_seq, to_seq, cause as "cause: Cause", outcome as "outcome: Outcome", turn, rung, model,
                  node, summary, flow, prompts, pins, refusals, tokens_before, tokens_after, created_at, applied_at, undone_at
             from dalsegno.compactions where session_id = $1 and generation = $2"#,
        session_id,
        generation,
    )
    .fetch_optional(executor)
    .await
    .map_err(StatementError::to("read a compaction"))
}

/// All compactions of a session, refused ones too, in the order they were made.
pub async fn list(
    executor: impl PgExecutor<'_>,
    session_id: Uuid,
) -> Result<Vec<Compaction>, StatementError> {
    sqlx::query_as!(
        Compaction,
        r#"select generation, parent, from_seq, to_seq, cause as "cause: Cause", outcome as "outcome: Outcome", turn, rung, model,
                  node, summary, flow, prompts, pins, refusals, tokens_before, tokens_after, created_at, applied_at, undone_at
             from dalsegno.compactions where session_id = $1 order by generation"#,
        session_id,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list the compactions of a session"))
}

/// Returns the generation that a turn has probably shown, where its context is not stored: the last one that was applied to earlier turns.
pub(super) async fn generation_before(
    executor: impl PgExecutor<'_>,
    session_id: Uuid,
    turn: i32,
) -> Result<i32, StatementError> {
    sqlx::query_scalar!(
        r#"select coalesce(max(generation), 0) as "generation!" from dalsegno.compactions
            where session_id = $1 and turn < $2 and outcome = 'applied' and undone_at is null"#,
        session_id,
        turn,
    )
    .fetch_one(executor)
    .await
    .map_err(StatementError::to("find the compaction of a turn"))
}

/// Finds the compaction that a summariser or the next session takes over from a session that shows `generation`; 0: none.
///
/// A reference makes room for one task. The compaction before it is taken over in its place, and with it the messages after that one. Those of an
/// inherited reference are in a predecessor, so it stays.
pub async fn find_inheritable(
    conn: &mut PgConnection,
    session_id: Uuid,
    mut generation: i32,
) -> Result<i32, StatementError> {
    while generation > 0
        && let Some(shown) = get(&mut *conn, session_id, generation).await?
        && shown.refers_to_own_session()
    {
        generation = shown.parent;
    }
    Ok(generation)
}

/// Copies a compaction of `from` to a session that continues it, as that one's first generation. Must hit one row.
pub(super) async fn inherit(
    conn: &mut PgConnection,
    from: Uuid,
    to: Uuid,
    generation: i32,
    now: DateTime<Utc>,
) -> Result<i64, StatementError> {
    sqlx::query_scalar!(
        "insert into dalsegno.compactions
                (session_id, generation, parent, from_seq, to_seq, cause, outcome, turn, rung, model, summary, pins, tokens_before,
                 tokens_after, created_at, applied_at, node, flow, prompts)
         select $2, 1, 0, c.from_seq, c.to_seq, 'inherited', 'applied', c.turn, c.rung, c.model, c.summary, c.pins, c.tokens_before,
                c.tokens_after, c.created_at, $4, c.node, c.flow, c.prompts
           from dalsegno.compactions as c where c.session_id = $1 and c.generation = $3
         returning to_seq",
        from,
        to,
        generation,
        now,
    )
    .fetch_one(conn)
    .await
    .map_err(StatementError::to("copy a summary to the next session"))
}

/// Stores the first generation of a session that begins with the kept summary of an expired one.
pub(super) async fn store_inherited_summary(
    executor: impl PgExecutor<'_>,
    session_id: Uuid,
    kept: &SessionSummary,
    made: &SummaryText,
    now: DateTime<Utc>,
) -> Result<(), StatementError> {
    sqlx::query!(
        "insert into dalsegno.compactions
                (session_id, generation, parent, from_seq, to_seq, cause, outcome, turn, rung, model, summary, pins, tokens_before,
                 tokens_after, created_at, applied_at, node, flow, prompts)
         values ($1, 1, 0, 1, $2, 'inherited', 'applied', $3, coalesce($4, 'extract'), $5, $6, $7, $8, $9, $10, $10, $11, $12, $13)",
        session_id,
        kept.last_seq,
        kept.turn_count,
        kept.rung,
        kept.model,
        made.summary,
        made.pins,
        kept.context_tokens,
        made.tokens,
        now,
        kept.node,
        kept.flow,
        kept.prompts,
    )
    .execute(executor)
    .await
    .map(drop)
    .map_err(StatementError::to("start a session with a summary"))
}

/// Returns true if the summary that a session took over is of the stay at a node that began at `first_seq`, and holds the node's
/// instructions.
pub(super) async fn is_of_node_since(
    executor: impl PgExecutor<'_>,
    session_id: Uuid,
    first_seq: i64,
) -> Result<bool, StatementError> {
    sqlx::query_scalar!(
        r#"select exists (select from dalsegno.compactions
                           where session_id = $1 and cause = 'inherited' and (flow ->> 'first_seq')::bigint = $2
                             and flow ->> 'entry' is not null) as "is_of_node!""#,
        session_id,
        first_seq,
    )
    .fetch_one(executor)
    .await
    .map_err(StatementError::to("read the summary of a session"))
}

/// Removes the compactions of these sessions, for good. Where they are append-only, the transaction has to have announced it.
pub async fn remove_all(
    executor: impl PgExecutor<'_>,
    session_ids: &[Uuid],
) -> Result<(), StatementError> {
    sqlx::query!("delete from dalsegno.compactions where session_id = any($1)", session_ids)
        .execute(executor)
        .await
        .map(|_| ())
        .map_err(StatementError::to("remove the compactions of sessions"))
}
