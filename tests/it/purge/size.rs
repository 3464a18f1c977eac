//! A large cleanup, and what it costs those beside it. In the normal run, a small one.

use std::{
    sync::atomic::{AtomicBool, Ordering::SeqCst},
    time::{Duration, Instant},
};

use chrono::TimeDelta;
use dalsegno::domain::tasks;
use sqlx::PgPool;

use super::{at_later, fill, later, purge, walk};
use crate::{
    app::noon,
    conversations::world::World,
    queue_sql::statements::{claim, register, set_like_a_worker},
};

const N_SESSIONS: i32 = if cfg!(feature = "chaos") { 100_000 } else { 2_000 };
/// Beside them, messages of sessions that stay.
const N_STAYING: i32 = if cfg!(feature = "chaos") { 50_000 } else { 1_000 };
/// Made before it, for comparison.
const N_CLAIMS: usize = if cfg!(feature = "chaos") { 2_000 } else { 100 };

/// Prints the figures; the bars are asserted in the long form, on a machine that has nothing else to do.
#[tokio::test]
async fn a_large_cleanup_goes_through_beside_turns() {
    let world = World::new().await;
    let (pool, campaign) = (&world.pool, world.campaign.id);
    let filling = Instant::now();
    for part in 0..10 {
        fill(pool, campaign, &format!("old{part}"), "sim", N_SESSIONS / 10, 20, noon()).await;
    }
    fill(pool, campaign, "young", "sim", N_STAYING, 20, later() + TimeDelta::days(9)).await;
    sqlx::query("analyze").execute(pool).await.unwrap();
    println!("filled in {:?}", filling.elapsed());
    let turns = async {
        let mut slowest = Duration::ZERO;
        for n in 0..200 {
            let instance = format!("t{n}");
            let new = tasks::New { instance: &instance, ..world.ask("Part.") };
            let task = world.add_new(&new).await.unwrap().task;
            let begun = Instant::now();
            let (_, turn) = world.begin(&task, world.lease(), at_later()).await;
            world.commit(&turn, "Done.", at_later()).await.unwrap();
            slowest = slowest.max(begun.elapsed());
        }
        slowest
    };
    let before_kb = status_kb("VmRSS");
    let alone = claims(pool, |n| n == N_CLAIMS).await;
    let is_over = AtomicBool::new(false);
    let purged = async {
        let begun = Instant::now();
        let done = purge(pool, walk(), 200).await;
        is_over.store(true, SeqCst);
        (done, begun.elapsed())
    };
    let claimed = claims(pool, |_| is_over.load(SeqCst));
    let (slowest, (done, took), beside) = tokio::join!(turns, purged, claimed);
    assert_eq!((done.sessions, done.messages), (N_SESSIONS.into(), i64::from(N_SESSIONS) * 20));
    println!("{before_kb} kB resident before, {} kB at most until now", status_kb("VmHWM"));
    println!(
        "{} sessions, {} messages in {took:?}; the slowest turn beside it took {slowest:?}",
        done.sessions, done.messages
    );
    println!(
        "claims: p99 {:?} of {} without it, {:?} of {} beside it",
        p99(&alone),
        alone.len(),
        p99(&beside),
        beside.len()
    );
    if cfg!(feature = "chaos") {
        assert!(took < Duration::from_secs(60), "took {took:?}");
        assert!(p99(&beside) <= p99(&alone) * 2);
    }
}

/// Adds a job and claims it, again and again: how long each claim took, from the fastest to the slowest.
async fn claims(pool: &PgPool, is_enough: impl Fn(usize) -> bool) -> Vec<Duration> {
    let mut conn = pool.acquire().await.unwrap();
    set_like_a_worker(&mut conn).await;
    let worker = register(&mut conn, &["claimed"]).await;
    let mut took = Vec::new();
    while !is_enough(took.len()) {
        let enqueue = "select job_id from dalsegno.enqueue(kind => 'claimed', payload => '{}')";
        sqlx::query(enqueue).execute(&mut *conn).await.unwrap();
        let begun = Instant::now();
        assert_eq!(claim(&mut conn, worker, &["claimed"]).await.len(), 1);
        took.push(begun.elapsed());
    }
    took.sort_unstable();
    took
}

fn p99(sorted: &[Duration]) -> Duration {
    sorted[(sorted.len() - 1) * 99 / 100]
}

/// What the kernel counts of this process.
fn status_kb(key: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(key)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
