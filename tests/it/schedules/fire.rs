//! The moments of a schedule, and the schedulers that fire them.

use chrono::{DateTime, TimeDelta, Utc};
use dalsegno::domain::schedules::{self, Timetable, fire_due};

use super::{n_jobs, put, slots};
use crate::app::{TestDatabase, noon};

fn at(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

#[tokio::test]
async fn one_of_many_schedulers_fires_a_moment() {
    let database = TestDatabase::migrated().await;
    let pool = database.pool().await;
    put(&pool, "often", "0 * * * * *", "UTC", noon() + TimeDelta::milliseconds(1)).await;
    let looks: Vec<_> = (0..16)
        .map(|look| {
            let pool = pool.clone();
            let now = noon() + TimeDelta::minutes(5) + TimeDelta::milliseconds(37 * look);
            tokio::spawn(async move { fire_due(&pool, now).await })
        })
        .collect();
    let mut n_fired = 0;
    for look in looks {
        n_fired += look.await.unwrap().unwrap().len();
    }
    assert_eq!((n_fired, n_jobs(&pool, "ping").await), (5, 5));
}

/// Two schedulers check each of more than a thousand moments around both changes of the clocks in Berlin. One of them
/// is repeatedly killed in the middle of a check, with its connection, and another replaces it.
#[tokio::test]
async fn two_schedulers_of_which_one_is_killed_fire_each_moment_once() {
    for (from, to) in [
        ("2027-03-27T22:00:00Z", "2027-03-28T05:00:00Z"),
        ("2026-10-24T22:00:00Z", "2026-10-25T05:00:00Z"),
    ] {
        let (from, to) = (at(from), at(to));
        let database = TestDatabase::migrated().await;
        let pool = database.pool().await;
        let (often, nightly) = ("*/20 * * * * *", "0 30 2 * * *");
        put(&pool, "often", often, "Europe/Berlin", from).await;
        put(&pool, "nightly", nightly, "Europe/Berlin", from).await;
        let (mut now, mut n_killed, mut round) = (from, 0, 0_u64);
        while now < to {
            round += 1;
            now = to.min(now + TimeDelta::milliseconds(97_531));
            // Their clocks always differ a little.
            let ahead = now + TimeDelta::microseconds(314_159);
            let doomed = tokio::spawn({
                let pool = pool.clone();
                async move { fire_due(&pool, ahead).await }
            });
            let steady = fire_due(&pool, now);
            if round % 3 == 0 {
                // At some point between its first statement and its commit.
                for _ in 0..round % 17 {
                    tokio::task::yield_now().await;
                }
                doomed.abort();
                n_killed += i32::from(doomed.await.is_err());
            } else {
                doomed.await.unwrap().unwrap();
            }
            steady.await.unwrap();
        }
        for (name, cron) in [("often", often), ("nightly", nightly)] {
            let timetable = Timetable::parse(cron, "Europe/Berlin").unwrap();
            assert_eq!(slots(&pool, name).await, timetable.between(from, to, 10_000), "{name}");
        }
        let n_slots = slots(&pool, "often").await.len() + slots(&pool, "nightly").await.len();
        assert_eq!(n_slots, 7 * 180 + 1);
        assert_eq!(n_jobs(&pool, "ping").await, n_slots as i64);
        assert!(n_killed > 10, "only {n_killed} schedulers were killed");
    }
}

#[tokio::test]
async fn missed_moments_are_caught_up_within_the_window_only() {
    let database = TestDatabase::migrated().await;
    let pool = database.pool().await;
    put(&pool, "hourly", "0 0 * * * *", "UTC", noon() - TimeDelta::days(9)).await;
    fire_due(&pool, noon() - TimeDelta::days(3)).await.unwrap();
    let before = slots(&pool, "hourly").await.len();
    let fired = fire_due(&pool, noon()).await.unwrap();
    assert_eq!((before, fired.len()), (24, 24));
    assert_eq!(fired[0].slot, noon() - TimeDelta::hours(23));
    assert_eq!(fire_due(&pool, noon()).await.unwrap(), []);
}

#[tokio::test]
async fn moments_during_a_pause_or_before_a_new_timetable_are_not_caught_up() {
    let database = TestDatabase::migrated().await;
    let pool = database.pool().await;
    let mut conn = pool.acquire().await.unwrap();
    put(&pool, "hourly", "0 0 * * * *", "UTC", noon()).await;
    schedules::pause(&mut conn, "hourly", "moving house", noon()).await.unwrap();
    let later = noon() + TimeDelta::hours(5);
    assert_eq!(fire_due(&pool, later).await.unwrap(), []);
    schedules::resume(&mut conn, "hourly", later).await.unwrap();
    assert_eq!(fire_due(&pool, later).await.unwrap(), []);
    put(&pool, "hourly", "0 30 * * * *", "UTC", later + TimeDelta::hours(5)).await;
    let fired = fire_due(&pool, later + TimeDelta::hours(6)).await.unwrap();
    assert_eq!(fired.len(), 1);
    assert_eq!(fired[0].slot, later + TimeDelta::minutes(5 * 60 + 30));
}

#[tokio::test]
async fn a_schedule_that_cannot_fire_blocks_no_other() {
    let database = TestDatabase::migrated().await;
    let pool = database.pool().await;
    put(&pool, "a", "0 0 * * * *", "UTC", noon()).await;
    put(&pool, "b", "0 0 * * * *", "UTC", noon()).await;
    put(&pool, "c", "0 0 * * * *", "UTC", noon()).await;
    let broken = "update dalsegno.schedules set time_zone = 'Europe/Atlantis' where name <> 'b'";
    sqlx::query(broken).execute(&pool).await.unwrap();
    let errors = fire_due(&pool, noon() + TimeDelta::hours(1)).await.unwrap_err();
    assert_eq!(errors.len(), 2, "{errors:?}");
    assert!(errors.iter().all(|error| error.to_string().contains("Atlantis")), "{errors:?}");
    assert_eq!((slots(&pool, "a").await.len(), slots(&pool, "b").await.len()), (0, 1));
}

#[tokio::test]
async fn old_moments_are_forgotten() {
    let database = TestDatabase::migrated().await;
    let pool = database.pool().await;
    put(&pool, "daily", "0 0 2 * * *", "UTC", noon()).await;
    for day in 1..=50 {
        fire_due(&pool, noon() + TimeDelta::days(day)).await.unwrap();
    }
    let slots = slots(&pool, "daily").await;
    assert_eq!((slots.len(), slots[0]), (31, at("2026-12-10T02:00:00Z")));
}
