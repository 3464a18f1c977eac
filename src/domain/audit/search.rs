//! The search for lines, the newest first. It reads a limited number of lines: filters that match nothing would read the whole log.

use chrono::{DateTime, Utc};
use sqlx::{PgConnection, PgExecutor};
use uuid::Uuid;

use super::{Entry, line_before};
use crate::domain::StatementError;

/// Lines that a page of the log reads at most, and newest lines among whose subjects the end of an id is looked for.
const MAX_SEARCHED: i64 = 100_000;
/// Subjects with the same end that are read at most.
const MAX_FOUND: i64 = 100;

/// A filter of lines. Unset fields match everything.
#[derive(Debug, Clone, Copy, Default)]
pub struct Filter<'a> {
    /// A name, a kind, or the id of a key.
    pub actor: Option<&'a str>,
    /// `task.cancel`, or `task` for all actions on tasks.
    pub action: Option<&'a str>,
    /// Ids or names of the subject.
    pub subjects: Option<&'a [String]>,
    /// Agents that a line names in its data: also these lines match.
    pub agents: &'a [String],
    /// Ids of campaigns that a line names in its data: also these lines match.
    pub campaigns: &'a [String],
    /// Only lines that were written at this moment or later.
    pub created_after: Option<DateTime<Utc>>,
    /// Only lines that were written earlier.
    pub created_before: Option<DateTime<Utc>>,
    /// Only lines with a smaller id.
    pub before: Option<i64>,
    pub limit: i64,
}

/// A page of the log.
#[derive(Debug)]
pub struct AuditPage {
    pub entries: Vec<Entry>,
    /// The last line that was read, if the search stopped at its maximum.
    pub looked_up_to: Option<i64>,
}

/// The numbers of the lines that a search may read: those between the two.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    above: i64,
    below: i64,
}

/// Lists matching lines, the newest first. Subjects have an index, which a statement with alternatives to them could not use.
pub async fn search(
    conn: &mut PgConnection,
    filter: Filter<'_>,
) -> Result<AuditPage, StatementError> {
    if let Some(subjects) = filter.subjects
        && filter.agents.is_empty()
        && filter.campaigns.is_empty()
    {
        let found = list_by_subject(conn, subjects, filter).await;
        let entries = found.map_err(StatementError::to("read the audit log"))?;
        return Ok(AuditPage { entries, looked_up_to: None });
    }
    let bounds = Bounds::of(&mut *conn, &filter).await?;
    let found = list_by_all(&mut *conn, filter, bounds).await;
    let entries = found.map_err(StatementError::to("read the audit log"))?;
    let is_full = i64::try_from(entries.len()).is_ok_and(|n| n >= filter.limit);
    let looked_up_to = match is_full {
        true => None,
        false => last_searched(conn, bounds).await?,
    };
    Ok(AuditPage { entries, looked_up_to })
}

/// Lists the ids that end with these digits among the subjects of the newest lines, those with the newest lines first. No index has the ends
/// of ids.
pub async fn subjects_ending(
    executor: impl PgExecutor<'_>,
    end: &str,
) -> Result<Vec<Uuid>, StatementError> {
    let subjects = sqlx::query_scalar!(
        r#"select subject as "subject!" from (select id, subject from dalsegno.audit order by id desc limit $2) as newest
            where length(subject) = 36 and right(replace(subject, '-', ''), length($1)) = $1
            group by subject order by max(id) desc limit $3"#,
        end,
        MAX_SEARCHED,
        MAX_FOUND,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("find subjects in the audit log"))?;
    Ok(subjects.iter().filter_map(|subject| subject.parse().ok()).collect())
}

