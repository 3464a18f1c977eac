//! Many conversations running concurrently.

use serde_json::{Value, json};

use crate::{bare, common::size, fixture::Fixture};

fn n_sessions() -> usize {
    size::of(64, 16)
}

fn n_warm_up() -> usize {
    size::of(10, 1)
}

fn n_measured() -> usize {
    size::of(40, 2)
}

/// Times that each of two settings is measured, one after the other.
const N_ALTERNATIONS: usize = 4;

/// Measures sessions of 10 to 50 turns, first with a campaign for every four of them. Then all are in one campaign,
/// where every end of a turn changes the same row of the budget.
pub async fn rate(ground: &Fixture) -> anyhow::Result<Value> {
    let spread = rate_in(ground, n_sessions() / 4).await?;
    let in_one = rate_in(ground, 1).await?;
    let conversations = ground.conversations(n_sessions(), n_sessions() / 4).await?;
    ground.run(&conversations, n_warm_up()).await?;
    let bare = bare::rate(ground, &conversations, n_measured()).await?;
    let budgets = rate_with_budget(ground).await?;
    let ratio = spread["turns_per_s"]
        .as_f64()
        .zip(bare["turns_per_s"].as_f64())
        .map(|(ours, bare)| ours / bare);
    Ok(json!({
        "scenario": "many_sessions", "sessions": n_sessions(), "turns": n_sessions() * n_measured(),
        "slots": ground.config.worker.turns_slots, "connections": ground.config.database.max_connections,
        "text_bytes_per_turn": ground.text_bytes_per_turn().await?.round(),
        "in_16_campaigns": spread, "in_one_campaign": in_one,
        "bare_in_16_campaigns": bare, "ratio": ratio, "day_budget": budgets,
    }))
}

async fn rate_in(ground: &Fixture, n_campaigns: usize) -> anyhow::Result<Value> {
    let conversations = ground.conversations(n_sessions(), n_campaigns).await?;
    ground.run(&conversations, n_warm_up()).await?;
    let ran = ground.measure(&conversations, n_measured()).await?;
    let n_turns = (n_sessions() * n_measured()) as f64;
    Ok(json!({
        "turns_per_s": (n_turns / ran.took.as_secs_f64()).round(),
        "claims": ran.n_claims,
        "worker_cpu_us_per_turn": (ran.worker_micros as f64 / n_turns).round(),
        "server_cpu_us_per_turn": ran.server_micros.map(|micros| (micros as f64 / n_turns).round()),
    }))
}

/// Measures without budgets and with one of the day, which all turns reserve in, alternately, so that the load of the machine concerns
/// both. Each part has conversations of its own, because turns of long ones cost more. It begins with `vacuum analyze`, after which
/// connections plan their statements anew, and is long enough for them to reuse plans, as they do in a service.
async fn rate_with_budget(ground: &Fixture) -> anyhow::Result<Value> {
    let n_turns = (n_sessions() * n_measured()) as f64;
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for _ in 0..N_ALTERNATIONS {
        for (limit, rates) in [(None, &mut without), (Some(i64::MAX / 2), &mut with)] {
            ground.set_day_budget(limit).await?;
            let conversations = ground.conversations(n_sessions(), n_sessions() / 4).await?;
            ground.run(&conversations, n_warm_up()).await?;
            let ran = ground.measure(&conversations, n_measured()).await?;
            rates.push((n_turns / ran.took.as_secs_f64()).round());
        }
    }
    ground.set_day_budget(None).await?;
    let (before, after): (f64, f64) = (without.iter().sum(), with.iter().sum());
    Ok(json!({ "without_turns_per_s": without, "with_turns_per_s": with, "ratio": after / before }))
}
