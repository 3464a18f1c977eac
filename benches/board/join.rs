//! A task that is continued when a thousand others have ended.

use std::time::Instant;

use dalsegno::{
    clock::{Clock as _, SystemClock},
    domain::{
        Amount,
        tasks::{self, End, FanOut, FannedOut, State, Task},
    },
};
use futures_util::future::try_join_all;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{
    common::size,
    fixture::{Fixture, agent, ask},
};

fn n_children() -> usize {
    size::of(1_000, 16)
}

/// Number of tasks that end at the same time.
const AT_ONCE: usize = 8;
const BAR_MS: f64 = 1_000.0;

/// Measures from the end of the last children to the end of the turn that continues with all results.
pub async fn of_a_thousand(ground: &Fixture) -> anyhow::Result<Value> {
    let campaign_id = ground.campaign().await?;
    let worker = ground.work()?;
    let parent = ground.add(campaign_id, "Plan.").await?;
    let parent = ground.done(parent.id).await?;
    worker.stop().await?;
    let began = Instant::now();
    let made = fan_out(ground, &parent).await?;
    let added_ms = millis(began);

    // No worker takes the children: only the join is measured.
    let ids: Vec<Uuid> = made.children.iter().map(|child| child.id).collect();
    let (first, last) = ids.split_at(n_children() - AT_ONCE);
    let began = Instant::now();
    for some in first.chunks(AT_ONCE) {
        end_all(ground, some).await?;
    }
    let ends_ms = millis(began);
    sqlx::query("delete from dalsegno.jobs where kind = 'run_turn'").execute(&ground.pool).await?;
    let worker = ground.work()?;
    // One task runs first, so that the start of the worker is not measured.
    let other = ground.campaign().await?;
    ground.done(ground.add(other, "Begin.").await?.id).await?;
    let began = Instant::now();
    end_all(ground, last).await?;
    let continued = ground.done(made.continuation.id).await?;
    let joined_ms = millis(began);
    worker.stop().await?;
    let resumptions: i64 =
        sqlx::query_scalar("select count(*) from dalsegno.turns where task_id = $1")
            .bind(continued.id)
            .fetch_one(&ground.pool)
            .await?;
    anyhow::ensure!(continued.state == State::Done, "the join ended as {:?}", continued.state);
    Ok(json!({
        "scenario": "join", "children": n_children(), "added_ms": added_ms, "ends_ms": ends_ms, "joined_ms": joined_ms,
        "resumptions": resumptions, "in_the_same_session": continued.session_id == parent.session_id, "bar_ms": BAR_MS,
    }))
}

async fn fan_out(ground: &Fixture, parent: &Task) -> anyhow::Result<FannedOut> {
    let catalogue = ground.catalogue();
    let called = catalogue.agent(&agent(1))?;
    let instances: Vec<String> = (0..n_children()).map(|n| format!("copy-{n}")).collect();
    let children: Vec<tasks::New<'_>> = instances
        .iter()
        .map(|instance| tasks::New { instance, ..ask(parent.campaign_id, called, "Write.") })
        .collect();
    let what = FanOut {
        parent,
        agent: catalogue.agent(&parent.agent)?,
        children: &children,
        continuation: "Put them together.",
        idempotency_key: None,
        added_by: None,
    };
    let mut tx = ground.pool.begin().await?;
    let made = tasks::fan_out(&mut tx, &ground.config.tasks, &what, SystemClock.now()).await;
    let made = made.map_err(|error| anyhow::anyhow!("{error:?}"))?;
    tx.commit().await?;
    Ok(made)
}

async fn end_all(ground: &Fixture, ids: &[Uuid]) -> anyhow::Result<()> {
    let end = async |id: Uuid| {
        let mut tx = ground.pool.begin().await?;
        let result = End::Done { result: "It is done.", result_json: None };
        tasks::end(&mut tx, id, result, Amount::ZERO, SystemClock.now()).await?;
        tx.commit().await?;
        anyhow::Ok(())
    };
    try_join_all(ids.iter().map(|id| end(*id))).await.map(drop)
}

fn millis(began: Instant) -> f64 {
    began.elapsed().as_secs_f64() * 1e3
}
