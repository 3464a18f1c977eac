//! The fidelity of conversations: proofs that models saw their history, estimates against counts, and rejected summaries.

use std::fmt;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::{PgConnection, types::Json};
use uuid::Uuid;

use super::{
    StatementError, campaigns,
    compactions::RejectedAttempt,
    turns::{HistoryCheck, State},
};
use crate::context::compaction::folding::RefusedAttempt;

/// Newest ended turns that a report is about, and that a page of turns reads at most.
const MAX_TURNS: i64 = 10_000;

/// The fidelity of the conversations of a campaign.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct FidelityReport {
    pub turns: CheckCounts,
    pub estimates: EstimateErrors,
    pub summaries: SummaryCounts,
    /// Sessions that were replaced because their provider had lost the conversation.
    pub lost_sessions: i64,
    /// Compactions with rejected summaries, the newest first, at most 100.
    pub rejected: Vec<RejectedSummaries>,
    /// True if the campaign has 10,000 ended turns or more. The numbers are then those of the newest 10,000, with their calls and sessions.
    #[serde(default)]
    pub is_limited: bool,
}

/// Turns by the proof that the model saw the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct CheckCounts {
    pub seen: i64,
    /// Answers without the history: rejected, or flagged.
    pub not_seen: i64,
    pub not_provable: i64,
    pub no_history: i64,
    /// Turns without an answer, and those of earlier versions.
    pub not_checked: i64,
}

/// The estimated tokens of prompts divided by the provider's counts. Null without counts.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct EstimateErrors {
    /// Calls that the provider has counted.
    pub counted_calls: i64,
    pub smallest: Option<f64>,
    pub median: Option<f64>,
    pub largest: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SummaryCounts {
    pub applied: i64,
    /// Applied ones whose messages are shown again.
    pub undone: i64,
    /// Attempts that failed a check. A better one may have followed.
    pub rejected_attempts: i64,
    /// Compactions without any summary that passed the checks.
    pub refused: i64,
}

/// The rejected summaries of a compaction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct RejectedSummaries {
    pub session_id: Uuid,
    /// The number of the compaction in its session.
    pub generation: i32,
    pub turn: i32,
    pub created_at: DateTime<Utc>,
    /// True if a later attempt passed the checks.
    pub was_accepted_later: bool,
    /// True if what passed is an extract, without a model.
    #[serde(default)]
    pub is_extract: bool,
    pub attempts: Vec<RejectedAttempt>,
}

/// A turn with the proof that the model saw the history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct CheckedTurn {
    pub session_id: Uuid,
    pub turn: i32,
    pub agent: String,
    pub instance: String,
    pub provider: String,
    pub model: String,
    pub state: State,
    pub ended_at: DateTime<Utc>,
    /// Null if the turn has no answer.
    pub history_check: Option<HistoryCheck>,
    /// Tokens of the first prompt.
    pub estimated_tokens: Option<i64>,
    /// The provider's own count of it.
    pub counted_tokens: Option<i64>,
    pub flags: Vec<String>,
}

/// A page of the turns of a campaign.
#[derive(Debug)]
pub struct CheckedTurnPage {
    pub turns: Vec<CheckedTurn>,
    /// The last turn that was read, if the search stopped at its maximum.
    pub looked_up_to: Option<TurnCursor>,
}

/// A place in the list of a campaign's turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TurnCursor {
    session_id: Uuid,
    turn: i32,
}

/// Reports on the campaign.
pub async fn report(
    conn: &mut PgConnection,
    campaign_id: Uuid,
) -> Result<FidelityReport, campaigns::Error> {
    campaigns::get(&mut *conn, campaign_id).await?;
    let totals = sqlx::query_file!("src/domain/fidelity/totals.sql", campaign_id, MAX_TURNS)
        .fetch_one(&mut *conn)
        .await
        .map_err(StatementError::to("count the history checks of a campaign"))?;
    let rejected = sqlx::query_file!("src/domain/fidelity/rejected.sql", campaign_id)
        .map(|row| RejectedSummaries {
            session_id: row.session_id,
            generation: row.generation,
            turn: row.turn,
            created_at: row.created_at,
            was_accepted_later: row.was_accepted_later,
            is_extract: row.is_extract,
            attempts: row.attempts.0.iter().map(RejectedAttempt::of).collect(),
        })
        .fetch_all(conn)
        .await
        .map_err(StatementError::to("list the rejected summaries of a campaign"))?;
    Ok(FidelityReport {
        turns: CheckCounts {
            seen: totals.seen,
            not_seen: totals.not_seen,
            not_provable: totals.not_provable,
            no_history: totals.no_history,
            not_checked: totals.not_checked,
        },
        estimates: EstimateErrors {
            counted_calls: totals.counted_calls,
            smallest: totals.smallest,
            median: totals.median,
            largest: totals.largest,
        },
        summaries: SummaryCounts {
            applied: totals.applied,
            undone: totals.undone,
            rejected_attempts: totals.rejected_attempts,
            refused: totals.refused,
        },
        lost_sessions: totals.lost_sessions,
        rejected,
        is_limited: totals.is_limited,
    })
}

/// Lists the ended turns of a campaign, or those with one proof: the newest session first, and its last turn first. Reads a limited number
/// of turns.
pub async fn list(
    conn: &mut PgConnection,
    campaign_id: Uuid,
    history: Option<HistoryCheck>,
    after: Option<TurnCursor>,
    limit: i64,
) -> Result<CheckedTurnPage, campaigns::Error> {
    campaigns::get(&mut *conn, campaign_id).await?;
    let turns = sqlx::query_file_as!(
        CheckedTurn,
        "src/domain/fidelity/turns.sql",
        campaign_id,
        after.map(|after| after.session_id),
        after.map(|after| after.turn),
        limit,
        history as _,
        MAX_TURNS,
    )
    .fetch_all(&mut *conn)
    .await
    .map_err(StatementError::to("list the checked turns of a campaign"))?;
    let is_full = i64::try_from(turns.len()).is_ok_and(|n| n >= limit);
    let looked_up_to = match is_full || history.is_none() {
        true => None,
        false => last_read(conn, campaign_id, after).await?,
    };
    Ok(CheckedTurnPage { turns, looked_up_to })
}

/// Returns the last of the turns that a page reads, if there are as many.
async fn last_read(
    conn: &mut PgConnection,
    campaign_id: Uuid,
    after: Option<TurnCursor>,
) -> Result<Option<TurnCursor>, StatementError> {
    sqlx::query_file_as!(
        TurnCursor,
        "src/domain/fidelity/last_read.sql",
        campaign_id,
        after.map(|after| after.session_id),
        after.map(|after| after.turn),
        MAX_TURNS - 1,
    )
    .fetch_optional(conn)
    .await
    .map_err(StatementError::to("list the checked turns of a campaign"))
}

impl CheckedTurn {
    pub fn cursor(&self) -> TurnCursor {
        TurnCursor { session_id: self.session_id, turn: self.turn }
    }
}

impl fmt::Display for TurnCursor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}_{}", self.session_id, self.turn)
    }
}

impl From<TurnCursor> for String {
    fn from(cursor: TurnCursor) -> Self {
        cursor.to_string()
    }
}

impl TryFrom<String> for TurnCursor {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, &'static str> {
        let parts = text.split_once('_');
        let place = parts.and_then(|(session_id, turn)| {
            Some(Self { session_id: session_id.parse().ok()?, turn: turn.parse().ok()? })
        });
        place.ok_or("expected the `next` of a page")
    }
}
