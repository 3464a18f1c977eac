//! The ledger: one row per call of a provider, with the price at that time. Each answer is charged once.

mod contexts;

use std::{borrow::Cow, collections::HashSet, time::Duration};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sqlx::{PgExecutor, types::Json};
use uuid::Uuid;

pub use self::contexts::{SideCall, find_side_call, insert_context, side_calls};
use super::{Amount, StatementError, json_rows};

/// A call of a model, successful or not. Statements read it as JSON.
#[derive(Debug, Clone, Serialize)]
pub struct Call<'a> {
    pub campaign_id: Uuid,
    pub task_id: Option<Uuid>,
    pub session_id: Option<Uuid>,
    pub turn: Option<i32>,
    pub agent: &'a str,
    pub provider: &'a str,
    pub model: &'a str,
    pub purpose: Purpose,
    pub outcome: Outcome,
    /// The provider's id of its answer, or an own id of the call. The ledger takes an id once.
    pub provider_message_id: Option<&'a str>,
    #[serde(flatten)]
    pub tokens: Tokens,
    pub cost_micros: i64,
    /// The price that the cost was computed with.
    pub price: Option<Cow<'a, Value>>,
    pub first_byte_ms: Option<i32>,
    pub total_ms: Option<i32>,
    #[serde(serialize_with = "json_rows::timestamptz")]
    pub called_at: DateTime<Utc>,
}

#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, sqlx::Type, utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
#[sqlx(type_name = "text", rename_all = "snake_case")]
#[schema(as = UsagePurpose)]
pub enum Purpose {
    Turn,
    Summary,
    /// Extraction of facts about users from their requests.
    Facts,
    /// A call of a turn that was made again.
    Rerun,
}

#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, sqlx::Type, utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
#[sqlx(type_name = "text", rename_all = "snake_case")]
#[schema(as = UsageOutcome)]
pub enum Outcome {
    Done,
    Failed,
    Interrupted,
}

/// Rows of the ledger that a median is taken from, counted from the newest one.
const NEWEST_CALLS: i64 = 2000;

/// Returns the median time to the first token of a model's answers since a moment, among the newest calls of all models. `None`: there are
/// fewer than `min_calls`.
pub async fn median_latency(
    executor: impl PgExecutor<'_>,
    (provider, model): (&str, &str),
    since: DateTime<Utc>,
    min_calls: i64,
) -> Result<Option<Duration>, StatementError> {
    let millis = sqlx::query_scalar!(
        r#"select case when count(*) >= $5 then percentile_cont(0.5) within group (order by coalesce(u.first_byte_ms, u.total_ms)) end
             from dalsegno.usage as u
            where u.id > (select max(n.id) - $4 from dalsegno.usage as n) and u.called_at > $3 and u.provider = $1 and u.model = $2
              and u.outcome = 'done' and u.purpose = 'turn' and coalesce(u.first_byte_ms, u.total_ms) is not null"#,
        provider,
        model,
        since,
        NEWEST_CALLS,
        min_calls,
    )
    .fetch_one(executor)
    .await
    .map_err(StatementError::to("compute the latency of a model"))?;
    Ok(millis.map(|millis| Duration::from_secs_f64(millis.max(0.0) / 1000.0)))
}

/// Token counts of a call. `None` means unknown, which differs from 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Tokens {
    pub input: Option<i64>,
    pub output: Option<i64>,
    pub cache_read: Option<i64>,
    pub cache_creation: Option<i64>,
}

/// A call as the ledger records it. Unknown token counts are null.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct LedgerCall {
    /// Number of the row in the ledger.
    pub id: i64,
    pub purpose: Purpose,
    pub outcome: Outcome,
    pub provider: String,
    pub model: String,
    /// The provider's id of its answer. Calls of batches, summaries, facts and reruns may have an id of the service instead.
    pub provider_message_id: Option<String>,
    pub called_at: DateTime<Utc>,
    pub first_byte_ms: Option<i32>,
    pub total_ms: Option<i32>,
    pub input_tokens: Option<i64>,
    pub output_tokens: Option<i64>,
    pub cache_read_tokens: Option<i64>,
    pub cache_creation_tokens: Option<i64>,
    pub cost_micros: i64,
    /// False: no price was set for the model, so the cost is 0 or the one that the provider reports.
    #[serde(default)]
    pub has_price: bool,
}

