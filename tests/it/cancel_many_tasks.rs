//! Cancellation of many tasks at once, by an erasure and by a bulk action.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

use chrono::TimeDelta;
use dalsegno::domain::{
    agents::SessionMode as Mode,
    bulk_actions::{self, Action},
    erasures::{self, OpenTasks},
    tasks::{self, CancelScope, TaskFilter},
    transaction::{begin, commit},
};
use serde_json::{Value, json};
use sqlx::PgPool;
use uuid::Uuid;

use crate::{
    app::{eventually, noon},
    conversations::world::{TurnSettings, World},
    turns::fixture::Fixture,
};

const REASON: &str = "not wanted";
const N_TASKS: i32 = if cfg!(feature = "chaos") { 20_000 } else { 2_500 };
/// Conversations of the tasks. Each has a ready head and blocked tasks.
const N_LANES: i32 = 400;
/// Lowest rate on an idle machine.
const LEAST_PER_SEC: f64 = 5_000.0;

/// Adds `n_tasks` tasks, and returns their ids.
async fn add_many(pool: &PgPool, campaign: Uuid, n_tasks: i32) -> Vec<Uuid> {
    let sql = "select a.task_id from generate_series(1, $2) as i,
                      lateral dalsegno.add_task($1, 'copywriter', 'x', 'copy_' || i % $3) as a";
    let added = sqlx::query_scalar(sql).bind(campaign).bind(n_tasks).bind(N_LANES);
    added.fetch_all(pool).await.unwrap()
}

/// Adds an enabled webhook and a disabled one.
async fn add_webhooks(pool: &PgPool) {
    let sql = "insert into dalsegno.webhooks (id, url, kinds, disabled_at, disabled_because)
               values (gen_random_uuid(), 'https://example.com/', '{task.done,task.cancelled}', null, null),
                      (gen_random_uuid(), 'https://example.org/', '{task.cancelled}', now(), 'by a test'),
                      (gen_random_uuid(), 'https://example.net/', '{task.failed}', null, null)";
    sqlx::query(sql).execute(pool).await.unwrap();
}

async fn cancel_many(pool: &PgPool, ids: &[Uuid], scope: CancelScope) -> Vec<Uuid> {
    let mut tx = begin(pool).await.unwrap();
    let mut cancelled = tasks::cancel_many(&mut tx, ids, scope, REASON, noon()).await.unwrap();
    commit(tx).await.unwrap();
    cancelled.sort_unstable();
    cancelled
}

async fn json(pool: &PgPool, sql: &'static str) -> Value {
    sqlx::query_scalar(sql).fetch_one(pool).await.unwrap()
}

async fn count(pool: &PgPool, sql: &'static str) -> i64 {
    sqlx::query_scalar(sql).fetch_one(pool).await.unwrap()
}

/// Rows that the end of a task leaves behind, without ids and times.
const REMAINING_ROWS: &str = "select jsonb_build_object(
    'tasks', (select jsonb_agg(jsonb_build_array(agent, instance, state, result, error, cancelled_because, ended_at) order by id) from dalsegno.tasks),
    'jobs', (select jsonb_agg(jsonb_build_array(kind, queue, state, group_key is null, priority, max_attempts, lane_seq) order by id) from dalsegno.jobs),
    'payloads', (select jsonb_agg(k.key order by k.key) from dalsegno.job_payloads as p, jsonb_object_keys(p.payload) as k (key)),
    'runs', (select jsonb_agg(jsonb_build_array(attempt, outcome, queue, kind, error, lane_id is null) order by job_id) from dalsegno.runs),
    'counts', (select jsonb_agg(d order by d::text) from
                 (select queue, kind, event, from_state, to_state, sum(n) from dalsegno.transition_deltas group by 1, 2, 3, 4, 5) as d),
    'deliveries', (select jsonb_agg(jsonb_build_array(d.kind, d.state, d.job_id is null, w.url, (d.body::jsonb -> 'data') - '{id,task_id,campaign_id}'::text[])
                                    order by d.task_id, w.url)
                     from dalsegno.webhook_deliveries as d join dalsegno.webhooks as w on w.id = d.webhook_id),
    'feed', (select jsonb_agg(jsonb_build_array(kind, task_id is null, session_id is null, data, created_at) order by id) from dalsegno.feed))";

