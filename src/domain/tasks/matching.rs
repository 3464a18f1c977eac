//! Tasks that a filter means, for what is done with many of them.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::PgExecutor;
use uuid::Uuid;

use super::State;
use crate::domain::{Failed, timestamp};

/// Which tasks are meant. Absent keys match everything.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = TaskFilter)]
pub struct Matching {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub campaign_id: Option<Uuid>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<State>,
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "timestamp::optional"
    )]
    pub created_before: Option<DateTime<Utc>>,
}

/// How many there are in one of these states, of those that were added until `until`.
pub async fn count_matching(
    executor: impl PgExecutor<'_>,
    filter: &Matching,
    states: &[State],
    until: DateTime<Utc>,
) -> Result<i64, Failed> {
    sqlx::query_scalar!(
        r#"select count(*) as "count!" from dalsegno.tasks
            where ($1::uuid is null or campaign_id = $1) and ($2::text is null or agent = $2)
              and ($3::text is null or instance = $3) and ($4::text is null or state = $4)
              and ($5::timestamptz is null or created_at < $5) and state = any ($6) and created_at <= $7"#,
        filter.campaign_id,
        filter.agent,
        filter.instance,
        filter.state as Option<State>,
        filter.created_before,
        &names(states) as &[&str],
        until,
    )
    .fetch_one(executor)
    .await
    .map_err(Failed::to("count tasks"))
}

/// Their ids in order, after `after`.
pub async fn matching(
    executor: impl PgExecutor<'_>,
    filter: &Matching,
    states: &[State],
    until: DateTime<Utc>,
    after: Option<Uuid>,
    limit: i64,
) -> Result<Vec<Uuid>, Failed> {
    sqlx::query_scalar!(
        "select id from dalsegno.tasks
          where ($1::uuid is null or campaign_id = $1) and ($2::text is null or agent = $2)
            and ($3::text is null or instance = $3) and ($4::text is null or state = $4)
            and ($5::timestamptz is null or created_at < $5) and state = any ($6) and created_at <= $7
            and id > coalesce($8, '00000000-0000-0000-0000-000000000000'::uuid)
          order by id limit $9",
        filter.campaign_id,
        filter.agent,
        filter.instance,
        filter.state as Option<State>,
        filter.created_before,
        &names(states) as &[&str],
        until,
        after,
        limit,
    )
    .fetch_all(executor)
    .await
    .map_err(Failed::to("look for tasks"))
}

fn names(states: &[State]) -> Vec<&'static str> {
    states.iter().map(|state| state.as_str()).collect()
}
