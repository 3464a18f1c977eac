//! The cleanup job: its record, its end, and interruptions.

use std::sync::Arc;

use chrono::TimeDelta;
use dalsegno::{
    clock::ManualClock,
    config::Config,
    domain::{
        audit::{self, Action, Actor},
        campaigns,
        cleanups::{self, CleanupRun},
        installation,
        transaction::{begin, commit},
    },
    jobs::{Pool, Services},
    settings::{Environment, Flags},
    shutdown::Shutdown,
    traces::Traces,
    worker,
};
use sqlx::PgPool;
use tokio::task::JoinHandle;

use super::{after_expiry, fill, rows};
use crate::{
    app::{SOON, eventually, noon},
    conversations::world::World,
};

pub struct Worker {
    shutdown: Shutdown,
    work: JoinHandle<Result<(), worker::Error>>,
}

impl Worker {
    pub fn start(pool: &PgPool, pause_ms: u32) -> Self {
        Self::with(pool, pause_ms, &[])
    }

    /// Starts a worker with more settings.
    pub fn with(pool: &PgPool, pause_ms: u32, more: &[(&str, &str)]) -> Self {
        let more = more.iter().map(|(key, value)| (*key, (*value).to_owned()));
        let set = [
            ("queue.poll_busy_ms", "50".to_owned()),
            ("queue.poll_idle_ms", "100".to_owned()),
            ("scheduler.enabled", "false".to_owned()),
            ("shutdown.drain_timeout_secs", "0".to_owned()),
            ("sessions.cleanup_batch_sessions", "5".to_owned()),
            ("sessions.keep_campaign_versions_days", "30".to_owned()),
            ("sessions.cleanup_pause_ms", pause_ms.to_string()),
        ];
        let set = set.into_iter().chain(more);
        let set = set.map(|(key, value)| (key.to_owned(), value)).collect();
        let config = Config::load(&Environment::default(), &Flags { file: None, set }).unwrap();
        let clock = Arc::new(ManualClock::at(after_expiry()));
        let program = env!("CARGO_BIN_EXE_dalsegno").into();
        let services = Services::build(&config, clock, program, Traces::default()).unwrap();
        let (shutdown, pool) = (Shutdown::new(), pool.clone());
        let stop = shutdown.clone();
        let work = tokio::spawn(async move {
            worker::run_pool(&config, services, &pool.into(), stop, Pool::Upkeep).await
        });
        Self { shutdown, work }
    }

    pub async fn stop(self) {
        self.shutdown.soft.cancel();
        tokio::time::timeout(SOON, self.work).await.unwrap().unwrap().unwrap();
    }
}

async fn runs(pool: &PgPool) -> Vec<CleanupRun> {
    cleanups::list(pool, None, 50).await.unwrap()
}

pub async fn wait_for_runs(pool: &PgPool, n_runs: usize) -> Vec<CleanupRun> {
    eventually("the cleanups have ended", async || {
        let runs = runs(pool).await;
        (runs.iter().filter(|run| run.ended_at.is_some()).count() == n_runs).then_some(runs)
    })
    .await
}

async fn running_cleanup(pool: &PgPool) -> CleanupRun {
    eventually("the cleanup has removed something", async || {
        runs(pool).await.into_iter().next().filter(|run| run.sessions > 0)
    })
    .await
}

#[tokio::test]
async fn a_run_is_recorded_and_a_concurrent_second_one_finds_nothing() {
    let world = World::new().await;
    fill(&world.pool, world.campaign.id, "old", "sim", 23, 4, noon()).await;
    for _ in 0..2 {
        cleanups::request(&world.pool, "cli:ann@vm").await.unwrap();
    }
    let worker = Worker::start(&world.pool, 0);
    let runs = wait_for_runs(&world.pool, 2).await;
    worker.stop().await;
    let [second, first] = [&runs[0], &runs[1]];
    assert_eq!((first.sessions, first.messages, first.bytes), (23, 92, 92 * 300));
    assert_eq!((second.sessions, second.outcome.as_deref()), (0, Some("done")));
    let removed = serde_json::json!([{ "provider": "sim", "because": "expired", "sessions": 23 }]);
    assert_eq!((&first.removed, first.outcome.as_deref()), (&removed, Some("done")));
    assert_eq!(cleanups::last_success(&world.pool).await.unwrap(), Some(after_expiry()));
    assert_eq!(rows(&world.pool).await["messages"], 0);
}

