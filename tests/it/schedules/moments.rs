//! Moments fire on time: a process waits for them, and is notified of changes. Its periodic checks are too rare here
//! for a test to see one.

use std::{sync::Arc, time::Instant};

use chrono::{DateTime, TimeDelta, Utc};
use dalsegno::{
    clock::{Clock, ManualClock, SystemClock},
    config::Config,
    domain::schedules::{self, next_moments},
    jobs::{Pool, Services},
    queue::Notices,
    settings::{Environment, Flags},
    shutdown::Shutdown,
    traces::Traces,
    worker,
};
use sqlx::{PgPool, postgres::PgListener};
use tokio_util::sync::CancellationToken;

use super::{n_jobs, put, service::start_with, slots};
use crate::app::{SOON, TestDatabase, eventually, noon};

/// The longest period that can be set.
const RARELY: u32 = 240;
/// Fires on the first of January.
const YEARLY: &str = "0 0 0 1 1 *";
const EACH_SECOND: &str = "* * * * * *";

/// A clock that shows another time than the machine's, at the same speed.
#[derive(Debug)]
struct ShiftedClock {
    began: Instant,
    at: DateTime<Utc>,
}

impl Clock for ShiftedClock {
    fn now(&self) -> DateTime<Utc> {
        self.at + TimeDelta::from_std(self.began.elapsed()).unwrap()
    }
}

impl ShiftedClock {
    fn at(text: &str) -> Arc<Self> {
        Arc::new(Self { began: Instant::now(), at: text.parse().unwrap() })
    }
}

/// Returns notices like those of a process that is notified of each change.
fn listening_notices() -> Arc<Notices> {
    let notices = Notices::default();
    notices.set_hearing(true);
    Arc::new(notices)
}

async fn wait_until_fired(pool: &PgPool, name: &str, n_moments: usize) -> Vec<DateTime<Utc>> {
    eventually("the moments have fired", async || {
        let slots = slots(pool, name).await;
        (slots.len() >= n_moments).then_some(slots)
    })
    .await
}

#[tokio::test]
async fn each_moment_fires_when_it_is_due() {
    let database = TestDatabase::migrated().await;
    let (pool, stop) = (database.pool().await, CancellationToken::new());
    put(&pool, "often", "*/4 * * * * *", "UTC", SystemClock.now()).await;
    let running = start_with(&pool, Arc::new(SystemClock), RARELY, listening_notices(), &stop);
    let slots = wait_until_fired(&pool, "often", 2).await;
    stop.cancel();
    running.await.unwrap();
    assert_eq!(slots[1] - slots[0], TimeDelta::seconds(4));
    let early = "select count(*) from dalsegno.schedule_slots where fired_at < slot";
    assert_eq!(sqlx::query_scalar::<_, i64>(early).fetch_one(&pool).await.unwrap(), 0);
}

#[tokio::test]
async fn two_waiting_processes_fire_each_moment_once() {
    let database = TestDatabase::migrated().await;
    let (pool, stop) = (database.pool().await, CancellationToken::new());
    put(&pool, "often", EACH_SECOND, "UTC", SystemClock.now()).await;
    let running = [(); 2]
        .map(|()| start_with(&pool, Arc::new(SystemClock), RARELY, listening_notices(), &stop));
    wait_until_fired(&pool, "often", 4).await;
    stop.cancel();
    for running in running {
        running.await.unwrap();
    }
    let slots = slots(&pool, "often").await;
    assert!(slots.windows(2).all(|pair| pair[1] - pair[0] == TimeDelta::seconds(1)), "{slots:?}");
    assert_eq!(n_jobs(&pool, "ping").await, slots.len() as i64);
}

/// The clocks in Berlin go from 02:00 to 03:00 on 2027-03-28 and from 03:00 to 02:00 on 2026-10-25, both at 01:00 UTC.
#[tokio::test]
async fn a_moment_shifted_by_a_clock_change_fires_when_it_is_due() {
    for (now, moment, next) in [
        ("2027-03-28T00:59:56Z", "2027-03-28T01:00:00Z", "2027-03-29T00:30:00Z"),
        ("2026-10-25T00:29:56Z", "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"),
    ] {
        let database = TestDatabase::migrated().await;
        let (pool, stop) = (database.pool().await, CancellationToken::new());
        let (clock, moment, next) = (ShiftedClock::at(now), moment.parse().unwrap(), next.parse());
        put(&pool, "nightly", "0 30 2 * * *", "Europe/Berlin", clock.at).await;
        let before = next_moments(&pool, clock.at).await.unwrap();
        assert_eq!(before.get("nightly"), Some(&moment));
        let running = start_with(&pool, clock.clone(), RARELY, listening_notices(), &stop);
        assert_eq!(wait_until_fired(&pool, "nightly", 1).await, [moment]);
        stop.cancel();
        running.await.unwrap();
        let after = next_moments(&pool, clock.now()).await.unwrap();
        assert_eq!(after.get("nightly"), Some(&next.unwrap()));
    }
}

