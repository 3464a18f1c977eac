//! Many conversations at once.

use serde_json::{Value, json};

use crate::{bare, ground::Ground};

const N_SESSIONS: usize = 64;
const N_WARM_UP: usize = 10;
const N_MEASURED: usize = 40;

/// Sessions of 10 to 50 turns: first with a campaign for each four of them, then all in one campaign, where every end of a
/// turn changes the same row of the budget.
pub async fn rate(ground: &Ground) -> anyhow::Result<Value> {
    let spread = rate_in(ground, N_SESSIONS / 4).await?;
    let in_one = rate_in(ground, 1).await?;
    let conversations = ground.conversations(N_SESSIONS, N_SESSIONS / 4).await?;
    ground.run(&conversations, N_WARM_UP).await?;
    let bare = bare::rate(ground, &conversations, N_MEASURED).await?;
    let ratio = spread["turns_per_s"]
        .as_f64()
        .zip(bare["turns_per_s"].as_f64())
        .map(|(ours, bare)| ours / bare);
    Ok(json!({
        "scenario": "many_sessions", "sessions": N_SESSIONS, "turns": N_SESSIONS * N_MEASURED,
        "slots": ground.config.worker.turns_slots, "connections": ground.config.database.max_connections,
        "text_bytes_per_turn": ground.text_bytes_per_turn().await?.round(),
        "in_16_campaigns": spread, "in_one_campaign": in_one,
        "bare_in_16_campaigns": bare, "ratio": ratio,
    }))
}

async fn rate_in(ground: &Ground, n_campaigns: usize) -> anyhow::Result<Value> {
    let conversations = ground.conversations(N_SESSIONS, n_campaigns).await?;
    ground.run(&conversations, N_WARM_UP).await?;
    let ran = ground.measure(&conversations, N_MEASURED).await?;
    let n_turns = (N_SESSIONS * N_MEASURED) as f64;
    Ok(json!({
        "turns_per_s": (n_turns / ran.took.as_secs_f64()).round(),
        "claims": ran.n_claims,
        "worker_cpu_us_per_turn": (ran.worker_micros as f64 / n_turns).round(),
        "server_cpu_us_per_turn": ran.server_micros.map(|micros| (micros as f64 / n_turns).round()),
    }))
}
