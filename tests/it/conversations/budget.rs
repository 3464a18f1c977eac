//! Budgets with many concurrent turns.

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use dalsegno::domain::{
    Amount,
    amount::{Limit, Unit},
    budgets::{self, Payers, ReserveError},
    campaigns,
};
use futures_util::future::join_all;
use sqlx::PgExecutor;
use tokio::task::JoinSet;
use uuid::Uuid;

use super::{TurnSettings, World, world::SPENDER};
use crate::app::{eventually, noon};

const LIMIT: i64 = 1_000;
const NEEDED: i64 = 100;
const COST: i64 = 60;

fn tokens(tokens: i64) -> Amount {
    Amount { micros: 0, tokens }
}

/// Settles a reservation of the campaign.
async fn settle(executor: impl PgExecutor<'_>, id: Uuid, reserved: Amount, spent: Amount) {
    let amounts = (reserved, spent);
    budgets::settle(executor, Payers::campaign(id), SPENDER, amounts, noon()).await.unwrap();
}

/// A hundred turns at the limit: spent and reserved amounts never exceed it, and no budget is left that a waiting turn
/// could use.
#[tokio::test]
async fn a_hundred_turns_at_the_limit_never_exceed_it() {
    let world = Arc::new(World::with_limit(Limit { micros: None, tokens: Some(LIMIT) }).await);
    let most = Arc::new(AtomicI64::new(0));
    let mut turns = JoinSet::new();
    for _ in 0..100 {
        turns.spawn(turn(Arc::clone(&world), Arc::clone(&most)));
    }
    let ran = turns.join_all().await.into_iter().filter(|ran| *ran).count() as i64;
    let budget = campaigns::budget(&world.pool, world.campaign.id).await.unwrap().unwrap();
    assert_eq!(budget.reserved, Amount::ZERO);
    assert_eq!(budget.spent.tokens, ran * COST);
    assert!(most.load(Ordering::Relaxed) <= LIMIT, "{most:?}");
    // 16 turns cost 960; the last that fits begins at 900 or less.
    assert_eq!(ran, (LIMIT - NEEDED) / COST + 1);
}

/// Runs a turn. Returns false if the budget was used up.
async fn turn(world: Arc<World>, most: Arc<AtomicI64>) -> bool {
    let id = world.campaign.id;
    loop {
        let mut tx = world.pool.begin().await.unwrap();
        match budgets::reserve(&mut tx, Payers::campaign(id), tokens(NEEDED), noon()).await {
            Ok(()) => {
                tx.commit().await.unwrap();
                break;
            }
            Err(ReserveError::Refused(refusal)) => {
                assert_eq!(refusal.unit, Unit::Tokens);
                if !refusal.may_pass_later() {
                    return false;
                }
            }
            Err(error) => panic!("{error}"),
        }
        drop(tx);
        tokio::task::yield_now().await;
    }
    let budget = campaigns::budget(&world.pool, id).await.unwrap().unwrap();
    most.fetch_max(budget.spent.tokens + budget.reserved.tokens, Ordering::Relaxed);
    settle(&world.pool, id, tokens(NEEDED), tokens(COST)).await;
    true
}

#[tokio::test]
async fn a_refused_turn_leaves_nothing_behind() {
    let world = World::with_limit(Limit { micros: Some(100), tokens: None }).await;
    let task = world.add("Part one.").await;
    let needed = Amount { micros: 101, tokens: 0 };
    let error =
        world.try_begin(&task, world.lease(), TurnSettings::default(), needed).await.unwrap_err();
    assert!(error.to_string().contains("the budget of the campaign"), "{error}");
    assert!(world.sessions().await.is_empty());
    assert_eq!(world.task(task.id).await.started_at, None);
    // The limit is raised.
    let mut conn = world.pool.acquire().await.unwrap();
    let change = campaigns::LimitChange { micros: Some(Some(200)), ..Default::default() };
    let budget = campaigns::change_limit(&mut conn, world.campaign.id, change).await.unwrap();
    assert_eq!(budget.limit, Limit { micros: Some(200), tokens: None });
    drop(conn);
    world.try_begin(&task, world.lease(), TurnSettings::default(), needed).await.unwrap();
}

#[tokio::test]
async fn a_call_that_costs_more_than_its_reservation_is_charged_in_full() {
    let world = World::with_limit(Limit { micros: None, tokens: Some(100) }).await;
    let id = world.campaign.id;
    let mut conn = world.pool.acquire().await.unwrap();
    let campaign = Payers::campaign(id);
    budgets::reserve(&mut conn, campaign, tokens(100), noon()).await.unwrap();
    settle(&mut *conn, id, tokens(100), tokens(130)).await;
    let refused = budgets::reserve(&mut conn, campaign, tokens(1), noon()).await.unwrap_err();
    assert!(refused.to_string().contains("130 tokens of 100 tokens are spent"), "{refused}");
}