#[tokio::test]
async fn cancelling_many_tasks_equals_cancelling_one_by_one() {
    let worlds = [World::new().await, World::new().await];
    for (world, at_once) in worlds.iter().zip([true, false]) {
        add_webhooks(&world.pool).await;
        let mut ids = Vec::new();
        for instance in ["main", "main", "second", "main"] {
            let new = tasks::New { instance, ..world.ask("Write.") };
            ids.push(world.add_new(&new).await.unwrap().task.id);
        }
        ids.push(world.add_later("Later.").await.id);
        // The head and the tail of a lane: the next job is promoted.
        let going = [ids[0], ids[2], ids[3], ids[4]];
        if at_once {
            assert_eq!(cancel_many(&world.pool, &going, CancelScope::Plain).await, going);
        } else {
            for id in going {
                let mut tx = begin(&world.pool).await.unwrap();
                tasks::cancel(&mut tx, id, REASON, noon()).await.unwrap();
                commit(tx).await.unwrap();
            }
        }
        assert_eq!(
            count(
                &world.pool,
                "select count(*) from dalsegno.jobs where kind = 'run_turn' and state = 'ready'"
            )
            .await,
            1
        );
        assert_eq!(count(&world.pool, "select count(*) from dalsegno.lane_sweeps").await, 0);
        assert_eq!(count(&world.pool, "select count(*) from dalsegno.webhook_deliveries").await, 8);
    }
    let [together, single] =
        [json(&worlds[0].pool, REMAINING_ROWS).await, json(&worlds[1].pool, REMAINING_ROWS).await];
    for part in ["tasks", "jobs", "payloads", "runs", "counts", "deliveries", "feed"] {
        assert!(!together[part].is_null(), "{part}");
        assert_eq!(together[part], single[part], "{part}");
    }
}

#[tokio::test]
async fn cancelling_many_tasks_waits_for_no_lock_and_leaves_linked_and_running_ones() {
    let world = World::new().await;
    let pool = &world.pool;
    let add = async |instance: &'static str| {
        let new = tasks::New { instance, ..world.ask("Write.") };
        world.add_new(&new).await.unwrap().task
    };
    let (plain, parent, held, job_held) =
        (add("plain").await, add("parent").await, add("held").await, add("job-held").await);
    let (running, lost) = (add("running").await, add("lost").await);
    let links = tasks::Links { parent_id: Some(parent.id), ..tasks::Links::default() };
    let child = tasks::New { instance: "child", links, ..world.ask("A part.") };
    let child = world.add_new(&child).await.unwrap().task;
    let run = "update dalsegno.jobs set state = 'running', lease = id, worker_id = gen_random_uuid(), claimed_at = now(), attempt = 1 where id = $1";
    sqlx::query(run).bind(running.job_id).execute(pool).await.unwrap();
    // The worker is lost in its turn.
    world.begin(&lost, world.lease(), TurnSettings::default()).await;
    let alone = world.add_mode("Alone.", Mode::None).await;
    let all = [plain.id, parent.id, held.id, job_held.id, running.id, lost.id, child.id, alone.id];

    let mut others = pool.begin().await.unwrap();
    let hold = "select id from dalsegno.tasks where id = $1 for update";
    sqlx::query(hold).bind(held.id).fetch_one(&mut *others).await.unwrap();
    let hold = "select id from dalsegno.jobs where id = $1 for update";
    sqlx::query(hold).bind(job_held.job_id).fetch_one(&mut *others).await.unwrap();
    let cancellation = cancel_many(pool, &all, CancelScope::Plain);
    let cancelled = tokio::time::timeout(crate::app::SOON, cancellation).await.unwrap();
    assert_eq!(cancelled, [plain.id, child.id, alone.id]);
    others.rollback().await.unwrap();

    // For an erasure, dependent tasks are cancelled, too.
    let cancelled = cancel_many(pool, &all, CancelScope::Erasure).await;
    assert_eq!(cancelled, [parent.id, held.id, job_held.id]);
    for id in [running.id, lost.id] {
        assert_eq!(world.task(id).await.ended_at, None);
    }
    let mut tx = begin(pool).await.unwrap();
    for id in [running.id, lost.id] {
        tasks::cancel(&mut tx, id, REASON, noon()).await.unwrap();
    }
    commit(tx).await.unwrap();
    assert_eq!(count(pool, "select count(*) from dalsegno.turns where state = 'running'").await, 0);
    assert_eq!(count(pool, "select count(*) from dalsegno.cancel_requests").await, 1);
}