#[tokio::test]
async fn a_stopping_worker_gives_the_run_back_and_the_next_continues_it() {
    let world = World::new().await;
    fill(&world.pool, world.campaign.id, "old", "sim", 60, 4, noon()).await;
    let job = cleanups::request(&world.pool, "cli:ann@vm").await.unwrap();
    let worker = Worker::start(&world.pool, 60_000);
    let halfway = running_cleanup(&world.pool).await;
    worker.stop().await;
    assert_eq!((halfway.sessions, halfway.ended_at), (5, None));
    let sql = "select attempt from dalsegno.jobs where id = $1 and state <> 'running'";
    let attempt: i16 =
        sqlx::query_scalar(sql).bind(job.job_id).fetch_one(&world.pool).await.unwrap();
    assert_eq!(attempt, 0);
    let worker = Worker::start(&world.pool, 0);
    let runs = wait_for_runs(&world.pool, 1).await;
    worker.stop().await;
    assert_eq!((runs.len(), runs[0].sessions, runs[0].messages), (1, 60, 240));
}

#[tokio::test]
async fn a_cancelled_run_stops_between_two_batches() {
    let world = World::new().await;
    fill(&world.pool, world.campaign.id, "old", "sim", 60, 4, noon()).await;
    let job = cleanups::request(&world.pool, "cli:ann@vm").await.unwrap();
    let worker = Worker::start(&world.pool, 60_000);
    running_cleanup(&world.pool).await;
    let cancel = "select dalsegno.cancel($1, 'not now')";
    sqlx::query(cancel).bind(job.job_id).execute(&world.pool).await.unwrap();
    let runs = tokio::time::timeout(SOON, wait_for_runs(&world.pool, 1)).await.unwrap();
    worker.stop().await;
    assert_eq!((runs[0].sessions, runs[0].outcome.as_deref()), (5, Some("cancelled")));
    assert_eq!(rows(&world.pool).await["sessions"], 55);
}

/// A run that was declared lost continues in the middle of a batch.
#[tokio::test]
async fn a_run_without_its_lease_cannot_continue() {
    let world = World::new().await;
    let mut conn = world.pool.acquire().await.unwrap();
    let old = cleanups::begin(&mut conn, 7, 1, None, noon()).await.unwrap().unwrap();
    let new = cleanups::begin(&mut conn, 7, 2, None, noon()).await.unwrap().unwrap();
    assert!(!cleanups::advance(&mut *conn, &old).await.unwrap());
    assert!(cleanups::begin(&mut conn, 7, 1, None, noon()).await.unwrap().is_none());
    assert!(cleanups::advance(&mut *conn, &new).await.unwrap());
    assert!(!cleanups::finish(&mut *conn, &old, noon()).await.unwrap());
    assert!(cleanups::finish(&mut *conn, &new, noon()).await.unwrap());
    // The next run closes one whose job has died.
    cleanups::begin(&mut conn, 8, 3, None, noon()).await.unwrap().unwrap();
    cleanups::begin(&mut conn, 9, 4, None, noon()).await.unwrap().unwrap();
    let outcomes: Vec<_> = runs(&world.pool).await.into_iter().map(|run| run.outcome).collect();
    let outcomes: Vec<_> = outcomes.iter().map(Option::as_deref).collect();
    assert_eq!(outcomes, [None, Some("failed"), Some("done")]);
}

#[tokio::test]
async fn the_cleanup_stores_the_sizes_of_tables_by_day_and_removes_old_ones() {
    let world = World::new().await;
    let today = after_expiry().date_naive();
    let mut conn = world.pool.acquire().await.unwrap();
    for days in [401, 40, 1] {
        let day = today - chrono::Days::new(days);
        installation::record_sizes(&mut conn, day).await.unwrap();
    }
    cleanups::request(&world.pool, "cli:ann@vm").await.unwrap();
    let worker = Worker::start(&world.pool, 0);
    wait_for_runs(&world.pool, 1).await;
    worker.stop().await;
    let days = "select (current.day - s.day)::integer from dalsegno.table_sizes as s, (select $1::date as day) as current
                 where s.table_name = 'messages' order by 1";
    let days: Vec<i32> = sqlx::query_scalar(days).bind(today).fetch_all(&world.pool).await.unwrap();
    assert_eq!(days, [0, 1, 40]);
    // The last month is shown.
    let report = installation::report(&mut conn, today).await.unwrap();
    let messages = report.tables.iter().find(|table| table.table == "messages").unwrap();
    let shown: Vec<_> = messages.days.iter().map(|size| size.day).collect();
    assert_eq!(shown, [today - chrono::Days::new(1), today]);
    assert!(messages.days.iter().all(|size| size.bytes > 0), "{messages:?}");
}

