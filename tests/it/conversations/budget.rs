//! Budgets with many concurrent turns.

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use dalsegno::domain::{
    Amount,
    amount::{Limit, Unit},
    campaigns::{self, ReserveError},
};
use tokio::task::JoinSet;

use super::{TurnSettings, World};

const LIMIT: i64 = 1_000;
const NEEDED: i64 = 100;
const COST: i64 = 60;

fn tokens(tokens: i64) -> Amount {
    Amount { micros: 0, tokens }
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
        match campaigns::reserve(&mut tx, id, tokens(NEEDED)).await {
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
    campaigns::settle_reservation(&world.pool, id, tokens(NEEDED), tokens(COST)).await.unwrap();
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
    campaigns::reserve(&mut conn, id, tokens(100)).await.unwrap();
    campaigns::settle_reservation(&mut *conn, id, tokens(100), tokens(130)).await.unwrap();
    let refused = campaigns::reserve(&mut conn, id, tokens(1)).await.unwrap_err();
    assert!(refused.to_string().contains("130 tokens of 100 tokens are spent"), "{refused}");
}