/// Dependent tasks are cancelled together with the others, and none of them becomes ready meanwhile.
#[tokio::test]
async fn an_erasure_releases_no_task_that_waits_for_a_cancelled_one() {
    let world = World::new().await;
    let pool = &world.pool;
    let first = add_many(pool, world.campaign.id, 700).await;
    let wait = "select a.task_id from generate_series(1, 700) as i,
                       lateral dalsegno.add_task($1, 'planner', 'x', depends_on => $2, instance => 'p_' || i) as a";
    sqlx::query(wait).bind(world.campaign.id).bind(&first[..20]).execute(pool).await.unwrap();
    let mut tx = begin(pool).await.unwrap();
    erasures::request(&mut tx, world.campaign.id, "by request", noon()).await.unwrap();
    commit(tx).await.unwrap();
    let n_left = cancel_all(pool, world.campaign.id).await;
    assert_eq!(n_left, 0);
    assert_eq!(count(pool, "select count(*) from dalsegno.tasks where ended_at is null").await, 0);
    assert_eq!(
        count(pool, "select count(*) from dalsegno.task_waits where over_at is null").await,
        0
    );
    let let_go = "select coalesce(sum(n), 0)::bigint from dalsegno.transition_deltas where to_state = 'ready' and kind = 'run_joined_turn'";
    assert_eq!(count(pool, let_go).await, 0);
    let mut conn = pool.acquire().await.unwrap();
    let receipt = erasures::get(&mut conn, world.campaign.id).await.unwrap();
    assert_eq!((receipt.removed["cancelled_tasks"], receipt.open_tasks), (1_400, 0));
    let told = json(
        pool,
        "select jsonb_agg(data order by id) from dalsegno.feed where kind = 'campaign.erasing'",
    )
    .await;
    let step = |cancelled, open| json!({ "cancelled_tasks": cancelled, "open_tasks": open });
    assert_eq!(told, json!([step(1_000, 400), step(400, 0)]));
}

#[tokio::test]
async fn a_worker_erases_many_open_tasks_and_the_receipt_shows_its_progress() {
    let fixture = Fixture::new(&[]).await;
    add_webhooks(&fixture.pool).await;
    add_many(&fixture.pool, fixture.campaign.id, 1_300).await;
    let receipt = async || {
        let mut conn = fixture.pool.acquire().await.unwrap();
        erasures::get(&mut conn, fixture.campaign.id).await.unwrap()
    };
    let mut tx = begin(&fixture.pool).await.unwrap();
    erasures::request(&mut tx, fixture.campaign.id, "by request", noon()).await.unwrap();
    commit(tx).await.unwrap();
    let before = receipt().await;
    assert_eq!((before.step, before.open_tasks), (None, 1_300));
    let worker = fixture.upkeep().await;
    eventually("the campaign is erased", async || receipt().await.ended_at).await;
    worker.stop().await;
    let after = receipt().await;
    assert_eq!((after.step, after.open_tasks), (None, 0));
    assert_eq!((after.removed["cancelled_tasks"], after.removed["tasks"]), (1_300, 1_300));
}

/// Cancels like the job of an erasure. Returns how many tasks it cancelled one by one.
pub async fn cancel_all(pool: &PgPool, campaign: Uuid) -> usize {
    let (mut before, mut n_left) = (None, 0);
    loop {
        let mut tx = begin(pool).await.unwrap();
        let open = erasures::cancel_open(&mut tx, campaign, before, noon()).await.unwrap();
        commit(tx).await.unwrap();
        let Some(OpenTasks { last, left }) = open else { return n_left };
        n_left += left.len();
        for id in left {
            let mut tx = begin(pool).await.unwrap();
            erasures::cancel_one(&mut tx, campaign, id, noon()).await.unwrap();
            commit(tx).await.unwrap();
        }
        before = Some(last);
    }
}

/// Runs turns and sweeps lanes in the campaign that is erased, to provoke deadlocks.
async fn run_turns_and_sweeps(world: Arc<World>, is_over: Arc<AtomicBool>) -> usize {
    let mut n_turns = 0;
    while !is_over.load(SeqCst) {
        let sql = "select dalsegno.sweep_lanes(100), dalsegno.promote_due(100), dalsegno.apply_cancel_requests(100)";
        sqlx::query(sql).execute(&world.pool).await.unwrap();
        let oldest = "select id from dalsegno.tasks where ended_at is null and session_id is null order by id limit 1 offset $1";
        let task = sqlx::query_scalar(oldest).bind(i64::from(n_turns as i32 % 7));
        let Some(id) = task.fetch_optional(&world.pool).await.unwrap() else { continue };
        let task = world.task(id).await;
        let Ok((_, begun)) = world
            .try_begin(
                &task,
                world.lease(),
                TurnSettings::default(),
                dalsegno::domain::Amount::ZERO,
            )
            .await
        else {
            continue;
        };
        // The task may be cancelled by now, which the turn tolerates.
        _ = world.commit(&begun, "Done.", TurnSettings::default()).await;
        n_turns += 1;
    }
    n_turns
}

