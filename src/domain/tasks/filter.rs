//! Filters of tasks: for lists, and for what is done with many tasks.

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sqlx::PgExecutor;
use uuid::Uuid;

use super::{Error, State};
use crate::domain::{
    StatementError,
    agents::{Catalogue, LookupError},
    ids, text, timestamp,
};

/// The longest text that is looked for in prompts.
pub const MAX_TEXT_CHARS: usize = 200;
/// The longest of the other words, in bytes.
const MAX_WORD_BYTES: usize = 4_096;
/// Longest time that the id of a task may be ahead of its `created_at`: a process whose clock is set back gives ids of the later time.
const ID_LEAD: TimeDelta = TimeDelta::days(1);

/// A filter for tasks. Absent keys match everything.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskFilter {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub campaign_id: Option<Uuid>,
    /// All campaigns but this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub except_campaign_id: Option<Uuid>,
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
    /// Tasks that ended at this moment or later.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "timestamp::optional"
    )]
    pub ended_after: Option<DateTime<Utc>>,
    /// In the prompt, whether in capitals or not.
    #[schema(min_length = 1, max_length = 200)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// All of these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// All of these keys with these values.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schema(value_type = Option<Object>)]
    pub metadata: Map<String, Value>,
}

/// Selects from the tasks `t` that fulfil the conditions of a filter, all but its text, which is `$11`. The arguments begin at `$13`.
///
/// Few tasks may have the tags and metadata of a filter, and these have an index: a filter with some starts from there. Without any, ids
/// bound the scan, as times have no index. Beside labels they would not help: Postgres takes a range of ids for a small one, and would
/// start from there.
macro_rules! select_tasks {
    (
        @from $from:literal, $filter:ident, $query:ident, [$($row:ident,)?], $fetch:ident($executor:expr),
        $select:literal, $rest:literal, [$($argument:expr,)*]
    ) => {
        sqlx::$query!(
            $($row,)?
            "select " + $select + " from " + $from + "
                and ($1::uuid is null or t.campaign_id = $1) and ($12::uuid is null or t.campaign_id <> $12)
                and ($2::text is null or t.agent = $2)
                and ($3::text is null or t.instance = $3) and ($4::text is null or t.state = $4)
                and ($5::timestamptz is null or t.created_at < $5) and ($6::timestamptz is null or t.created_at >= $6) " + $rest,
            $filter.campaign_id,
            $filter.agent,
            $filter.instance,
            $filter.state as Option<crate::domain::tasks::State>,
            $filter.created_before,
            $filter.created_after,
            $filter.least_id(),
            $filter.most_id(),
            &$filter.tags[..],
            sqlx::types::Json(&$filter.metadata) as _,
            $filter.text,
            $filter.except_campaign_id,
            $($argument,)*
        )
        .$fetch($executor)
        .await
    };
    (
        $filter:expr, $query:ident $(<$row:ident>)?, $fetch:ident($executor:expr),
        $select:literal, $rest:literal, $($argument:expr),* $(,)?
    ) => {{
        let filter: &crate::domain::tasks::TaskFilter = $filter;
        match filter.has_labels() {
            true => crate::domain::tasks::filter::select_tasks!(
                @from "dalsegno.task_labels as l join dalsegno.tasks as t on t.id = l.task_id where l.tags @> $9 and l.metadata @> $10 and $7::uuid <= $8::uuid",
                filter, $query, [$($row,)?], $fetch($executor), $select, $rest, [$($argument,)*]
            ),
            false => crate::domain::tasks::filter::select_tasks!(
                @from "dalsegno.tasks as t where t.id between $7 and $8 and $9::text[] = '{}' and $10::jsonb = '{}'",
                filter, $query, [$($row,)?], $fetch($executor), $select, $rest, [$($argument,)*]
            ),
        }
    }};
}
pub(super) use select_tasks;

