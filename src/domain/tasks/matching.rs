//! Tasks that match a filter, for bulk actions.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sqlx::{PgExecutor, types::Json};
use uuid::Uuid;

use super::State;
use crate::domain::{Failed, timestamp};

/// A filter for tasks. Absent keys match everything.
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
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "timestamp::optional"
    )]
    pub created_after: Option<DateTime<Utc>>,
    /// Text that the prompt contains, ignoring case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Tags that the task must have, all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Metadata keys and values that the task must have, all of them.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schema(value_type = Option<Object>)]
    pub metadata: Map<String, Value>,
}

/// Counts the matching tasks in one of these states that were added up to `until`.
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
              and ($5::timestamptz is null or created_at < $5) and state = any ($6) and created_at <= $7
              and ($8::timestamptz is null or created_at >= $8) and ($9::text is null or strpos(lower(prompt), lower($9)) > 0)
              and ($10::jsonb is null or exists (select from dalsegno.task_labels as l
                                                  where l.task_id = tasks.id and l.tags @> $11 and l.metadata @> $10))"#,
        filter.campaign_id,
        filter.agent,
        filter.instance,
        filter.state as Option<State>,
        filter.created_before,
        &names(states) as &[&str],
        until,
        filter.created_after,
        filter.text,
        filter.metadata_if_labelled() as _,
        &filter.tags[..],
    )
    .fetch_one(executor)
    .await
    .map_err(Failed::to("count tasks"))
}

/// Lists the ids of the matching tasks in order, after `after`.
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
            and ($10::timestamptz is null or created_at >= $10) and ($11::text is null or strpos(lower(prompt), lower($11)) > 0)
            and ($12::jsonb is null or exists (select from dalsegno.task_labels as l
                                                where l.task_id = tasks.id and l.tags @> $13 and l.metadata @> $12))
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
        filter.created_after,
        filter.text,
        filter.metadata_if_labelled() as _,
        &filter.tags[..],
    )
    .fetch_all(executor)
    .await
    .map_err(Failed::to("look for tasks"))
}

impl Matching {
    /// Returns the metadata, or None if the filter names neither tags nor metadata.
    fn metadata_if_labelled(&self) -> Option<Json<&Map<String, Value>>> {
        let is_labelled = !self.tags.is_empty() || !self.metadata.is_empty();
        is_labelled.then_some(Json(&self.metadata))
    }
}

fn names(states: &[State]) -> Vec<&'static str> {
    states.iter().map(|state| state.as_str()).collect()
}