/// Calls of a turn for whose model no price was set, and for which the provider reports no cost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct UnpricedCalls {
    pub session_id: Uuid,
    pub turn: i32,
    pub provider: String,
    pub model: String,
}

/// Cost of all calls of one agent, model and purpose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = UsageTotal)]
pub struct Total {
    pub agent: String,
    pub provider: String,
    pub model: String,
    pub purpose: Purpose,
    pub calls: i64,
    pub input_tokens: i64,
    pub output_tokens: i64,
    pub cache_read_tokens: i64,
    pub cache_creation_tokens: i64,
    pub cost_micros: i64,
}

impl LedgerCall {
    /// Returns true if the call used tokens, and its cost is 0 only because no price was set.
    pub fn is_unpriced(&self) -> bool {
        let tokens = Tokens {
            input: self.input_tokens,
            output: self.output_tokens,
            cache_read: self.cache_read_tokens,
            cache_creation: self.cache_creation_tokens,
        };
        !self.has_price && self.cost_micros == 0 && tokens.total() > 0
    }
}

impl Tokens {
    /// Returns the sum of all counts that are known.
    pub fn total(self) -> i64 {
        let counts = [self.input, self.output, self.cache_read, self.cache_creation];
        counts.into_iter().flatten().sum()
    }
}

impl Call<'_> {
    pub fn amount(&self) -> Amount {
        Amount { micros: self.cost_micros, tokens: self.tokens.total() }
    }
}

/// Writes a call into the ledger. Returns the number of its row; `None` if this answer is already there: then it must not be charged again.
pub async fn record(
    executor: impl PgExecutor<'_>,
    call: &Call<'_>,
) -> Result<Option<i64>, StatementError> {
    sqlx::query_file_scalar!("src/domain/usage/record.sql", Json(call) as _)
        .fetch_optional(executor)
        .await
        .map_err(StatementError::to("append a call to the ledger"))
}

/// Returns the id of the newest row. `None`: the ledger is empty.
pub async fn newest_id(executor: impl PgExecutor<'_>) -> Result<Option<i64>, StatementError> {
    sqlx::query_scalar!("select max(id) from dalsegno.usage")
        .fetch_one(executor)
        .await
        .map_err(StatementError::to("find the newest row of the ledger"))
}

/// Returns the cost of a campaign by agent, model and purpose.
pub async fn totals(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
) -> Result<Vec<Total>, StatementError> {
    sqlx::query_as!(
        Total,
        r#"select agent, provider, model, purpose as "purpose: Purpose", count(*) as "calls!",
                  coalesce(sum(input_tokens), 0)::bigint as "input_tokens!",
                  coalesce(sum(output_tokens), 0)::bigint as "output_tokens!",
                  coalesce(sum(cache_read_tokens), 0)::bigint as "cache_read_tokens!",
                  coalesce(sum(cache_creation_tokens), 0)::bigint as "cache_creation_tokens!",
                  sum(cost_micros)::bigint as "cost_micros!"
             from dalsegno.usage where campaign_id = $1
            group by agent, provider, model, purpose order by agent, provider, model, purpose"#,
        campaign_id,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("add up the ledger of a campaign"))
}

/// Lists the calls of a turn, in order. Those of summaries and facts are charged to the last turn before them.
pub async fn of_turn(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
    session_id: Uuid,
    turn: i32,
) -> Result<Vec<LedgerCall>, StatementError> {
    // The index is by campaign: another one would cost each turn a write, and few people read a turn.
    sqlx::query_as!(
        LedgerCall,
        r#"select id, purpose as "purpose: Purpose", outcome as "outcome: Outcome", provider, model, provider_message_id, called_at,
                  first_byte_ms, total_ms, input_tokens, output_tokens, cache_read_tokens, cache_creation_tokens, cost_micros,
                  price is not null as "has_price!"
             from dalsegno.usage where campaign_id = $1 and session_id = $2 and turn = $3 order by id"#,
        campaign_id,
        session_id,
        turn,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("read the calls of a turn"))
}