/// Counts the matching tasks in one of these states that were added until `until`. Ended tasks of erased campaigns do not match: nothing
/// can be done with them.
pub async fn count_matching(
    executor: impl PgExecutor<'_>,
    filter: &TaskFilter,
    states: &[State],
    until: DateTime<Utc>,
) -> Result<i64, StatementError> {
    select_tasks!(
        filter,
        query_scalar,
        fetch_one(executor),
        r#"count(*) as "count!""#,
        "and ($11::text is null or strpos(lower(t.prompt), lower($11)) > 0) and t.state = any ($13) and t.created_at <= $14
         and ($15::timestamptz is null or t.ended_at >= $15) and (not $16 or t.ended_at is null) and ($16 or not dalsegno.is_erased(t.campaign_id))",
        &names(states) as &[&str],
        until,
        filter.ended_after,
        are_open(states),
    )
    .map_err(StatementError::to("count tasks"))
}

/// Their ids in order, after `after`.
pub async fn list_matching(
    executor: impl PgExecutor<'_>,
    filter: &TaskFilter,
    states: &[State],
    until: DateTime<Utc>,
    after: Option<Uuid>,
    limit: i64,
) -> Result<Vec<Uuid>, StatementError> {
    select_tasks!(
        filter,
        query_scalar,
        fetch_all(executor),
        "t.id",
        "and ($11::text is null or strpos(lower(t.prompt), lower($11)) > 0) and t.state = any ($13) and t.created_at <= $14
         and t.id > coalesce($15, '00000000-0000-0000-0000-000000000000'::uuid) and ($17::timestamptz is null or t.ended_at >= $17) and (not $18 or t.ended_at is null) and ($18 or not dalsegno.is_erased(t.campaign_id)) order by t.id limit $16",
        &names(states) as &[&str],
        until,
        after,
        limit,
        filter.ended_after,
        are_open(states),
    )
    .map_err(StatementError::to("list tasks"))
}

/// Returns true if all these states are of open tasks, which have indexes of their own.
fn are_open(states: &[State]) -> bool {
    states.iter().all(|state| !state.has_ended())
}

impl TaskFilter {
    /// Refuses words that are too long or not storable, and an empty text, which every prompt contains.
    pub fn check(&self) -> Result<(), Error> {
        let Self { agent, instance, text, tags, .. } = self;
        let n_chars = text.as_ref().map_or(1, |text| text.chars().count());
        if !(1..=MAX_TEXT_CHARS).contains(&n_chars) {
            return Err(Error::FilterText(n_chars));
        }
        for words in [agent, instance, text].into_iter().flatten().chain(tags) {
            text::check_optional("text in the filter", words, MAX_WORD_BYTES)?;
        }
        Ok(())
    }

    /// Splits the name of an instance, such as `curator_2`, into its agent and its instance.
    pub fn split_agent(&mut self, catalogue: &Catalogue) -> Result<(), LookupError> {
        let Some(written) = self.agent.take() else { return Ok(()) };
        let (agent, instance) = catalogue.parse_filter(&written, self.instance.as_deref())?;
        let instance = instance.map(str::to_owned);
        self.agent = Some(agent.to_owned());
        self.instance = instance;
        Ok(())
    }

    /// True if it means every task.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub(super) fn has_labels(&self) -> bool {
        !self.tags.is_empty() || !self.metadata.is_empty()
    }

    /// No task that matches has a smaller id.
    pub(super) fn least_id(&self) -> Uuid {
        self.created_after.map_or(Uuid::nil(), ids::least_at)
    }

    /// No task that matches has a greater id.
    pub(super) fn most_id(&self) -> Uuid {
        let last = self.created_before.and_then(|before| before.checked_add_signed(ID_LEAD));
        last.map_or(Uuid::max(), ids::least_at)
    }
}

fn names(states: &[State]) -> Vec<&'static str> {
    states.iter().map(|state| state.as_str()).collect()
}