async fn deadlocks(pool: &PgPool) -> i64 {
    count(
        pool,
        "select pg_stat_get_db_deadlocks(oid) from pg_database where datname = current_database()",
    )
    .await
}

fn per_sec(n_tasks: i32, took: Duration) -> f64 {
    f64::from(n_tasks) / took.as_secs_f64()
}

/// Prints the rates. The limit is asserted in the long form only, on an idle machine.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn many_open_tasks_are_cancelled_in_few_transactions() {
    for with_webhooks in [false, true] {
        let world = Arc::new(World::new().await);
        let pool = &world.pool;
        if with_webhooks {
            add_webhooks(pool).await;
        }
        let mut rates = Vec::new();
        for with_others in [false, true] {
            add_many(pool, world.campaign.id, N_TASKS).await;
            sqlx::query("analyze").execute(pool).await.unwrap();
            let asked = "insert into dalsegno.erasures (id, campaign_id, reason, asked_at) values (gen_random_uuid(), $1, 'by request', now()) on conflict do nothing";
            sqlx::query(asked).bind(world.campaign.id).execute(pool).await.unwrap();
            let is_over = Arc::new(AtomicBool::new(!with_others));
            let others =
                tokio::spawn(run_turns_and_sweeps(Arc::clone(&world), Arc::clone(&is_over)));
            let begun = Instant::now();
            let n_left = cancel_all(pool, world.campaign.id).await;
            let took = begun.elapsed();
            is_over.store(true, SeqCst);
            let n_turns = others.await.unwrap();
            println!(
                "erasure, webhooks: {with_webhooks}, beside {n_turns} turns: {N_TASKS} tasks in {took:.2?}, {:.0} per second, {n_left} one by one",
                per_sec(N_TASKS, took)
            );
            if !with_others {
                rates.push(per_sec(N_TASKS, took));
            }
        }
        assert_eq!(deadlocks(pool).await, 0);
        let open = "select count(*) from dalsegno.tasks where ended_at is null";
        assert_eq!(count(pool, open).await, 0);
        rates.push(bulk_rate(pool, world.campaign.id, with_webhooks).await);
        if cfg!(feature = "chaos") {
            assert!(rates.iter().all(|rate| *rate >= LEAST_PER_SEC), "{rates:?}");
        }
    }
}

/// Measures the rate of a bulk action.
async fn bulk_rate(pool: &PgPool, campaign_id: Uuid, with_webhooks: bool) -> f64 {
    add_many(pool, campaign_id, N_TASKS).await;
    sqlx::query("analyze").execute(pool).await.unwrap();
    let filter = TaskFilter { campaign_id: Some(campaign_id), ..TaskFilter::default() };
    let new = bulk_actions::New {
        action: Action::Cancel,
        filter: &filter,
        reason: REASON,
        expected_count: None,
    };
    // Tasks with the database's time are younger than the test's noon.
    let now = noon() + TimeDelta::days(365 * 100);
    let mut tx = begin(pool).await.unwrap();
    let action = bulk_actions::request(&mut tx, &new, now).await.unwrap();
    commit(tx).await.unwrap();
    assert_eq!(action.matched, i64::from(N_TASKS));
    assert!(bulk_actions::start(pool, action.id, noon()).await.unwrap());
    let mut action = bulk_actions::get(pool, action.id).await.unwrap();
    let since = Instant::now();
    loop {
        let ids = bulk_actions::list_remaining_tasks(pool, &action, tasks::CANCEL_MANY_MAX)
            .await
            .unwrap();
        if ids.is_empty() {
            break;
        }
        let mut tx = begin(pool).await.unwrap();
        let left = bulk_actions::cancel_many(&mut tx, &mut action, &ids, noon()).await.unwrap();
        commit(tx).await.unwrap();
        assert_eq!((left, action.cursor), (Vec::new(), ids.last().copied()));
    }
    let took = since.elapsed();
    let rate = per_sec(N_TASKS, took);
    println!(
        "bulk action, webhooks: {with_webhooks}: {N_TASKS} tasks in {took:.2?}, {rate:.0} per second"
    );
    let action = bulk_actions::get(pool, action.id).await.unwrap();
    assert_eq!((action.done, action.skipped), (i64::from(N_TASKS), 0));
    rate
}
