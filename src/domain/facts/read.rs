//! Reading facts.

use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::Value;
use sqlx::PgExecutor;
use uuid::Uuid;

use super::{EndReason, Error, Fact, Source, Trust, check_name};
use crate::domain::{
    Page, StatementError,
    ids::{self, PartialId},
};

/// A filter of facts.
#[derive(Debug, Clone, Copy, Default)]
pub struct Filter {
    /// Includes facts that have ended.
    pub with_ended: bool,
}

/// A current fact, as shown to a model so that it does not repeat it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CurrentFact {
    pub id: Uuid,
    pub attribute: String,
    pub text: String,
}

/// A fact that an agent is told with its task.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct PromptFact {
    pub id: Uuid,
    pub attribute: String,
    pub text: String,
    pub source: String,
    /// The date on which it was said.
    pub said: String,
}

/// The newest first.
pub async fn list(
    executor: impl PgExecutor<'_>,
    user: &str,
    filter: Filter,
    page: Page,
    now: DateTime<Utc>,
) -> Result<Vec<Fact>, Error> {
    check_name(user)?;
    let facts = sqlx::query_as!(
        Fact,
        r#"select id, user_name as user, attribute, text, case when is_written then 'written' else source end as "source!: Source", trust as "trust: Trust", author, campaign_id, session_id,
                  turn, task_id, recorded_at, valid_from, valid_until, replaced_by, expires_at,
                  case when expires_at <= valid_until then 'expired' else ended_because end as "ended_because: EndReason"
             from dalsegno.facts
            where user_name = $1 and ($2 or valid_until is null and (expires_at is null or expires_at > $3))
              and ($4::uuid is null or id < $4)
            order by id desc limit $5"#,
        user,
        filter.with_ended,
        now,
        page.after,
        page.limit,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list the facts about a user"))?;
    Ok(facts)
}

/// Returns the ids of the facts about a user, also of those that have ended.
pub async fn ids_of_user(
    executor: impl PgExecutor<'_>,
    user: &str,
) -> Result<Vec<Uuid>, StatementError> {
    sqlx::query_scalar!(
        "select id from dalsegno.facts where user_name = $1 order by id desc limit 1000",
        user,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("find the facts of a user"))
}

/// Reads a fact, also one that has ended.
pub async fn get(executor: impl PgExecutor<'_>, user: &str, id: Uuid) -> Result<Fact, Error> {
    check_name(user)?;
    sqlx::query_as!(
        Fact,
        r#"select id, user_name as user, attribute, text, case when is_written then 'written' else source end as "source!: Source", trust as "trust: Trust", author, campaign_id, session_id,
                  turn, task_id, recorded_at, valid_from, valid_until, replaced_by, expires_at,
                  case when expires_at <= valid_until then 'expired' else ended_because end as "ended_because: EndReason"
             from dalsegno.facts where user_name = $1 and id = $2"#,
        user,
        id,
    )
    .fetch_optional(executor)
    .await
    .map_err(StatementError::to("read a fact"))?
    .ok_or_else(|| Error::NoFact { user: user.to_owned(), id })
}

/// Lists current facts about a user, the newest first, within both limits.
pub async fn list_current(
    executor: impl PgExecutor<'_>,
    user: &str,
    (most, max_bytes): (i64, i64),
    now: DateTime<Utc>,
) -> Result<Vec<CurrentFact>, StatementError> {
    sqlx::query_as!(
        CurrentFact,
        r#"select f.id as "id!", f.attribute as "attribute!", f.text as "text!"
             from (select n.id, n.attribute, n.text,
                          sum(octet_length(n.attribute) + octet_length(n.text)) over (order by n.id desc) as so_far
                     from (select id, attribute, text from dalsegno.facts
                            where user_name = $1 and valid_until is null and (expires_at is null or expires_at > $4)
                            order by id desc limit $2) as n) as f
            where f.so_far <= $3 order by f.id desc"#,
        user,
        most,
        max_bytes,
        now,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list the current facts about a user"))
}

/// Parses the facts as the statement of a turn returns them; null: there are none.
pub fn parse_told(read: Option<Value>) -> Result<Vec<PromptFact>, serde_json::Error> {
    read.map_or(Ok(Vec::new()), serde_json::from_value)
}

/// Finds the fact that a person refers to.
pub async fn find(
    executor: impl PgExecutor<'_>,
    given: &PartialId,
    within: Option<&[Uuid]>,
) -> Result<Uuid, ids::NotFound> {
    ids::find_id!(
        executor,
        given,
        within,
        ("fact", "memory facts ls"),
        "dalsegno.facts",
        "null::uuid",
        "t.attribute || ': ' || t.text"
    )
}