/// Lists the unpriced calls of these turns (session and number), each model of a turn once.
pub async fn unpriced_calls(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
    turns: &[(Uuid, i32)],
) -> Result<Vec<UnpricedCalls>, StatementError> {
    if turns.is_empty() {
        return Ok(Vec::new());
    }
    let (sessions, numbers): (Vec<Uuid>, Vec<i32>) = turns.iter().copied().unzip();
    sqlx::query_as!(
        UnpricedCalls,
        r#"select distinct t.session_id as "session_id!", t.turn as "turn!", u.provider, u.model
             from unnest($2::uuid[], $3::integer[]) as t (session_id, turn)
             join dalsegno.usage as u on u.campaign_id = $1 and u.session_id = t.session_id and u.turn = t.turn
            where dalsegno.is_unpriced(u)
            order by 1, 2, 3, 4"#,
        campaign_id,
        &sessions,
        &numbers,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("find calls without a price"))
}

/// A turn, with the campaign of its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TurnPlace {
    pub campaign_id: Uuid,
    pub session_id: Uuid,
    pub turn: i32,
}

/// Returns those of these turns that have an unpriced call. They may belong to several campaigns.
pub async fn turns_without_price(
    executor: impl PgExecutor<'_>,
    turns: &[TurnPlace],
) -> Result<HashSet<TurnPlace>, StatementError> {
    if turns.is_empty() {
        return Ok(HashSet::new());
    }
    let campaigns: Vec<Uuid> = turns.iter().map(|it| it.campaign_id).collect();
    let sessions: Vec<Uuid> = turns.iter().map(|it| it.session_id).collect();
    let numbers: Vec<i32> = turns.iter().map(|it| it.turn).collect();
    let found = sqlx::query_as!(
        TurnPlace,
        r#"select distinct t.campaign_id as "campaign_id!", t.session_id as "session_id!", t.turn as "turn!"
             from unnest($1::uuid[], $2::uuid[], $3::integer[]) as t (campaign_id, session_id, turn)
             join dalsegno.usage as u on u.campaign_id = t.campaign_id and u.session_id = t.session_id and u.turn = t.turn
            where dalsegno.is_unpriced(u)"#,
        &campaigns,
        &sessions,
        &numbers,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("find turns without a price"))?;
    Ok(found.into_iter().collect())
}

/// Returns those of these calls, by their numbers in the ledger, that have no price.
pub async fn calls_without_price(
    executor: impl PgExecutor<'_>,
    ids: &[i64],
) -> Result<HashSet<i64>, StatementError> {
    if ids.is_empty() {
        return Ok(HashSet::new());
    }
    let found = sqlx::query_scalar!(
        "select u.id from dalsegno.usage as u where u.id = any($1) and dalsegno.is_unpriced(u)",
        ids,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("find calls without a price by their numbers"))?;
    Ok(found.into_iter().collect())
}

#[cfg(test)]
impl Call<'static> {
    pub(super) fn example() -> Self {
        Self {
            campaign_id: Uuid::nil(),
            task_id: None,
            session_id: None,
            turn: None,
            agent: "",
            provider: "",
            model: "",
            purpose: Purpose::Turn,
            outcome: Outcome::Done,
            provider_message_id: None,
            tokens: Tokens::default(),
            cost_micros: 0,
            price: None,
            first_byte_ms: None,
            total_ms: None,
            called_at: DateTime::UNIX_EPOCH,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::json_rows::columns;

    #[test]
    fn insert_columns_match_ledger_rows() {
        let (call, sql) = (Call::example(), include_str!("record.sql"));
        columns::assert_are_fields_of(&call, sql, "jsonb_to_record($1)");
    }
}
