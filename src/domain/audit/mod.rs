//! The audit log: who changed what.
//!
//! A line is written in the transaction of the change that a person or another system asked for, so that both commit or neither does.
//! Changes that the service makes by itself are in the feed and in the records of its runs.
//!
//! Adding tasks writes no line: there are thousands a second, and each task's row names its author ([`Actor::label`]).
//!
//! Lines contain neither prompts, answers nor secrets. Reasons that people give are cut.

mod action;
mod actor;
mod config;
mod limits;
mod pauses;
mod rights;
mod search;

use std::fmt::Display;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sqlx::PgExecutor;
use uuid::Uuid;

pub use self::{
    action::Action,
    actor::{Actor, ActorKind, describe_label, name_of_label},
    config::Config,
    limits::{LIMIT, LimitStep, limit_steps},
    pauses::{PauseSubject, pause_author, pause_data},
    rights::{Rights, rights},
    search::{AuditPage, Filter, search, subjects_ending},
};
use super::{StatementError, text};

/// The longest text within a line's data.
pub const WORDS_MAX_CHARS: usize = 300;

/// A line of the audit log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = AuditEntry)]
pub struct Entry {
    pub id: i64,
    pub at: DateTime<Utc>,
    /// `key`, `admin_key`, `cli`, `agent`, `system` or `anonymous`.
    pub actor_kind: String,
    pub actor: String,
    pub actor_id: Option<Uuid>,
    /// `campaign.create`, `task.cancel` and so on. Newer versions may add actions.
    pub action: String,
    pub subject_kind: String,
    pub subject: String,
    pub peer: Option<String>,
    pub data: Value,
}

/// Writes a line. `data` is an object.
pub async fn write(
    executor: impl PgExecutor<'_>,
    actor: &Actor,
    action: Action,
    subject: impl Display,
    mut data: Value,
    now: DateTime<Utc>,
) -> Result<(), StatementError> {
    cut_short(&mut data);
    text::make_json_storable(&mut data);
    sqlx::query!(
        "insert into dalsegno.audit (at, actor_id, actor_kind, actor, action, subject_kind, subject, peer, data)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
        now,
        actor.key_id,
        actor.kind.as_str(),
        actor.name,
        action.as_str(),
        action.subject_kind(),
        text::make_storable(subject.to_string()),
        actor.peer.map(|peer| peer.to_string()),
        data,
    )
    .execute(executor)
    .await
    .map(|_| ())
    .map_err(StatementError::to("append to the audit log"))
}

/// Empties the data of all lines about these subjects of an erased campaign. Actor, action, subject and time stay.
pub async fn erase_data(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
    subjects: &[String],
) -> Result<i64, StatementError> {
    sqlx::query_scalar!(r#"select dalsegno.erase_audit($1, $2) as "n!""#, campaign_id, subjects)
        .fetch_one(executor)
        .await
        .map_err(StatementError::to("erase texts from the audit log"))
}

/// Does the same for tool calls in the campaign, whose subject is the tool. Reads the first `limit` lines behind `after`, of all campaigns,
/// and returns the last of them, or `None` at the end of the log.
pub async fn erase_tool_data(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
    after: i64,
    limit: i64,
) -> Result<Option<i64>, StatementError> {
    sqlx::query_scalar!(
        "select dalsegno.erase_audit_of_tools($1, $2, $3)",
        campaign_id,
        after,
        limit,
    )
    .fetch_one(executor)
    .await
    .map_err(StatementError::to("erase calls of tools from the audit log"))
}

/// Returns a line number that lies before all lines written since `moment`.
pub async fn line_before(
    executor: impl PgExecutor<'_>,
    moment: DateTime<Utc>,
) -> Result<i64, StatementError> {
    // The order of numbers differs from the order of times: a line that was begun early may be numbered late.
    sqlx::query_scalar!(
        r#"select coalesce((select min(first.id) - 1 from (select id from dalsegno.audit where at >= $1 order by at limit 1000) as first),
                           (select max(id) from dalsegno.audit), 0) as "line!""#,
        moment,
    )
    .fetch_one(executor)
    .await
    .map_err(StatementError::to("find the beginning of the audit log"))
}

/// Lists subjects with this prefix that have lines with data, such as the lanes of a campaign.
pub async fn subjects_below(
    executor: impl PgExecutor<'_>,
    start: &str,
) -> Result<Vec<String>, StatementError> {
    sqlx::query_scalar!(
        "select distinct subject from dalsegno.audit where starts_with(subject, $1) and data <> '{}'",
        start,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("search the audit log"))
}

/// Lists the schedules that add tasks to a campaign, including removed ones.
pub async fn schedules_of(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
) -> Result<Vec<String>, StatementError> {
    sqlx::query_scalar!(
        "select distinct subject from dalsegno.audit where subject_kind = 'schedule' and data ->> 'campaign_id' = $1",
        campaign_id.to_string(),
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("find schedules in the audit log"))
}

/// Returns the newest line about one of these actions for each subject that has one, by the index of subjects.
pub async fn last_of_each(
    executor: impl PgExecutor<'_>,
    subjects: &[String],
    actions: &[Action],
) -> Result<Vec<Entry>, StatementError> {
    let actions: Vec<String> = actions.iter().map(|action| action.as_str().to_owned()).collect();
    sqlx::query_as!(
        Entry,
        r#"select l.id as "id!", l.at as "at!", l.actor_kind as "actor_kind!", l.actor as "actor!", l.actor_id as "actor_id?",
                  l.action as "action!", l.subject_kind as "subject_kind!", l.subject as "subject!", l.peer as "peer?", l.data as "data!"
             from unnest($1::text[]) as given (subject)
                  cross join lateral (
                    select a.id, a.at, a.actor_kind, a.actor, a.actor_id, a.action, a.subject_kind, a.subject, a.peer, a.data
                      from dalsegno.audit as a
                     where a.subject = given.subject and a.action = any($2)
                     order by a.id desc limit 1) as l"#,
        subjects,
        actions.as_slice(),
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("read the audit log"))
}

/// Removes at most `limit` lines older than `moment`, and returns their number.
pub async fn remove_before(
    executor: impl PgExecutor<'_>,
    moment: DateTime<Utc>,
    limit: i64,
) -> Result<i64, StatementError> {
    sqlx::query_scalar!(r#"select dalsegno.remove_old_audit($1, $2) as "n!""#, moment, limit)
        .fetch_one(executor)
        .await
        .map_err(StatementError::to("remove old lines of the audit log"))
}

fn cut_short(value: &mut Value) {
    match value {
        Value::String(words) => {
            if let Some((end, _)) = words.char_indices().nth(WORDS_MAX_CHARS) {
                words.truncate(end);
                words.push_str(" ...");
            }
        }
        Value::Array(items) => items.iter_mut().for_each(cut_short),
        Value::Object(fields) => fields.values_mut().for_each(cut_short),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn long_texts_are_cut_at_a_character_boundary() {
        let mut data = json!({ "reason": "ü".repeat(301), "n": 1, "list": ["short"] });
        cut_short(&mut data);
        let cut = format!("{} ...", "ü".repeat(300));
        assert_eq!(data, json!({ "reason": cut, "n": 1, "list": ["short"] }));
    }
}