/// Lists the lines of some subjects, by their index. A condition on the data would keep Postgres from using it.
async fn list_by_subject(
    conn: &mut PgConnection,
    subjects: &[String],
    filter: Filter<'_>,
) -> Result<Vec<Entry>, sqlx::Error> {
    sqlx::query_as!(
        Entry,
        "select id, at, actor_kind, actor, actor_id, action, subject_kind, subject, peer, data
           from dalsegno.audit
          where ($1::text is null or actor = $1 or actor_kind = $1 or actor_id::text = $1)
            and ($2::text is null or action = $2 or subject_kind = $2)
            and subject = any($3)
            and ($4::timestamptz is null or at >= $4)
            and id < coalesce($5, 9223372036854775807)
            and ($7::timestamptz is null or at < $7)
          order by id desc limit $6",
        filter.actor,
        filter.action,
        subjects,
        filter.created_after,
        filter.before,
        filter.limit,
        filter.created_before,
    )
    .fetch_all(conn)
    .await
}

/// Lists lines of all subjects, or also those that name an agent or a campaign in their data, among the newest lines within the bounds.
async fn list_by_all(
    conn: &mut PgConnection,
    filter: Filter<'_>,
    bounds: Bounds,
) -> Result<Vec<Entry>, sqlx::Error> {
    sqlx::query_as!(
        Entry,
        r#"select id as "id!", at as "at!", actor_kind as "actor_kind!", actor as "actor!", actor_id, action as "action!",
                  subject_kind as "subject_kind!", subject as "subject!", peer, data as "data!"
             from (select id, at, actor_kind, actor, actor_id, action, subject_kind, subject, peer, data
                     from dalsegno.audit where id < $5 and id > $10 order by id desc limit $11) as line
            where ($1::text is null or actor = $1 or actor_kind = $1 or actor_id::text = $1)
              and ($2::text is null or action = $2 or subject_kind = $2)
              and ($3::text[] is null or subject = any($3) or data ->> 'agent' = any($8) or data ->> 'campaign_id' = any($9))
              and ($4::timestamptz is null or at >= $4)
              and ($7::timestamptz is null or at < $7)
            order by id desc limit $6"#,
        filter.actor,
        filter.action,
        filter.subjects,
        filter.created_after,
        bounds.below,
        filter.limit,
        filter.created_before,
        filter.agents,
        filter.campaigns,
        bounds.above,
        MAX_SEARCHED,
    )
    .fetch_all(conn)
    .await
}

/// Returns the last of the lines that a search reads, if there are more.
async fn last_searched(
    conn: &mut PgConnection,
    bounds: Bounds,
) -> Result<Option<i64>, StatementError> {
    let rows = sqlx::query_scalar!(
        "select id from dalsegno.audit where id < $1 and id > $2 order by id desc offset $3 limit 2",
        bounds.below,
        bounds.above,
        MAX_SEARCHED - 1,
    )
    .fetch_all(conn)
    .await
    .map_err(StatementError::to("read the audit log"))?;
    Ok(rows.first().copied().filter(|_| rows.len() > 1))
}

impl Bounds {
    /// Finds the bounds of a filter. Its times have an index, by which lines outside of them are not read.
    async fn of(conn: &mut PgConnection, filter: &Filter<'_>) -> Result<Self, StatementError> {
        let above = match filter.created_after {
            Some(moment) => line_before(&mut *conn, moment).await?,
            None => 0,
        };
        let before_time = match filter.created_before {
            Some(moment) => line_behind(conn, moment).await?,
            None => i64::MAX,
        };
        Ok(Self { above, below: before_time.min(filter.before.unwrap_or(i64::MAX)) })
    }
}

/// Returns a line number that lies behind all lines written before `moment`.
async fn line_behind(
    conn: &mut PgConnection,
    moment: DateTime<Utc>,
) -> Result<i64, StatementError> {
    // As for `line_before`: the order of numbers differs from the order of times.
    sqlx::query_scalar!(
        r#"select coalesce(max(last.id) + 1, 0) as "line!"
             from (select id from dalsegno.audit where at < $1 order by at desc limit 1000) as last"#,
        moment,
    )
    .fetch_one(conn)
    .await
    .map_err(StatementError::to("find the end of a time in the audit log"))
}
