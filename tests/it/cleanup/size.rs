//! A large cleanup, and its cost for concurrent work. The normal run has a small one.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

use chrono::TimeDelta;
use dalsegno::domain::tasks;
use sqlx::PgPool;
use tokio::task::JoinHandle;

use super::{after_expiry, config, fill, paced_cleanup, settings_after_expiry, walk};
use crate::{
    app::{eventually, noon},
    conversations::world::World,
    queue_sql::statements::{END_DONE, claim_at, register_at, set_like_a_worker},
};

const N_SESSIONS: i32 = if cfg!(feature = "chaos") { 100_000 } else { 2_000 };
/// Sessions that stay, with messages.
const N_STAYING: i32 = if cfg!(feature = "chaos") { 50_000 } else { 1_000 };
/// Claims before the cleanup, for comparison.
const N_CLAIMS: usize = if cfg!(feature = "chaos") { 2_000 } else { 100 };

/// Prints the figures. The limits are asserted in the long form only, on an idle machine.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_large_cleanup_succeeds_beside_turns() {
    let world = Arc::new(World::new().await);
    let (pool, campaign) = (&world.pool, world.campaign.id);
    let filling = Instant::now();
    for part in 0..10 {
        fill(pool, campaign, &format!("old{part}"), "sim", N_SESSIONS / 10, 20, noon()).await;
    }
    fill(pool, campaign, "young", "sim", N_STAYING, 20, after_expiry() + TimeDelta::days(9)).await;
    println!("filled in {:?}", filling.elapsed());
    // The first thousands are planned for empty tables.
    let first = ConcurrentWork::begin(&world, "first");
    first.wait_for_claims(N_CLAIMS).await;
    first.end().await;
    sqlx::query("analyze").execute(pool).await.unwrap();
    let before_kb = status_kb("VmRSS");

    let without = ConcurrentWork::begin(&world, "before");
    without.wait_for_claims(N_CLAIMS).await;
    let without = without.end().await;
    let with = ConcurrentWork::begin(&world, "during");
    let pause = Duration::from_millis(config().cleanup_pause_ms.into());
    let begun = Instant::now();
    let done = paced_cleanup(pool, walk(), config().cleanup_batch_sessions.into(), pause).await;
    let took = begun.elapsed();
    let with = with.end().await;

    assert_eq!((done.sessions, done.messages), (N_SESSIONS.into(), i64::from(N_SESSIONS) * 20));
    println!("{before_kb} kB resident before, {} kB at most until now", status_kb("VmHWM"));
    println!("{} sessions, {} messages in {took:?}", done.sessions, done.messages);
    println!("without it: {without}\nbeside it:  {with}");
    if cfg!(feature = "chaos") {
        assert!(took < Duration::from_secs(60), "took {took:?}");
        assert!(p99(&with.claims) <= p99(&without.claims) * 2);
    }
}

/// Turns and claims that run in sequence until they are stopped.
struct ConcurrentWork {
    is_over: Arc<AtomicBool>,
    n_claims: Arc<AtomicUsize>,
    turns: JoinHandle<Vec<Duration>>,
    claims: JoinHandle<Vec<Duration>>,
}

/// Durations, sorted from the shortest to the longest.
struct Durations {
    turns: Vec<Duration>,
    claims: Vec<Duration>,
}

impl ConcurrentWork {
    fn begin(world: &Arc<World>, name: &'static str) -> Self {
        let (is_over, n_claims) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default());
        let turns = tokio::spawn(turns(Arc::clone(world), name, Arc::clone(&is_over)));
        let counted = (Arc::clone(&n_claims), Arc::clone(&is_over));
        let claims = tokio::spawn(claims(world.pool.clone(), counted.0, counted.1));
        Self { is_over, n_claims, turns, claims }
    }

    async fn wait_for_claims(&self, n: usize) {
        let is_enough = async || (self.n_claims.load(SeqCst) >= n).then_some(());
        eventually("there are enough claims", is_enough).await;
    }

    async fn end(self) -> Durations {
        self.is_over.store(true, SeqCst);
        let mut took =
            Durations { turns: self.turns.await.unwrap(), claims: self.claims.await.unwrap() };
        took.turns.sort_unstable();
        took.claims.sort_unstable();
        took
    }
}

impl std::fmt::Display for Durations {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let of = |took: &[Duration]| {
            let (middle, most) = (took[took.len() / 2], took[took.len() - 1]);
            format!("{}, p50 {middle:.1?}, p99 {:.1?}, at most {most:.1?}", took.len(), p99(took))
        };
        write!(f, "claims: {}; turns: {}", of(&self.claims), of(&self.turns))
    }
}

async fn turns(world: Arc<World>, name: &str, is_over: Arc<AtomicBool>) -> Vec<Duration> {
    let mut took = Vec::new();
    while !is_over.load(SeqCst) {
        let instance = format!("{name}{}", took.len());
        let new = tasks::New { instance: &instance, ..world.ask("Part.") };
        let task = world.add_new(&new).await.unwrap().task;
        let begun = Instant::now();
        let (_, turn) = world.begin(&task, world.lease(), settings_after_expiry()).await;
        world.commit(&turn, "Done.", settings_after_expiry()).await.unwrap();
        took.push(begun.elapsed());
    }
    took
}

/// Adds, claims and ends jobs in a queue of its own, because no worker runs the jobs of the turns.
async fn claims(
    pool: PgPool,
    n_claims: Arc<AtomicUsize>,
    is_over: Arc<AtomicBool>,
) -> Vec<Duration> {
    let mut conn = pool.acquire().await.unwrap();
    set_like_a_worker(&mut conn).await;
    let worker = register_at(&mut conn, "beside", &["claimed"]).await;
    let mut took = Vec::new();
    while !is_over.load(SeqCst) {
        let enqueue = "select job_id from dalsegno.enqueue(kind => 'claimed', payload => '{}', queue => 'beside')";
        sqlx::query(enqueue).execute(&mut *conn).await.unwrap();
        let begun = Instant::now();
        let claimed = claim_at(&mut conn, "beside", worker, &["claimed"]).await;
        took.push(begun.elapsed());
        let [(job, lease)] = claimed[..] else { panic!("claimed {claimed:?}") };
        sqlx::query(END_DONE).bind([job]).bind([lease]).execute(&mut *conn).await.unwrap();
        n_claims.store(took.len(), SeqCst);
    }
    took
}

fn p99(sorted: &[Duration]) -> Duration {
    sorted[(sorted.len() - 1) * 99 / 100]
}

/// Returns a value of the kernel's status of this process.
fn status_kb(key: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(key)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
