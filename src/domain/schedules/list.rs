//! Schedules as the API shows them.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sqlx::PgExecutor;

use super::{Error, Source, Timetable};
use crate::domain::StatementError;

#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Schedule {
    pub name: String,
    pub source: Source,
    pub cron: String,
    pub time_zone: String,
    pub catch_up_secs: i32,
    pub kind: String,
    pub queue: String,
    pub lane: Option<String>,
    pub payload: Value,
    pub created_at: DateTime<Utc>,
    pub paused_at: Option<DateTime<Utc>>,
    pub pause_reason: Option<String>,
    /// The latest slot that has fired; `last_fired_at` and `last_job_id` belong to it.
    pub last_slot: Option<DateTime<Utc>>,
    pub last_fired_at: Option<DateTime<Utc>>,
    pub last_job_id: Option<i64>,
    /// The next slot. Null while the schedule is paused.
    pub next_slot: Option<DateTime<Utc>>,
}

pub async fn list(
    executor: impl PgExecutor<'_>,
    now: DateTime<Utc>,
) -> Result<Vec<Schedule>, StatementError> {
    read(executor, None, now).await
}

pub async fn get(
    executor: impl PgExecutor<'_>,
    name: &str,
    now: DateTime<Utc>,
) -> Result<Schedule, Error> {
    let found = read(executor, Some(name), now).await?.into_iter().next();
    found.ok_or_else(|| Error::Unknown(name.to_owned()))
}

async fn read(
    executor: impl PgExecutor<'_>,
    name: Option<&str>,
    now: DateTime<Utc>,
) -> Result<Vec<Schedule>, StatementError> {
    let mut schedules = sqlx::query_as!(
        Schedule,
        r#"select s.name as "name!", s.source as "source!: Source", s.cron as "cron!", s.time_zone as "time_zone!",
                  s.catch_up_secs as "catch_up_secs!", s.kind as "kind!", s.queue as "queue!", s.lane, s.payload as "payload!", s.created_at as "created_at!",
                  s.paused_at, s.pause_reason, l.slot as "last_slot?", l.fired_at as "last_fired_at?", l.job_id as "last_job_id?",
                  null::timestamptz as next_slot
             from dalsegno.schedules as s
             left join lateral (select f.slot, f.fired_at, f.job_id from dalsegno.schedule_slots as f
                                 where f.schedule = s.name order by f.slot desc limit 1) as l on true
            where $1::text is null or s.name = $1
            order by s.name"#,
        name,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list the schedules"))?;
    for schedule in schedules.iter_mut().filter(|schedule| schedule.paused_at.is_none()) {
        // A schedule written with SQL may have an invalid timetable, and then has no next slot.
        let timetable = Timetable::parse(&schedule.cron, &schedule.time_zone).ok();
        schedule.next_slot = timetable.and_then(|timetable| timetable.next_after(now));
    }
    Ok(schedules)
}