#[tokio::test]
async fn the_cleanup_removes_old_audit_lines() {
    let world = World::new().await;
    let old = Actor::cli("ann", "host");
    for (subject, days) in [("old", 366), ("new", 300)] {
        let at = after_expiry() - TimeDelta::days(days);
        audit::write(&world.pool, &old, Action::LaneHold, subject, serde_json::json!({}), at)
            .await
            .unwrap();
    }
    let worker = Worker::start(&world.pool, 0);
    cleanups::request(&world.pool, "cli:ann@vm").await.unwrap();
    wait_for_runs(&world.pool, 1).await;
    worker.stop().await;
    let filter = audit::Filter { limit: 10, ..Default::default() };
    let mut conn = world.pool.acquire().await.unwrap();
    let kept = audit::search(&mut conn, filter).await.unwrap().entries;
    let kept: Vec<_> = kept.iter().map(|line| line.subject.as_str()).collect();
    assert_eq!(kept, ["new"]);
}

#[tokio::test]
async fn the_cleanup_removes_versions_of_campaigns_that_were_replaced_long_ago() {
    let world = World::new().await;
    let id = world.campaign.id;
    for (brief, days) in [("Nine.", 40), ("Eight.", 20)] {
        let mut tx = begin(&world.pool).await.unwrap();
        let edit = campaigns::Edit { brief: Some(brief), ..campaigns::Edit::default() };
        let at = after_expiry() - TimeDelta::days(days);
        campaigns::edit(&mut tx, id, &edit, "cli:ann@host", at).await.unwrap();
        commit(tx).await.unwrap();
    }
    let worker = Worker::start(&world.pool, 0);
    cleanups::request(&world.pool, "cli:ann@vm").await.unwrap();
    wait_for_runs(&world.pool, 1).await;
    worker.stop().await;
    let kept = campaigns::list_versions(&world.pool, id, None, 10).await.unwrap();
    let kept: Vec<_> = kept.iter().map(|row| row.version).collect();
    assert_eq!(kept, [3, 2], "the second version was replaced 20 days ago");
}

/// One more than one batch removes of the keys of operations, and of the lines of the audit log.
#[tokio::test]
async fn a_run_pauses_between_batches_of_idempotency_keys_and_audit_lines() {
    let keys = "insert into dalsegno.operation_keys (caller, operation, key, input_sha256, created_at)
                select 'ann', 'hold_lane', n::text, sha256(''), $1 from generate_series(1, 2001) as n";
    let lines = "insert into dalsegno.audit (at, actor_kind, actor, action, subject_kind, subject)
                 select $1, 'cli', 'ann', 'lane.hold', 'lane', n::text from generate_series(1, 5001) as n";
    for (insert, count) in [
        (keys, "select count(*) from dalsegno.operation_keys"),
        (lines, "select count(*) from dalsegno.audit"),
    ] {
        let world = World::new().await;
        let old = after_expiry() - TimeDelta::days(3660);
        sqlx::query(insert).bind(old).execute(&world.pool).await.unwrap();
        let left =
            async || sqlx::query_scalar::<_, i64>(count).fetch_one(&world.pool).await.unwrap();
        let worker = Worker::start(&world.pool, 3_600_000);
        cleanups::request(&world.pool, "cli:ann@vm").await.unwrap();
        eventually("a batch is removed", async || (left().await < 2001).then_some(())).await;
        worker.stop().await;
        assert_eq!((left().await, runs(&world.pool).await[0].ended_at), (1, None), "{count}");
        let worker = Worker::start(&world.pool, 0);
        wait_for_runs(&world.pool, 1).await;
        worker.stop().await;
        assert_eq!(left().await, 0, "{count}");
    }
}