/// Sixty turns share a budget for ten at once, and each waits until it is woken. Each wake-up comes from the end of another turn: nothing
/// looks at the waits beside it.
#[tokio::test]
async fn no_turn_misses_the_space_that_another_one_releases() {
    let limit = Limit { micros: None, tokens: Some(LIMIT) };
    let world = Arc::new(World::with_limit(limit).await);
    let most = Arc::new(AtomicI64::new(0));
    let mut turns = Vec::new();
    for n in 0..60 {
        let instance = format!("copy_{n}");
        let new = dalsegno::domain::tasks::New { instance: &instance, ..world.ask("Part one.") };
        let task = world.add_new(&new).await.unwrap().task;
        turns.push(waiting_turn(Arc::clone(&world), task, Arc::clone(&most)));
    }
    let n_waits: usize = join_all(turns).await.into_iter().sum();
    assert!(n_waits >= 10, "{n_waits}");
    assert!(most.load(Ordering::Relaxed) <= LIMIT, "{most:?}");
    let budget = campaigns::budget(&world.pool, world.campaign.id).await.unwrap().unwrap();
    assert_eq!((budget.spent.tokens, budget.reserved), (60, Amount::ZERO));
    let waits: i64 = sqlx::query_scalar("select count(*) from dalsegno.budget_waits")
        .fetch_one(&world.pool)
        .await
        .unwrap();
    assert_eq!(waits, 0);
}

/// Runs a turn that costs one token. Returns how often it has waited.
async fn waiting_turn(
    world: Arc<World>,
    task: dalsegno::domain::tasks::Task,
    most: Arc<AtomicI64>,
) -> usize {
    let (id, campaign) = (world.campaign.id, Payers::campaign(world.campaign.id));
    let mut n_waits = 0;
    loop {
        let mut tx = world.pool.begin().await.unwrap();
        let refused = match budgets::reserve(&mut tx, campaign, tokens(NEEDED), noon()).await {
            Ok(()) => {
                tx.commit().await.unwrap();
                break;
            }
            Err(ReserveError::Refused(refusal)) => refusal,
            Err(error) => panic!("{error}"),
        };
        tx.rollback().await.unwrap();
        let mut tx = world.pool.begin().await.unwrap();
        if budgets::wait(&mut tx, (task.id, task.job_id), &refused, noon()).await.unwrap() {
            let put_off = "update dalsegno.jobs set state = 'scheduled', wait_reason = 'snooze', run_at = dalsegno.never() where id = $1";
            sqlx::query(put_off).bind(task.job_id).execute(&mut *tx).await.unwrap();
            tx.commit().await.unwrap();
            n_waits += 1;
            let ready = "select state = 'ready' from dalsegno.jobs where id = $1";
            eventually("the job is woken", async || {
                let ready = sqlx::query_scalar::<_, bool>(ready).bind(task.job_id);
                ready.fetch_one(&world.pool).await.unwrap().then_some(())
            })
            .await;
        }
    }
    let budget = campaigns::budget(&world.pool, id).await.unwrap().unwrap();
    most.fetch_max(budget.spent.tokens + budget.reserved.tokens, Ordering::Relaxed);
    settle(&world.pool, id, tokens(NEEDED), tokens(1)).await;
    n_waits
}

/// A raise wakes as many tasks as it pays for, in the order in which they were added, and each once.
#[tokio::test]
async fn a_raised_limit_wakes_the_tasks_that_fit_in_order_and_each_once() {
    let limit = Limit { micros: None, tokens: Some(LIMIT) };
    let world = World::with_limit(limit).await;
    let id = world.campaign.id;
    settle(&world.pool, id, Amount::ZERO, tokens(LIMIT)).await;
    let mut jobs = Vec::new();
    for n in 0..5 {
        let instance = format!("copy_{n}");
        let new = dalsegno::domain::tasks::New { instance: &instance, ..world.ask("Part one.") };
        let task = world.add_new(&new).await.unwrap().task;
        let mut tx = world.pool.begin().await.unwrap();
        let mut probe = world.pool.acquire().await.unwrap();
        let refused =
            budgets::reserve(&mut probe, Payers::campaign(id), tokens(NEEDED), noon()).await;
        let Err(ReserveError::Refused(refused)) = refused else { panic!("{refused:?}") };
        assert!(refused.waits(), "{refused}");
        assert!(budgets::wait(&mut tx, (task.id, task.job_id), &refused, noon()).await.unwrap());
        let put_off = "update dalsegno.jobs set state = 'scheduled', wait_reason = 'snooze', run_at = dalsegno.never() where id = $1";
        sqlx::query(put_off).bind(task.job_id).execute(&mut *tx).await.unwrap();
        tx.commit().await.unwrap();
        jobs.push(task.job_id);
    }
    let ready = async || -> Vec<i64> {
        let ready = "select id from dalsegno.jobs where state = 'ready' order by id";
        sqlx::query_scalar(ready).fetch_all(&world.pool).await.unwrap()
    };
    let raise = async |by: i64| {
        let mut conn = world.pool.acquire().await.unwrap();
        let change =
            campaigns::LimitChange { tokens: Some(Some(LIMIT + by)), ..Default::default() };
        campaigns::change_limit(&mut conn, id, change).await.unwrap();
    };
    assert!(ready().await.is_empty());
    raise(NEEDED - 1).await;
    assert!(ready().await.is_empty());
    raise(2 * NEEDED + 1).await;
    assert_eq!(ready().await, jobs[..2]);
    // The two have not reserved yet, so this pays for two again, and not for those that are awake.
    raise(2 * NEEDED + 1).await;
    assert_eq!(ready().await, jobs[..4]);
    raise(100 * NEEDED).await;
    assert_eq!(ready().await, jobs);
    let woken =
        "select coalesce(sum(n), 0)::bigint from dalsegno.transition_deltas where event = 'due'";
    let woken: i64 = sqlx::query_scalar(woken).fetch_one(&world.pool).await.unwrap();
    assert_eq!(woken, 5);
}
