//! Firing schedules: enqueuing the jobs of all slots that are due.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;
use sqlx::{PgConnection, PgExecutor, PgPool};

use super::{BY_SCHEDULE, Error, Timetable, enqueue};
use crate::domain::{
    StatementError,
    transaction::{begin, commit},
};

/// Maximum number of slots of one schedule that one check fires. The next check continues.
const MAX_SLOTS: usize = 1_000;
/// Time for which slots are kept after they can no longer be caught up.
const KEEP: TimeDelta = TimeDelta::days(30);

/// A slot that this process has fired.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FiredSlot {
    pub schedule: String,
    pub slot: DateTime<Utc>,
    pub job_id: i64,
}

/// The job that a schedule enqueues.
pub(super) struct ScheduledJob {
    pub(super) kind: String,
    pub(super) queue: String,
    pub(super) lane: Option<String>,
    pub(super) payload: Value,
}

/// A schedule that is not paused.
#[derive(Debug)]
struct ActiveSchedule {
    name: String,
    cron: String,
    time_zone: String,
    catch_up_secs: i32,
    active_since: DateTime<Utc>,
    last_slot: Option<DateTime<Utc>>,
}

/// Enqueues the jobs of all moments up to `now` that no process has fired yet. Each schedule is one transaction; one
/// that fails does not keep the others from theirs. The error is that of each schedule that failed.
pub async fn fire_due(pool: &PgPool, now: DateTime<Utc>) -> Result<Vec<FiredSlot>, Vec<Error>> {
    let (mut all, mut failed) = (Vec::new(), Vec::new());
    for schedule in list_unpaused(pool).await.map_err(|error| vec![Error::from(error)])? {
        match schedule.fire(pool, now).await {
            Ok(fired) => all.extend(fired),
            Err(error) => failed.push(error),
        }
    }
    for FiredSlot { schedule, slot, job_id } in &all {
        tracing::info!(schedule, due_at = %slot, job.id = job_id, "fired a schedule");
    }
    if failed.is_empty() { Ok(all) } else { Err(failed) }
}

/// Returns the next slot of each schedule that is not paused, by name. It may have passed already.
pub async fn next_moments(
    executor: impl PgExecutor<'_>,
    now: DateTime<Utc>,
) -> Result<BTreeMap<String, DateTime<Utc>>, StatementError> {
    let mut moments = BTreeMap::new();
    for schedule in list_unpaused(executor).await? {
        if let Some(moment) = schedule.next(now) {
            moments.insert(schedule.name, moment);
        }
    }
    Ok(moments)
}

/// Reads the job of a schedule.
pub(super) async fn job(
    executor: impl PgExecutor<'_>,
    name: &str,
) -> Result<Option<ScheduledJob>, StatementError> {
    sqlx::query_as!(
        ScheduledJob,
        "select kind, queue, lane, payload from dalsegno.schedules where name = $1",
        name,
    )
    .fetch_optional(executor)
    .await
    .map_err(StatementError::to("read a schedule"))
}

impl ActiveSchedule {
    async fn fire(&self, pool: &PgPool, now: DateTime<Utc>) -> Result<Vec<FiredSlot>, Error> {
        let slots = self.due(now)?;
        if slots.is_empty() {
            return Ok(Vec::new());
        }
        let mut tx = begin(pool).await?;
        let Some(job) = self.lock(&mut tx).await? else {
            return Ok(Vec::new());
        };
        let mut fired = Vec::new();
        // In order, so that two processes that claim the same slots cannot deadlock.
        for slot in slots {
            if !self.claim_slot(&mut tx, slot, now).await? {
                continue;
            }
            let job_id = enqueue(&mut tx, &self.name, &job, BY_SCHEDULE).await?.job_id;
            self.note_job(&mut tx, slot, job_id).await?;
            fired.push(FiredSlot { schedule: self.name.clone(), slot, job_id });
        }
        self.forget_old(&mut tx, now).await?;
        commit(tx).await?;
        Ok(fired)
    }

