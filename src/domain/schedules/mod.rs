//! Schedules: recurring jobs.
//!
//! A slot is one moment that a timetable names. Invariant: each slot fires exactly once, by a row of its own in the transaction that
//! enqueues its job. Any number of processes check at any time without a leader; the primary key of the row decides.
//!
//! Slots that were missed are caught up in order, until they are older than `catch_up_secs`. A schedule whose late slots are useless
//! beside a new one has a window of one period.
//!
//! Races: a pause waits for concurrent firing, and applies to everything after it. A changed timetable applies from the moment of its
//! change. A process that still has the old one does not find the row that it read, and does nothing.

mod config;
mod error;
mod fire;
mod list;
mod recurring;
mod requester;
mod timetable;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sqlx::{PgConnection, PgExecutor};

pub use self::{
    config::Config,
    error::Error,
    fire::{FiredSlot, fire_due, next_moments},
    list::{Schedule, get, list},
    recurring::{RecurringTime, names_of_campaign, put_task, remove, remove_of_campaign},
    requester::{BY_SCHEDULE, headers_with_requester, requester},
    timetable::{Invalid, Timetable},
};
use super::StatementError;
use crate::queue::{self, EnqueueResult, JobData, Options};

/// Attempts of a job that a schedule enqueues.
const MAX_ATTEMPTS: i16 = 5;

/// The built-in schedule of the nightly cleanup.
pub const NIGHTLY_CLEANUP: &str = "cleanup";

/// The origin of a schedule's timetable.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, sqlx::Type, utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
#[sqlx(type_name = "text", rename_all = "snake_case")]
#[schema(as = ScheduleSource)]
pub enum Source {
    /// The configuration.
    BuiltIn,
    User,
}

/// A schedule to write. Its timetable must be valid for [`Timetable::parse`].
#[derive(Debug, Clone, Copy)]
pub struct New<'a> {
    pub name: &'a str,
    pub source: Source,
    pub cron: &'a str,
    pub time_zone: &'a str,
    pub catch_up_secs: u32,
    pub kind: &'a str,
    pub queue: &'a str,
    pub lane: Option<&'a str>,
    pub payload: &'a Value,
}

/// Writes a schedule, or its changes. A pause stays. A new timetable does not catch up slots from before the change.
pub async fn put(
    executor: impl PgExecutor<'_>,
    new: &New<'_>,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    let invalid = |source| Error::Invalid { name: new.name.to_owned(), source };
    Timetable::parse(new.cron, new.time_zone).map_err(invalid)?;
    sqlx::query!(
        "insert into dalsegno.schedules as s
                (name, created_at, active_since, source, cron, time_zone, catch_up_secs, kind, queue, lane, payload)
         values ($1, $2, $2, $3, $4, $5, $6, $7, $8, $9, $10)
         on conflict (name) do update
            set active_since = case when (s.cron, s.time_zone) is distinct from (excluded.cron, excluded.time_zone)
                                    then excluded.active_since else s.active_since end,
                source = excluded.source, cron = excluded.cron, time_zone = excluded.time_zone,
                catch_up_secs = excluded.catch_up_secs, kind = excluded.kind, queue = excluded.queue,
                lane = excluded.lane, payload = excluded.payload
          where (s.source, s.cron, s.time_zone, s.catch_up_secs, s.kind, s.queue, s.lane, s.payload)
                is distinct from (excluded.source, excluded.cron, excluded.time_zone, excluded.catch_up_secs, excluded.kind,
                                  excluded.queue, excluded.lane, excluded.payload)",
        new.name,
        now,
        new.source as Source,
        new.cron,
        new.time_zone,
        i32::try_from(new.catch_up_secs).unwrap_or(i32::MAX),
        new.kind,
        new.queue,
        new.lane,
        new.payload,
    )
    .execute(executor)
    .await
    .map_err(StatementError::to("store a schedule"))?;
    Ok(())
}

/// Pauses a schedule until it is resumed. Pausing again replaces the reason.
pub async fn pause(
    conn: &mut PgConnection,
    name: &str,
    reason: &str,
    now: DateTime<Utc>,
) -> Result<Schedule, Error> {
    sqlx::query!(
        "update dalsegno.schedules set paused_at = coalesce(paused_at, $3), pause_reason = $2 where name = $1",
        name,
        reason,
        now,
    )
    .execute(&mut *conn)
    .await
    .map_err(StatementError::to("pause a schedule"))?;
    get(conn, name, now).await
}

/// Resumes a schedule. Slots during the pause are not caught up.
pub async fn resume(
    conn: &mut PgConnection,
    name: &str,
    now: DateTime<Utc>,
) -> Result<Schedule, Error> {
    sqlx::query!(
        "update dalsegno.schedules set paused_at = null, pause_reason = null, active_since = $2
          where name = $1 and paused_at is not null",
        name,
        now,
    )
    .execute(&mut *conn)
    .await
    .map_err(StatementError::to("resume a schedule"))?;
    get(conn, name, now).await
}

/// Enqueues its job now, independently of the timetable and of a pause. Its slots stay as they are. `requester`: the label of the caller.
pub async fn run(
    conn: &mut PgConnection,
    name: &str,
    requester: &str,
) -> Result<EnqueueResult, Error> {
    let job = fire::job(&mut *conn, name).await?.ok_or_else(|| Error::Unknown(name.to_owned()))?;
    enqueue(conn, name, &job, requester).await
}

async fn enqueue(
    conn: &mut PgConnection,
    name: &str,
    job: &fire::ScheduledJob,
    requester: &str,
) -> Result<EnqueueResult, Error> {
    let named = JobData {
        kind: &job.kind,
        payload: &job.payload,
        queue: &job.queue,
        max_attempts: MAX_ATTEMPTS,
    };
    let options = Options {
        lane: job.lane.clone(),
        headers: Some(headers_with_requester(requester)),
        ..Options::default()
    };
    let failed = |source| Error::Enqueue { name: name.to_owned(), source };
    queue::enqueue_named(conn, named, &options).await.map_err(failed)
}
