//! The feed: events in order, for operators. It holds at most previews of an answer while it is written, and nothing of a prompt.
//!
//! Race: ids are drawn before the commit, so that a reader can see 6 while 5 is still uncommitted. A reader that goes on behind 6 would
//! miss 5. [`Horizon`] computes the id up to which no event can appear any more, and [`list`] reads up to it. The price: a transaction that
//! has written and stays open, of any application, holds readers up. The doctor warns of it.

mod catalogue;
mod hub;
mod watch;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sqlx::{PgExecutor, types::Json};
use uuid::Uuid;

pub use self::{
    catalogue::{EventKind, Field, FieldType, KINDS, Kind, WARNING_FIELDS, object_schema},
    hub::{FollowError, Follower, Hub, SharedEvent},
    watch::{EventFilter, FeedItem, Watch},
};
use super::StatementError;

#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = FeedEvent)]
pub struct Event {
    pub id: i64,
    pub created_at: DateTime<Utc>,
    pub campaign_id: Option<Uuid>,
    pub task_id: Option<Uuid>,
    pub session_id: Option<Uuid>,
    /// The agent that the event is about.
    #[serde(default)]
    pub agent: Option<String>,
    /// Its instance. Null: all instances of the agent.
    #[serde(default)]
    pub instance: Option<String>,
    /// `task.queued`, `turn.done` and so on. Newer versions may add kinds.
    pub kind: String,
    /// An object whose fields depend on the kind. Newer versions may add fields.
    #[schema(value_type = Object)]
    pub data: Value,
}

/// An event to be written.
#[derive(Debug, Clone)]
pub struct New {
    pub campaign_id: Option<Uuid>,
    pub task_id: Option<Uuid>,
    pub session_id: Option<Uuid>,
    pub kind: Kind,
    pub data: Value,
}

/// A filter of events.
#[derive(Debug, Clone, Copy)]
pub struct Filter {
    pub campaign_id: Option<Uuid>,
    /// Only events after this id.
    pub after: i64,
    /// Only events up to this id; see [`Horizon`].
    pub up_to: i64,
    pub limit: i64,
}

/// The id up to which a reader may go on without missing an event.
///
/// An id is settled when each smaller one is visible or was rolled back. A gap is a rollback or an id that is still uncommitted. The reader
/// tells them apart by waiting, once, until all transactions have ended that were open when it first saw the gap. Each transaction draws
/// its own number before its first id.
///
/// The reader compares with a transaction number that it draws itself after it has seen the gap. A snapshot is not enough: it omits open
/// transactions with a higher number than any that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Horizon {
    settled: i64,
    /// The newest id when a gap was first seen, and a transaction number from after that.
    waiting: Option<(i64, i64)>,
}

/// A reader's view of the feed at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedView {
    /// Visible ids beyond the horizon, in order, as many as fit on a page.
    ids: Vec<i64>,
    /// The newest of all that are visible.
    newest: i64,
    /// All transactions with a smaller number have ended.
    oldest_open: i64,
    /// A transaction number drawn after the read, if the page has a gap that is not waited for yet.
    mark: Option<i64>,
}

/// An event as the statements that add events read it from JSON.
#[derive(Debug, Serialize)]
pub(super) struct InsertRow<'a> {
    place: usize,
    campaign_id: Option<Uuid>,
    task_id: Option<Uuid>,
    session_id: Option<Uuid>,
    kind: &'static str,
    data: &'a Value,
}

impl<'a> InsertRow<'a> {
    pub(super) fn all(events: &'a [New]) -> Vec<Self> {
        events.iter().enumerate().map(|(place, event)| Self::of(event, place)).collect()
    }

    fn of(event: &'a New, place: usize) -> Self {
        let New { campaign_id, task_id, session_id, kind, ref data } = *event;
        Self { place, campaign_id, task_id, session_id, kind: kind.as_str(), data }
    }
}

#[cfg(test)]
impl InsertRow<'static> {
    pub(super) fn example() -> Self {
        let (place, kind, data) = (0, "task.queued", &Value::Null);
        Self { place, campaign_id: None, task_id: None, session_id: None, kind, data }
    }
}

impl Horizon {
    /// A reader that has seen everything up to `settled`.
    pub fn at(settled: i64) -> Self {
        Self { settled, waiting: None }
    }

    pub fn settled(&self) -> i64 {
        self.settled
    }

    /// Moves on as far as `sight` allows.
    pub fn advance(&mut self, sight: &FeedView) {
        if let Some((newest, mark)) = self.waiting
            && sight.oldest_open >= mark
        {
            self.settled = self.settled.max(newest);
            self.waiting = None;
        }
        for id in &sight.ids {
            if *id == self.settled + 1 {
                self.settled = *id;
            }
        }
        if sight.newest <= self.settled {
            self.waiting = None;
        } else if self.waiting.is_none() {
            self.waiting = sight.mark.map(|mark| (sight.newest, mark));
        }
    }
}

