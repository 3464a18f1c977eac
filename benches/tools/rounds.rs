//! Turns on Ollama whose model calls a tool several times before it answers.

use serde_json::{Value, json};

use crate::{at, common::size, fixture::Fixture};

fn n_warm_up() -> usize {
    size::of(10, 1)
}

fn n_measured() -> usize {
    size::of(200, 3)
}

const N_ROUNDS: usize = 5;
const BAR_MS: f64 = 30.0;

/// Measures from the claim to the committed end, without the time of the model. Each turn is in a conversation of its
/// own, so that no conversation grows.
pub async fn of_ollama(ground: &Fixture) -> anyhow::Result<Vec<Value>> {
    let worker = ground.work()?;
    let (mut without, model_without) = turns(ground, 0).await?;
    let (mut with, model_with) = turns(ground, N_ROUNDS).await?;
    worker.stop().await?;
    let line = |n_rounds: usize, millis: &mut [f64], model_ms: f64| {
        json!({
            "scenario": "rounds", "rounds": n_rounds, "turns": millis.len(),
            "above_the_model_ms": { "p50": at(millis, 0.5), "p95": at(millis, 0.95), "p99": at(millis, 0.99) },
            "mean_ms_of_the_model": model_ms, "bar_ms": (n_rounds == N_ROUNDS).then_some(BAR_MS),
        })
    };
    Ok(vec![line(0, &mut without, model_without), line(N_ROUNDS, &mut with, model_with)])
}

/// Returns the times of the turns without that of the model, and the mean time of the model.
async fn turns(ground: &Fixture, n_rounds: usize) -> anyhow::Result<(Vec<f64>, f64)> {
    let campaign_id = ground.campaign().await?;
    let (mut millis, mut model_ms) = (Vec::with_capacity(n_measured()), 0.0);
    ground.model.rounds(n_rounds);
    for number in 0..n_warm_up() + n_measured() {
        ground.model.take_millis();
        let task = ground.add(campaign_id, "writer", &format!("w{n_rounds}-{number}")).await?;
        let run = ground.run_millis(&task).await?;
        let (n_calls, model) = ground.model.take_millis();
        anyhow::ensure!(n_calls == n_rounds + 1, "{n_calls} calls of the model");
        if number >= n_warm_up() {
            millis.push(run - model);
            model_ms += model / n_measured() as f64;
        }
    }
    Ok((millis, model_ms))
}