    /// Returns the slots to fire: those in the catch-up window after the last claimed one. Slots are claimed in order, so none before
    /// that one is open.
    fn due(&self, now: DateTime<Utc>) -> Result<Vec<DateTime<Utc>>, Error> {
        let invalid = |source| Error::Invalid { name: self.name.clone(), source };
        let timetable = Timetable::parse(&self.cron, &self.time_zone).map_err(invalid)?;
        Ok(timetable.between(self.after(now), now, MAX_SLOTS))
    }

    /// Returns the next slot, or None if the timetable is invalid, as SQL may have written it.
    fn next(&self, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let timetable = Timetable::parse(&self.cron, &self.time_zone).ok()?;
        timetable.next_after(self.after(now))
    }

    fn after(&self, now: DateTime<Utc>) -> DateTime<Utc> {
        let window = now - self.catch_up();
        let after = window.max(self.active_since);
        self.last_slot.map_or(after, |last| after.max(last))
    }

    fn catch_up(&self) -> TimeDelta {
        TimeDelta::seconds(self.catch_up_secs.into())
    }

    /// Locks the schedule and returns its job. Returns None if it was paused or its timetable changed since it was read. The lock keeps
    /// both from happening until the transaction ends.
    async fn lock(&self, conn: &mut PgConnection) -> Result<Option<ScheduledJob>, StatementError> {
        sqlx::query_as!(
            ScheduledJob,
            "select kind, queue, lane, payload from dalsegno.schedules
              where name = $1 and paused_at is null and active_since = $2 and cron = $3 and time_zone = $4
                for share",
            self.name,
            self.active_since,
            self.cron,
            self.time_zone,
        )
        .fetch_optional(conn)
        .await
        .map_err(StatementError::to("lock a schedule"))
    }

    /// Claims a slot by inserting its row; false if another process has it. Waits for a concurrent claim, and succeeds if that rolls
    /// back.
    async fn claim_slot(
        &self,
        conn: &mut PgConnection,
        slot: DateTime<Utc>,
        now: DateTime<Utc>,
    ) -> Result<bool, StatementError> {
        sqlx::query!(
            "insert into dalsegno.schedule_slots (schedule, slot, fired_at) values ($1, $2, $3)
             on conflict (schedule, slot) do nothing",
            self.name,
            slot,
            now,
        )
        .execute(conn)
        .await
        .map(|taken| taken.rows_affected() == 1)
        .map_err(StatementError::to("record that a schedule fired"))
    }

    async fn note_job(
        &self,
        conn: &mut PgConnection,
        slot: DateTime<Utc>,
        job_id: i64,
    ) -> Result<(), StatementError> {
        sqlx::query!(
            "update dalsegno.schedule_slots set job_id = $3 where schedule = $1 and slot = $2",
            self.name,
            slot,
            job_id,
        )
        .execute(conn)
        .await
        .map(|_| ())
        .map_err(StatementError::to("record the job of a schedule"))
    }

    async fn forget_old(
        &self,
        conn: &mut PgConnection,
        now: DateTime<Utc>,
    ) -> Result<(), StatementError> {
        sqlx::query!(
            "delete from dalsegno.schedule_slots where schedule = $1 and slot < $2",
            self.name,
            now - self.catch_up() - KEEP,
        )
        .execute(conn)
        .await
        .map(|_| ())
        .map_err(StatementError::to("remove old firings of a schedule"))
    }
}

async fn list_unpaused(
    executor: impl PgExecutor<'_>,
) -> Result<Vec<ActiveSchedule>, StatementError> {
    sqlx::query_as!(
        ActiveSchedule,
        r#"select s.name, s.cron, s.time_zone, s.catch_up_secs, s.active_since,
                  (select max(f.slot) from dalsegno.schedule_slots as f where f.schedule = s.name) as last_slot
             from dalsegno.schedules as s where s.paused_at is null order by s.name"#,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("read the schedules"))
}
