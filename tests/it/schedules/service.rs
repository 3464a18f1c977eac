//! The scheduler of a running process.

use std::sync::Arc;

use chrono::TimeDelta;
use dalsegno::{
    clock::{Clock, ManualClock},
    config::Config,
    domain::amount::Limit,
    queue::Notices,
    scheduler,
    settings::{Environment, Flags},
};
use sqlx::PgPool;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::{n_jobs, put, slots};
use crate::{
    app::{SOON, TestDatabase, eventually, noon},
    conversations::world::{TurnSettings, World},
};

/// Starts a scheduler that checks every second and receives no notifications.
fn start(pool: &PgPool, clock: &ManualClock, stop: &CancellationToken) -> JoinHandle<()> {
    start_with(pool, Arc::new(clock.clone()), 1, Arc::default(), stop)
}

pub fn start_with(
    pool: &PgPool,
    clock: Arc<dyn Clock>,
    look_secs: u32,
    notices: Arc<Notices>,
    stop: &CancellationToken,
) -> JoinHandle<()> {
    let look_secs = look_secs.to_string();
    start_with_settings(pool, clock, &[("scheduler.look_secs", &look_secs)], notices, stop)
}

fn start_with_settings(
    pool: &PgPool,
    clock: Arc<dyn Clock>,
    set: &[(&str, &str)],
    notices: Arc<Notices>,
    stop: &CancellationToken,
) -> JoinHandle<()> {
    let set = set.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let config = Config::load(&Environment::default(), &Flags { file: None, set }).unwrap();
    let (pool, stop) = (pool.clone(), stop.clone());
    tokio::spawn(async move {
        scheduler::run(&config.scheduler, &pool, &*clock, &notices, &stop).await;
    })
}

#[tokio::test]
async fn the_scheduler_keeps_waking_up_and_stops_on_request() {
    let database = TestDatabase::migrated().await;
    let (pool, clock) = (database.pool().await, ManualClock::at(noon()));
    let stop = CancellationToken::new();
    put(&pool, "hourly", "0 0 * * * *", "UTC", noon()).await;
    let running = [start(&pool, &clock, &stop), start(&pool, &clock, &stop)];
    for n_hours in 1..=3 {
        clock.advance(TimeDelta::hours(1));
        eventually("the hourly job exists", async || {
            (slots(&pool, "hourly").await.len() == n_hours).then_some(())
        })
        .await;
    }
    stop.cancel();
    for running in running {
        tokio::time::timeout(SOON, running).await.unwrap().unwrap();
    }
    assert_eq!(n_jobs(&pool, "ping").await, 3);
}

#[tokio::test]
async fn the_built_in_schedule_exists_and_fires_at_night() {
    let database = TestDatabase::migrated().await;
    let (pool, clock) = (database.pool().await, ManualClock::at(noon()));
    let stop = CancellationToken::new();
    let running = start(&pool, &clock, &stop);
    eventually("the schedule is stored", async || {
        let sql =
            "select cron from dalsegno.schedules where name = 'cleanup' and source = 'built_in'";
        sqlx::query_scalar::<_, String>(sql).fetch_optional(&pool).await.unwrap()
    })
    .await;
    clock.advance(TimeDelta::hours(15));
    eventually("the job exists", async || (n_jobs(&pool, "cleanup").await == 1).then_some(()))
        .await;
    stop.cancel();
    running.await.unwrap();
}

/// The tables are missing, as after a failed migration or on a standby; then they return.
#[tokio::test]
async fn the_scheduler_survives_missing_tables_and_lost_connections() {
    let database = TestDatabase::migrated().await;
    let (pool, clock) = (database.pool().await, ManualClock::at(noon()));
    let stop = CancellationToken::new();
    put(&pool, "hourly", "0 0 * * * *", "UTC", noon()).await;
    let away = "alter table dalsegno.schedules rename to schedules_away";
    sqlx::query(away).execute(&pool).await.unwrap();
    let running = start(&pool, &clock, &stop);
    clock.advance(TimeDelta::hours(1));
    let killed = "select count(pg_terminate_backend(pid)) from pg_stat_activity
                   where datname = current_database() and pid <> pg_backend_pid()";
    sqlx::query(killed).execute(&pool).await.unwrap();
    let back = "alter table dalsegno.schedules_away rename to schedules";
    tokio::time::timeout(SOON, async { while sqlx::query(back).execute(&pool).await.is_err() {} })
        .await
        .unwrap();
    eventually("the scheduler scans again", async || {
        (slots(&pool, "hourly").await.len() == 1).then_some(())
    })
    .await;
    stop.cancel();
    running.await.unwrap();
}

/// Each of two schedulers would remove the sums of the other one.
#[tokio::test]
async fn schedulers_with_two_time_zones_add_up_the_ledger_by_the_days_of_the_last_one() {
    let database = TestDatabase::migrated().await;
    let (pool, clock) = (database.pool().await, ManualClock::at(noon()));
    let start = |time_zone: &str, stop: &CancellationToken| {
        let set = [("scheduler.look_secs", "1"), ("scheduler.time_zone", time_zone)];
        start_with_settings(&pool, Arc::new(clock.clone()), &set, Arc::default(), stop)
    };
    let zone = async || {
        let zone = "select time_zone from dalsegno.ledger_sums";
        sqlx::query_scalar::<_, String>(zone).fetch_one(&pool).await.unwrap()
    };
    let (first_stop, second_stop) = (CancellationToken::new(), CancellationToken::new());
    let first = start("Europe/Berlin", &first_stop);
    eventually("the first scheduler adds up", async || {
        (zone().await == "Europe/Berlin").then_some(())
    })
    .await;
    let second = start("Asia/Tokyo", &second_stop);
    eventually("the second scheduler adds up", async || {
        (zone().await == "Asia/Tokyo").then_some(())
    })
    .await;
    second_stop.cancel();
    second.await.unwrap();
    let world = World::over(pool.clone(), Limit { micros: None, tokens: None }).await;
    world.turn("Part one.", TurnSettings::default()).await;
    // Only the first scheduler is left.
    eventually("the call is added up", async || {
        let calls = "select coalesce(sum(calls), 0)::bigint from dalsegno.ledger_days";
        let calls: i64 = sqlx::query_scalar(calls).fetch_one(&pool).await.unwrap();
        (calls == 1).then_some(())
    })
    .await;
    assert_eq!(zone().await, "Asia/Tokyo");
    first_stop.cancel();
    first.await.unwrap();
}
