//! Schedules of users, which add a task at each slot.

use chrono::{DateTime, Utc};
use sqlx::{Connection as _, PgConnection, PgExecutor};
use uuid::Uuid;

use super::{Error, New, Schedule, Source, get, put};
use crate::{
    domain::{
        StatementError,
        agents::Agent,
        tasks::{self, AddTask},
    },
    queue::Job as _,
};

/// The timetable of a recurring task.
#[derive(Debug, Clone, Copy)]
pub struct RecurringTime<'a> {
    pub cron: &'a str,
    pub time_zone: &'a str,
    pub catch_up_secs: u32,
}

/// Writes a recurring task, or its changes. A task that would be refused at its slot is refused now.
pub async fn put_task(
    conn: &mut PgConnection,
    config: &tasks::Config,
    name: &str,
    when: RecurringTime<'_>,
    (task, agent): (&AddTask, &Agent),
    now: DateTime<Utc>,
) -> Result<Schedule, Error> {
    refuse_built_in(&mut *conn, name, now).await?;
    let trial = StatementError::to("check a task of a schedule");
    let mut tried = conn.begin().await.map_err(trial)?;
    tasks::add(&mut tried, config, &task.to_new_task(agent), now).await?;
    tried.rollback().await.map_err(StatementError::to("roll back the check of a task"))?;
    let payload = serde_json::to_value(task)
        .map_err(|source| Error::Encode { name: name.to_owned(), source })?;
    let policy = AddTask::policy();
    let new = New {
        name,
        source: Source::User,
        cron: when.cron,
        time_zone: when.time_zone,
        catch_up_secs: when.catch_up_secs,
        kind: AddTask::KIND,
        queue: policy.queue,
        lane: None,
        payload: &payload,
    };
    put(&mut *conn, &new, now).await?;
    get(conn, name, now).await
}

/// Removes a schedule of a user. Jobs that it has enqueued stay.
pub async fn remove(conn: &mut PgConnection, name: &str, now: DateTime<Utc>) -> Result<(), Error> {
    get(&mut *conn, name, now).await?;
    refuse_built_in(&mut *conn, name, now).await?;
    sqlx::query!("delete from dalsegno.schedules where name = $1 and source = 'user'", name)
        .execute(conn)
        .await
        .map_err(StatementError::to("forget a schedule"))?;
    Ok(())
}

async fn refuse_built_in(
    conn: &mut PgConnection,
    name: &str,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    let is_built_in = match get(conn, name, now).await {
        Ok(schedule) => schedule.source == Source::BuiltIn,
        // The service has not written the built-in schedule yet.
        Err(Error::Unknown(_)) => name == super::NIGHTLY_CLEANUP,
        Err(error) => return Err(error),
    };
    if is_built_in { Err(Error::BuiltIn(name.to_owned())) } else { Ok(()) }
}

/// Lists the schedules that add tasks to a campaign.
pub async fn names_of_campaign(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
) -> Result<Vec<String>, StatementError> {
    sqlx::query_scalar!(
        "select name from dalsegno.schedules where source = 'user' and payload ->> 'campaign_id' = $1",
        campaign_id.to_string(),
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list the schedules of a campaign"))
}

/// Removes all schedules that add tasks to a campaign.
pub async fn remove_of_campaign(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
) -> Result<(), StatementError> {
    sqlx::query!(
        "delete from dalsegno.schedules where source = 'user' and payload ->> 'campaign_id' = $1",
        campaign_id.to_string(),
    )
    .execute(executor)
    .await
    .map(drop)
    .map_err(StatementError::to("remove the schedules of a campaign"))
}