/// Adds events in one statement, in the order given.
pub async fn append(
    executor: impl PgExecutor<'_>,
    events: &[New],
    now: DateTime<Utc>,
) -> Result<(), StatementError> {
    if events.is_empty() {
        return Ok(());
    }
    let rows = Json(InsertRow::all(events));
    sqlx::query_file!("src/domain/feed/append.sql", now, rows as _)
        .execute(executor)
        .await
        .map(|_| ())
        .map_err(StatementError::to("append to the feed"))
}

/// Lists events in order.
pub async fn list(
    executor: impl PgExecutor<'_>,
    filter: Filter,
) -> Result<Vec<Event>, StatementError> {
    sqlx::query_as!(
        Event,
        "select id, created_at, campaign_id, task_id, session_id, agent, instance, kind, data
           from dalsegno.feed
          where id > $1 and id <= $2 and ($3::uuid is null or campaign_id = $3)
          order by id limit $4",
        filter.after,
        filter.up_to,
        filter.campaign_id,
        filter.limit,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("read the feed"))
}

/// The id of the first event of a task.
pub async fn first_of_task(
    executor: impl PgExecutor<'_>,
    task_id: Uuid,
) -> Result<Option<i64>, StatementError> {
    sqlx::query_scalar!(
        "select id from dalsegno.feed where task_id = $1 order by id limit 1",
        task_id
    )
    .fetch_optional(executor)
    .await
    .map_err(StatementError::to("find the first event of a task"))
}

/// Events of one task in order, later than `after` and not beyond `up_to`.
pub async fn of_task(
    executor: impl PgExecutor<'_>,
    task_id: Uuid,
    after: i64,
    up_to: i64,
    limit: i64,
) -> Result<Vec<Event>, StatementError> {
    sqlx::query_as!(
        Event,
        "select id, created_at, campaign_id, task_id, session_id, agent, instance, kind, data
           from dalsegno.feed where task_id = $1 and id > $2 and id <= $3
          order by id limit $4",
        task_id,
        after,
        up_to,
        limit,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("read the feed of a task"))
}

/// A tool that the service ran for a turn, as the progress of the turn tells.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ToolRun {
    pub tool: String,
    /// Time of the event that reported the end, which may be about a second late.
    pub ended_at: DateTime<Utc>,
    pub took_ms: i64,
    pub is_error: bool,
}

/// Returns the texts of all events of a task, as far as the feed has them.
pub async fn text_of_task(
    executor: impl PgExecutor<'_>,
    task_id: Uuid,
) -> Result<String, StatementError> {
    sqlx::query_scalar!(
        r#"select coalesce(string_agg(data ->> 'text', '' order by id), '') as "text!"
             from dalsegno.feed where task_id = $1 and kind = 'turn.progress'"#,
        task_id,
    )
    .fetch_one(executor)
    .await
    .map_err(StatementError::to("read the texts of the events of a task"))
}

/// Most tool runs that are listed of a turn.
const MAX_TOOL_RUNS: i64 = 200;

