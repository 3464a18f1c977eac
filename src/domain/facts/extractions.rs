//! The record of transcripts that were read for facts.

use std::fmt;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::PgExecutor;
use uuid::Uuid;

use crate::domain::StatementError;

/// A stretch of a transcript that was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = FactExtraction)]
pub struct Extraction {
    pub session_id: Uuid,
    pub campaign_id: Uuid,
    pub agent: String,
    /// The place before the first one of the stretch.
    pub from_seq: i64,
    /// The last place of the stretch.
    pub to_seq: i64,
    pub ended_at: DateTime<Utc>,
    /// Number of people's requests in the stretch.
    pub requests: i32,
    /// Facts in the model's answer.
    pub found: i32,
    /// New facts among these.
    pub new: i32,
    pub outcome: Outcome,
    /// The reason of a refusal.
    pub reason: Option<String>,
}

#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, sqlx::Type, utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
#[sqlx(type_name = "text", rename_all = "snake_case")]
#[schema(as = FactExtractionOutcome)]
pub enum Outcome {
    Done,
    /// No answer was valid. A later reading of the session begins at the same place, unless messages behind it were read.
    Refused,
}

/// A place in the list of extractions: that of the last one on a page. The default is in front of all of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ExtractionCursor {
    ended_at: Option<DateTime<Utc>>,
    session_id: Uuid,
    to_seq: i64,
}

impl Extraction {
    pub fn cursor(&self) -> ExtractionCursor {
        let Self { ended_at, session_id, to_seq, .. } = *self;
        ExtractionCursor { ended_at: Some(ended_at), session_id, to_seq }
    }
}

impl fmt::Display for ExtractionCursor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = self.ended_at.map_or(0, |at| at.timestamp_micros());
        write!(formatter, "{micros}_{}_{}", self.session_id, self.to_seq)
    }
}

impl From<ExtractionCursor> for String {
    fn from(cursor: ExtractionCursor) -> Self {
        cursor.to_string()
    }
}

impl TryFrom<String> for ExtractionCursor {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, &'static str> {
        let parts: Vec<&str> = text.split('_').collect();
        let [micros, session_id, to_seq] = parts[..] else { return Err(NO_CURSOR) };
        let ended_at = micros.parse().ok().and_then(DateTime::from_timestamp_micros);
        match (ended_at, session_id.parse(), to_seq.parse()) {
            (Some(_), Ok(session_id), Ok(to_seq)) => Ok(Self { ended_at, session_id, to_seq }),
            _ => Err(NO_CURSOR),
        }
    }
}

const NO_CURSOR: &str = "expected the `next` of a page";

/// Returns the last place of a session that was read; 0 if none was.
pub async fn read_up_to(
    executor: impl PgExecutor<'_>,
    session_id: Uuid,
) -> Result<i64, StatementError> {
    sqlx::query_scalar!(
        r#"select coalesce(max(to_seq), 0) as "seq!" from dalsegno.fact_extractions where session_id = $1 and outcome = 'done'"#,
        session_id,
    )
    .fetch_one(executor)
    .await
    .map_err(StatementError::to("read how far facts were extracted from a session"))
}

/// Returns those of the places that were not read. A skipped place may lie before places that were read.
pub async fn filter_unread(
    executor: impl PgExecutor<'_>,
    session_id: Uuid,
    places: &[i64],
) -> Result<Vec<i64>, StatementError> {
    sqlx::query_scalar!(
        r#"select asked.seq as "seq!" from unnest($2::bigint[]) as asked (seq)
            where not exists (select from dalsegno.fact_extractions as x
                               where x.session_id = $1 and x.outcome = 'done' and x.from_seq < asked.seq and asked.seq <= x.to_seq)"#,
        session_id,
        places,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list the extractions of facts from a session"))
}

/// Records the result of a reading. A reading that is done is never overwritten.
pub async fn record_extraction(
    executor: impl PgExecutor<'_>,
    extraction: &Extraction,
) -> Result<(), StatementError> {
    sqlx::query!(
        "insert into dalsegno.fact_extractions as x
                (session_id, to_seq, from_seq, campaign_id, ended_at, n_requests, n_found, n_new, outcome, agent, reason)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
         on conflict (session_id, to_seq) do update
            set from_seq = excluded.from_seq, ended_at = excluded.ended_at, n_requests = excluded.n_requests,
                n_found = excluded.n_found, n_new = excluded.n_new, outcome = excluded.outcome, reason = excluded.reason
          where x.outcome = 'refused'",
        extraction.session_id,
        extraction.to_seq,
        extraction.from_seq,
        extraction.campaign_id,
        extraction.ended_at,
        extraction.requests,
        extraction.found,
        extraction.new,
        extraction.outcome as Outcome,
        extraction.agent,
        extraction.reason,
    )
    .execute(executor)
    .await
    .map(|_| ())
    .map_err(StatementError::to("record an extraction of facts"))
}

/// Lists the readings of a campaign, the newest first.
pub async fn extractions(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
    after: Option<ExtractionCursor>,
    limit: i64,
) -> Result<Vec<Extraction>, StatementError> {
    let ExtractionCursor { ended_at, session_id, to_seq } = after.unwrap_or_default();
    sqlx::query_as!(
        Extraction,
        r#"select session_id, campaign_id, agent, from_seq, to_seq, ended_at, n_requests as requests, n_found as found, n_new as new,
                  outcome as "outcome: Outcome", reason
             from dalsegno.fact_extractions
            where campaign_id = $1 and ($2::timestamptz is null or ended_at <= $2 and (ended_at, session_id, to_seq) < ($2, $3, $4))
            order by ended_at desc, session_id desc, to_seq desc limit $5"#,
        campaign_id,
        ended_at,
        session_id,
        to_seq,
        limit,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list the extractions of facts"))
}
