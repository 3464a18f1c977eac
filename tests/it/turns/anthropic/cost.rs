//! Costs of turns with a prompt cache: in the ledger, in budgets, and in estimates.

use dalsegno::domain::{
    campaigns::LimitChange,
    estimates::{Charge, Estimate, PromptCacheState},
};

use super::{Answer, Anthropic, PART, Play, Value, fixture_with, json};
use crate::{
    estimates,
    providers::conformance::{dialects::Dialect as _, server::ScriptedServer},
};

/// Prices in millionths of the currency per million tokens: reads cost a tenth of the input, writes a quarter more.
const PRICES: (&str, &str) = (
    "prices.models",
    r#"[{ provider = "anthropic", model = "claude-of-the-test", input = 20000000, output = 100000000, cache_read = 2000000, cache_creation = 25000000 }]"#,
);

/// Returns the cost of the last of these calls, by the server's counts and the prices. `output` is the length of its answer.
fn cost(calls: &[Value], output: u64) -> i64 {
    let counts = Anthropic.count(calls);
    let [prompt, cached, written] =
        ["prompt", "cached", "written"].map(|name| counts[name].as_u64().unwrap());
    let micros = (prompt - cached - written) * 20 + cached * 2 + written * 25 + output * 100;
    i64::try_from(micros).unwrap()
}

#[tokio::test]
async fn reads_and_writes_of_the_cache_have_their_own_prices_in_ledger_and_budget() {
    let server = ScriptedServer::playing(&Anthropic, []).await;
    let fixture = fixture_with(&server, 100_000, &[PRICES]).await;
    let limit = LimitChange { micros: Some(Some(100_000_000)), ..LimitChange::default() };
    fixture.change_limit(limit).await;
    let worker = fixture.start_worker().await;
    fixture.done(&fixture.add(&PART.repeat(500)).await).await;
    fixture.done(&fixture.add("Write part two.").await).await;
    fixture.settled().await;
    let calls = server.calls();
    let costs: Vec<i64> = (1..=calls.len()).map(|n| cost(&calls[..n], 4)).collect();
    assert!(costs[1] * 4 < costs[0], "reads are cheap: {costs:?}");
    let stored = "select json_agg(cost_micros order by id) from dalsegno.usage";
    assert_eq!(fixture.json(stored).await, json!(costs));
    let spent: i64 = costs.iter().sum();
    let budget = fixture.budget().await;
    assert_eq!((budget.spent.micros, budget.reserved.micros), (spent, 0));
    // Before the call, each token of its prompt might have to be written.
    let limit = LimitChange { micros: Some(Some(spent + 900_000)), ..LimitChange::default() };
    fixture.change_limit(limit).await;
    let third = fixture.add("Write part three.").await;
    fixture.waiting_for_budget(1).await;
    assert_eq!(server.calls().len(), calls.len());
    let limit = LimitChange { micros: Some(Some(100_000_000)), ..LimitChange::default() };
    fixture.change_limit(limit).await;
    fixture.done(&third).await;
    worker.stop().await;
}

/// The server counts the prompt with the first event, and bills it.
#[tokio::test]
async fn tokens_that_were_counted_before_a_call_broke_off_are_charged() {
    let mut begun = Anthropic.events(&Answer::of(&["Once upon"]).counts(1_000, 12));
    // Without the last counts and the end.
    begun.truncate(begun.len() - 2);
    let server = ScriptedServer::playing(&Anthropic, [Play::chunks(begun)]).await;
    let fixture = fixture_with(&server, 100_000, &[PRICES]).await;
    let worker = fixture.start_worker().await;
    let task = fixture.done(&fixture.add("Write.").await).await;
    fixture.settled().await;
    worker.stop().await;
    let lines = "select json_agg(json_build_array(outcome, input_tokens, output_tokens, cost_micros) order by id) from dalsegno.usage";
    let lines = fixture.json(lines).await;
    assert_eq!(lines[0], json!(["failed", 1_000, 1, 1_000 * 20 + 100]));
    assert_eq!(lines[1][0], "done");
    let charged = "select sum(cost_micros)::bigint from dalsegno.usage";
    assert_eq!(task.spent_micros, fixture.count(charged).await);
}

#[tokio::test]
async fn an_estimate_counts_on_the_cache_for_five_minutes() {
    let server = ScriptedServer::playing(&Anthropic, []).await;
    let fixture = fixture_with(&server, 100_000, &[PRICES]).await;
    let before = estimates::of_writer(&fixture, &[]).await;
    assert_eq!(before.cache.state, PromptCacheState::Empty);
    let worker = fixture.start_worker().await;
    fixture.done(&fixture.add(&PART.repeat(500)).await).await;
    fixture.settled().await;
    worker.stop().await;
    let cached = estimates::of_writer(&fixture, &[]).await;
    assert_eq!(cached.cache.state, PromptCacheState::Valid, "{:?}", cached.cache);
    let likely =
        |estimate: &Estimate| -> Charge { estimates::next(estimate).charge.unwrap().likely };
    let charge = likely(&cached);
    let estimated = charge.cost_micros.unwrap();
    let calls = server.calls();
    let prompt = Anthropic.count(&calls)["prompt"].as_i64().unwrap();
    assert_eq!(charge.cached_tokens, prompt);
    // The turn itself is charged as estimated.
    let worker = fixture.start_worker().await;
    fixture.done(&fixture.add("Write the next part.").await).await;
    worker.stop().await;
    let last = "select cost_micros from dalsegno.usage order by id desc limit 1";
    let real = fixture.count(last).await;
    let (low, high) = (real * 8 / 10, real * 12 / 10);
    assert!((low..=high).contains(&estimated), "{estimated} and {real}");
    fixture.settled().await;
    fixture.advance(chrono::TimeDelta::seconds(301));
    let expired = estimates::of_writer(&fixture, &[]).await;
    assert_eq!(expired.cache.state, PromptCacheState::Expired);
    assert!(likely(&expired).cost_micros.unwrap() > estimated * 3);
}
