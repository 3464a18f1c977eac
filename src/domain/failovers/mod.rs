//! Failovers: conversations whose models fail, and the choice between the models of their agents' chains.
//!
//! The failures of a conversation are a row of its own, so that all workers agree. Most conversations have none: a failure creates it, and
//! an answer of the model that failed deletes it.
//!
//! Races: none. The row is read before a turn and written with the turn's end, and a conversation has one turn at a time.

mod rule;

use chrono::{DateTime, Utc};
use sqlx::{PgExecutor, types::Json};
use uuid::Uuid;

pub use self::rule::{
    Candidate, ChainChoice, Choice, Conditions, FailoverState, FailureRecord, Rules, SkippedEntry,
    choose, describe_last_resort, describe_skipped,
};
use super::StatementError;

/// The key of a conversation.
#[derive(Debug, Clone, Copy)]
pub struct ConversationKey<'a> {
    pub campaign_id: Uuid,
    pub agent: &'a str,
    pub instance: &'a str,
}

/// Reads the failures of a conversation.
pub async fn find(
    executor: impl PgExecutor<'_>,
    of: ConversationKey<'_>,
) -> Result<FailoverState, StatementError> {
    let row = sqlx::query_scalar!(
        r#"select entries as "entries: Json<FailoverState>" from dalsegno.failovers where campaign_id = $1 and agent = $2 and instance = $3"#,
        of.campaign_id,
        of.agent,
        of.instance,
    )
    .fetch_optional(executor)
    .await
    .map_err(StatementError::to("count the failures of a provider"))?;
    // A row without entries is of an older version, which tries the first model again.
    Ok(row.flatten().map(|entries| entries.0).unwrap_or_default())
}

/// Stores the failures of a conversation.
pub async fn put(
    executor: impl PgExecutor<'_>,
    of: ConversationKey<'_>,
    state: &FailoverState,
    now: DateTime<Utc>,
) -> Result<(), StatementError> {
    sqlx::query!(
        "insert into dalsegno.failovers as f (campaign_id, agent, instance, entries, failures, failed_at)
         values ($1, $2, $3, $4, 0, $5)
         on conflict (campaign_id, agent, instance)
         do update set entries = excluded.entries, failures = 0, since = null, failed_at = excluded.failed_at",
        of.campaign_id,
        of.agent,
        of.instance,
        Json(state) as _,
        now,
    )
    .execute(executor)
    .await
    .map(drop)
    .map_err(StatementError::to("record a failure of a provider"))
}

/// Deletes the failures of a conversation, if there are any.
pub async fn delete(
    executor: impl PgExecutor<'_>,
    of: ConversationKey<'_>,
) -> Result<(), StatementError> {
    sqlx::query!(
        "delete from dalsegno.failovers where campaign_id = $1 and agent = $2 and instance = $3",
        of.campaign_id,
        of.agent,
        of.instance,
    )
    .execute(executor)
    .await
    .map(drop)
    .map_err(StatementError::to("reset the failures of a provider"))
}

/// Deletes the failures of conversations that have nothing left to continue. The slices are parallel.
pub async fn remove_all(
    executor: impl PgExecutor<'_>,
    campaigns: &[Uuid],
    agents: &[String],
    instances: &[String],
) -> Result<(), StatementError> {
    sqlx::query!(
        "delete from dalsegno.failovers as f using unnest($1::uuid[], $2::text[], $3::text[]) as k (campaign_id, agent, instance)
          where f.campaign_id = k.campaign_id and f.agent = k.agent and f.instance = k.instance",
        campaigns,
        agents,
        instances,
    )
    .execute(executor)
    .await
    .map(drop)
    .map_err(StatementError::to("reset the failures of providers"))
}

/// Deletes the failures of a whole campaign.
pub async fn remove_of_campaign(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
) -> Result<(), StatementError> {
    sqlx::query!("delete from dalsegno.failovers where campaign_id = $1", campaign_id)
        .execute(executor)
        .await
        .map(drop)
        .map_err(StatementError::to("remove the failures of providers in a campaign"))
}