/// Lists the tools of a turn in the order of their ends, as long as the feed has them.
pub async fn tools_of_turn(
    executor: impl PgExecutor<'_>,
    task_id: Uuid,
    turn: i32,
) -> Result<Vec<ToolRun>, StatementError> {
    sqlx::query_as!(
        ToolRun,
        r#"select coalesce(t.run ->> 'name', '') as "tool!", f.created_at as "ended_at!",
                  coalesce((t.run ->> 'took_ms')::bigint, 0) as "took_ms!", coalesce((t.run ->> 'is_error')::boolean, false) as "is_error!"
             from dalsegno.feed as f cross join lateral jsonb_array_elements(f.data -> 'ended_tools') with ordinality as t (run, place)
            where f.task_id = $1 and f.kind = 'turn.progress' and f.data ->> 'turn' = $2::integer::text
            order by f.id, t.place limit $3"#,
        task_id,
        turn,
        MAX_TOOL_RUNS,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list the tools of a turn"))
}

/// The data of all events of a session that say that no compaction was needed, the newest first.
pub async fn list_compaction_refusals(
    executor: impl PgExecutor<'_>,
    session_id: Uuid,
) -> Result<Vec<Value>, StatementError> {
    sqlx::query_scalar!(
        // The kind is written out: an index has these events alone.
        "select data from dalsegno.feed
          where session_id = $1 and kind = 'session.compaction_not_needed' order by id desc",
        session_id,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list the skipped compactions of a session"))
}

/// Reads ids beyond `horizon` in one snapshot, so that ids and open transactions fit together.
pub async fn read_ahead(
    executor: impl PgExecutor<'_>,
    horizon: &Horizon,
    limit: i64,
) -> Result<FeedView, StatementError> {
    // The number is drawn only if it is needed: most reads find no gap, or one that is waited for already.
    let row = sqlx::query!(
        r#"select p.ids as "ids!", coalesce((select max(f.id) from dalsegno.feed as f), 0) as "newest!",
                  pg_snapshot_xmin(pg_current_snapshot())::text::bigint as "oldest_open!",
                  case when $3 and p.ids[cardinality(p.ids)] - $1 <> cardinality(p.ids)
                       then pg_current_xact_id()::text::bigint end as mark
             from (select array(select f.id from dalsegno.feed as f where f.id > $1 order by f.id limit $2)) as p (ids)"#,
        horizon.settled,
        limit,
        horizon.waiting.is_none(),
    )
    .fetch_one(executor)
    .await
    .map_err(StatementError::to("read the next events of the feed"))?;
    Ok(FeedView { ids: row.ids, newest: row.newest, oldest_open: row.oldest_open, mark: row.mark })
}

/// Removes the oldest events of an erased campaign, and returns their number.
pub async fn remove_of_campaign(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
    limit: i64,
) -> Result<i64, StatementError> {
    sqlx::query_scalar!(r#"select dalsegno.remove_events($1, $2) as "n!""#, campaign_id, limit,)
        .fetch_one(executor)
        .await
        .map_err(StatementError::to("remove the feed of a campaign"))
}

/// Counts the events that are older than `until`. Reads them all.
pub async fn count_before(
    executor: impl PgExecutor<'_>,
    until: DateTime<Utc>,
) -> Result<i64, StatementError> {
    sqlx::query_scalar!(
        // From the oldest to the first that is kept, as they are removed: times have no index.
        r#"select count(*) as "n!" from dalsegno.feed
            where created_at < $1
              and id < coalesce((select id from dalsegno.feed where created_at >= $1 order by id limit 1), 9223372036854775807)"#,
        until
    )
    .fetch_one(executor)
    .await
    .map_err(StatementError::to("count old events of the feed"))
}

/// Removes those of the oldest `limit` events that are older than `until`, and returns their number: less than `limit` if no others are
/// left.
pub async fn remove_before(
    executor: impl PgExecutor<'_>,
    until: DateTime<Utc>,
    limit: i64,
) -> Result<i64, StatementError> {
    sqlx::query_scalar!(r#"select dalsegno.remove_old_events($1, $2) as "n!""#, until, limit,)
        .fetch_one(executor)
        .await
        .map_err(StatementError::to("remove old events of the feed"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::json_rows::columns;

    #[test]
    fn insert_columns_match_event_rows() {
        let (row, sql) = (InsertRow::example(), include_str!("append.sql"));
        columns::assert_are_fields_of(&row, sql, "jsonb_to_recordset($2)");
    }

    fn sight(ids: &[i64], oldest_open: i64, mark: Option<i64>) -> FeedView {
        let newest = ids.last().copied().unwrap_or(0);
        FeedView { ids: ids.to_vec(), newest, oldest_open, mark }
    }

    #[test]
    fn ids_without_a_gap_are_settled_despite_open_transactions() {
        let mut horizon = Horizon::at(3);
        horizon.advance(&sight(&[4, 5], 10, None));
        assert_eq!(horizon.settled(), 5);
    }

    #[test]
    fn a_gap_blocks_until_its_possible_writers_have_ended() {
        let mut horizon = Horizon::at(4);
        horizon.advance(&sight(&[6], 100, Some(102)));
        assert_eq!(horizon.settled(), 4);
        horizon.advance(&sight(&[6, 8], 101, None));
        assert_eq!(horizon.settled(), 4);
        // 5 came after all; 7 is a new gap.
        let mut filled = horizon;
        filled.advance(&sight(&[5, 6, 8], 101, None));
        assert_eq!(filled.settled(), 6);
        // 5 was rolled back.
        horizon.advance(&sight(&[6, 8], 102, None));
        assert_eq!(horizon.settled(), 6);
        horizon.advance(&sight(&[8], 103, Some(105)));
        assert_eq!(horizon.settled(), 6);
        horizon.advance(&sight(&[8], 105, None));
        assert_eq!(horizon.settled(), 8);
    }

    #[test]
    fn a_reader_far_behind_jumps_to_the_newest_settled_id() {
        let mut horizon = Horizon::at(0);
        let page = FeedView { ids: vec![7, 9], newest: 90_000, oldest_open: 50, mark: Some(60) };
        horizon.advance(&page);
        assert_eq!(horizon.settled(), 0);
        horizon.advance(&FeedView { oldest_open: 60, mark: None, ..page });
        assert_eq!(horizon.settled(), 90_000);
    }
}