/// Uses the listener of a worker, as a process does.
#[tokio::test]
async fn a_changed_schedule_fires_at_its_new_moment() {
    let database = TestDatabase::migrated().await;
    let pool = database.pool().await;
    put(&pool, "news", YEARLY, "UTC", SystemClock.now()).await;
    let set = vec![("scheduler.look_secs".to_owned(), RARELY.to_string())];
    let config = Config::load(&Environment::default(), &Flags { file: None, set }).unwrap();
    let program = env!("CARGO_BIN_EXE_dalsegno").into();
    let services = Services::build(&config, Arc::new(SystemClock), program, Traces::default());
    let (services, shutdown, connections) =
        (services.unwrap(), Shutdown::new(), pool.clone().into());
    let stop = shutdown.clone();
    let working = tokio::spawn(async move {
        worker::run_pool(&config, services, &connections, stop, Pool::Upkeep).await
    });
    eventually("the worker listens", async || {
        let listens = "select count(*) from pg_stat_activity where datname = current_database()
                          and application_name = 'dalsegno listener' and query like 'LISTEN%' and state = 'idle'";
        let n: i64 = sqlx::query_scalar(listens).fetch_one(&pool).await.unwrap();
        (n == 1).then_some(())
    })
    .await;
    put(&pool, "news", EACH_SECOND, "UTC", SystemClock.now()).await;
    wait_until_fired(&pool, "news", 2).await;
    shutdown.soft.cancel();
    working.await.unwrap().unwrap();
}

#[tokio::test]
async fn each_change_of_a_schedule_sends_a_notification() {
    let database = TestDatabase::migrated().await;
    let pool = database.pool().await;
    let mut conn = pool.acquire().await.unwrap();
    let mut listener = PgListener::connect_with(&pool).await.unwrap();
    listener.listen("dalsegno").await.unwrap();
    let mut heard = async || {
        // Notifications arrive in the order of the commits.
        sqlx::query("select pg_notify('dalsegno', 'end')").execute(&pool).await.unwrap();
        let mut n_heard = 0;
        loop {
            let notification = tokio::time::timeout(SOON, listener.recv()).await.unwrap().unwrap();
            match notification.payload() {
                "schedules" => n_heard += 1,
                _ => return n_heard,
            }
        }
    };
    put(&pool, "news", YEARLY, "UTC", noon()).await;
    assert_eq!(heard().await, 1, "a new schedule notifies");
    put(&pool, "news", YEARLY, "UTC", noon()).await;
    assert_eq!(heard().await, 0, "an unchanged schedule notifies");
    put(&pool, "news", EACH_SECOND, "UTC", noon()).await;
    assert_eq!(heard().await, 1, "a new timetable notifies");
    schedules::pause(&mut conn, "news", "moving house", noon()).await.unwrap();
    schedules::resume(&mut conn, "news", noon()).await.unwrap();
    assert_eq!(heard().await, 2, "a pause and its end notify");
    schedules::remove(&mut conn, "news", noon()).await.unwrap();
    assert_eq!(heard().await, 1, "a removal notifies");
}

/// A notification or a timer may be lost.
#[tokio::test]
async fn a_periodic_scan_finds_moments_without_a_notification() {
    let database = TestDatabase::migrated().await;
    let (pool, stop) = (database.pool().await, CancellationToken::new());
    let clock = ManualClock::at(noon());
    put(&pool, "first", "0 0 12 * * *", "UTC", noon() - TimeDelta::seconds(1)).await;
    let running = start_with(&pool, Arc::new(clock.clone()), 1, listening_notices(), &stop);
    wait_until_fired(&pool, "first", 1).await;
    // It has checked, and its next moment is far away.
    put(&pool, "second", "0 0 12 * * *", "UTC", noon() - TimeDelta::seconds(1)).await;
    wait_until_fired(&pool, "second", 1).await;
    stop.cancel();
    tokio::time::timeout(SOON, running).await.unwrap().unwrap();
}

#[tokio::test]
async fn the_next_moment_is_the_first_unfired_one() {
    let database = TestDatabase::migrated().await;
    let pool = database.pool().await;
    let mut conn = pool.acquire().await.unwrap();
    put(&pool, "hourly", "0 0 * * * *", "UTC", noon()).await;
    put(&pool, "paused", "0 0 * * * *", "UTC", noon()).await;
    schedules::pause(&mut conn, "paused", "moving house", noon()).await.unwrap();
    put(&pool, "never", "0 0 0 30 2 *", "UTC", noon()).await;
    let later = noon() + TimeDelta::minutes(150);
    let due = next_moments(&pool, later).await.unwrap();
    assert_eq!(due, [("hourly".to_owned(), noon() + TimeDelta::hours(1))].into());
    schedules::fire_due(&pool, later).await.unwrap();
    let next = next_moments(&pool, later).await.unwrap();
    assert_eq!(next, [("hourly".to_owned(), noon() + TimeDelta::hours(3))].into());
}

/// The tries are counted by a sequence, which a rollback does not reset.
#[tokio::test]
async fn a_failing_schedule_is_retried_with_pauses_and_blocks_no_other() {
    let database = TestDatabase::migrated().await;
    let (pool, stop) = (database.pool().await, CancellationToken::new());
    for statement in [
        "create sequence public.tries",
        "create function public.refuse() returns trigger language plpgsql as $$
           begin
             if new.schedule = 'broken' then
               perform nextval('public.tries');
               raise exception 'refused';
             end if;
             return new;
           end $$",
        "create trigger refuse before insert on dalsegno.schedule_slots
           for each row execute function public.refuse()",
    ] {
        sqlx::query(statement).execute(&pool).await.unwrap();
    }
    let clock = ShiftedClock::at("2026-12-31T23:59:58Z");
    put(&pool, "broken", YEARLY, "UTC", clock.at).await;
    put(&pool, "often", EACH_SECOND, "UTC", clock.at).await;
    let running = start_with(&pool, clock.clone(), RARELY, listening_notices(), &stop);
    let slots = wait_until_fired(&pool, "often", 6).await;
    let last = "select last_value from public.tries";
    let n_tries: i64 = sqlx::query_scalar(last).fetch_one(&pool).await.unwrap();
    stop.cancel();
    running.await.unwrap();
    // One try at each moment of the other schedule, and one after each pause.
    assert!((1..=3 * slots.len() as i64).contains(&n_tries), "{n_tries} tries");
}
