//! The share of the input that a server with the rules of the prompt cache reads from it.

use dalsegno::domain::campaigns::{self, Edit};
use serde_json::{Value, json};

use super::{Fixture, PART, fixture, turns};
use crate::{
    app::noon,
    providers::conformance::{
        dialects::{Answer, Anthropic, Dialect as _, count_with_cache},
        server::{Play, ScriptedServer},
    },
};

/// Minimum lengths of a cached prefix, of models with a short and with a long one.
const MIN_CACHED_TOKENS: [u64; 2] = [1024, 4096];

/// Tokens of several calls.
#[derive(Debug, Default, Clone, Copy)]
struct Input {
    cached: u64,
    all: u64,
}

impl Input {
    /// Counts these calls, on the cache that all calls before them have left.
    fn of(calls: &[Value], from: usize, min_tokens: u64) -> Self {
        let mut input = Self::default();
        for n in from + 1..=calls.len() {
            let counts = count_with_cache(&calls[..n], min_tokens);
            input.cached += counts["cached"].as_u64().unwrap();
            input.all += counts["prompt"].as_u64().unwrap();
        }
        input
    }

    fn percent(self) -> u64 {
        self.cached * 100 / self.all
    }
}

/// Runs turns with this many rounds of calls, each with this many calls of tools. Returns the calls of turns.
async fn converse(
    server: &ScriptedServer,
    fixture: &Fixture,
    n_turns: usize,
    (n_rounds, n_tools): (usize, usize),
) -> Vec<Value> {
    let worker = fixture.start_worker().await;
    for turn in 1..=n_turns {
        for round in 0..n_rounds {
            let mut answer = Answer::of(&["I look."]).thinks(&["Hm."]);
            for n in 0..n_tools {
                let id = format!("toolu_{turn}_{round}_{n}");
                answer = answer.calls(Some(&id), "status", json!({ "n": n }));
            }
            server.play(Play::Counted(answer));
        }
        server.play(Play::Counted(Answer::of(&["Part ", "done. ", &PART.repeat(20)])));
        let prompt = match turn {
            1 => format!("Read the brief.\n{}", PART.repeat(500)),
            _ => format!("Write part {turn}. {}", PART.repeat(10)),
        };
        fixture.done(&fixture.add(&prompt).await).await;
    }
    fixture.settled().await;
    worker.stop().await;
    let calls = turns(server);
    assert_eq!(calls.len(), n_turns * (n_rounds + 1));
    calls
}

fn check_share(what: &str, n_rounds: usize, calls: &[Value]) {
    for min_tokens in MIN_CACHED_TOKENS {
        let input = Input::of(calls, 2 * (n_rounds + 1), min_tokens);
        println!(
            "{what}, prefixes of {min_tokens} tokens and more: {} of {} input tokens ({} %) read from the cache from turn 3 on",
            input.cached,
            input.all,
            input.percent()
        );
        assert!(input.percent() >= 90, "{what}: {input:?}");
    }
}

#[tokio::test]
async fn nine_tenths_of_the_input_are_read_from_the_cache_from_turn_3_on() {
    let server = ScriptedServer::playing(&Anthropic, []).await;
    let fixture = fixture(&server, 100_000).await;
    let calls = converse(&server, &fixture, 10, (0, 0)).await;
    check_share("turns without tools", 0, &calls);
    // The ledger has the same counts.
    let stored = "select sum(cache_read_tokens)::bigint from dalsegno.usage";
    let cached = Input::of(&calls, 0, MIN_CACHED_TOKENS[0]).cached;
    assert_eq!(fixture.count(stored).await, i64::try_from(cached).unwrap());
}

#[tokio::test]
async fn turns_with_a_few_tool_calls_reach_the_same_share() {
    let server = ScriptedServer::playing(&Anthropic, []).await;
    let fixture = fixture(&server, 100_000).await;
    let calls = converse(&server, &fixture, 6, (2, 3)).await;
    check_share("turns with 6 tool calls", 2, &calls);
}

#[tokio::test]
async fn each_call_reads_the_whole_call_before_it_however_many_blocks_lie_between() {
    let server = ScriptedServer::playing(&Anthropic, []).await;
    let fixture = fixture(&server, 100_000).await;
    // More blocks than the server looks back.
    let calls = converse(&server, &fixture, 4, (2, 12)).await;
    for n_calls in 2..=calls.len() {
        let before = Anthropic.count(&calls[..n_calls - 1])["prompt"].as_u64().unwrap();
        let cached = Anthropic.count(&calls[..n_calls])["cached"].as_u64().unwrap();
        assert!(cached >= before, "call {n_calls}: {cached} of {before} tokens are cached");
    }
}

#[tokio::test]
async fn parts_that_only_one_turn_is_sent_cost_no_more_than_the_turn_before() {
    let server = ScriptedServer::playing(&Anthropic, []).await;
    let fixture = fixture(&server, 100_000).await;
    let parameters = json!({ "agent_mode": "plan" });
    let edit = Edit { parameters: parameters.as_object(), ..Edit::default() };
    let mut tx = fixture.pool.begin().await.unwrap();
    campaigns::edit(&mut tx, fixture.campaign.id, &edit, "cli:ann@host", noon()).await.unwrap();
    tx.commit().await.unwrap();
    let calls = converse(&server, &fixture, 5, (2, 12)).await;
    assert!(calls.iter().all(|call| call["messages"].to_string().contains("agent_mode")));
    let tokens =
        |n_calls: usize, of: &str| Anthropic.count(&calls[..n_calls])[of].as_u64().unwrap();
    for turn in 3..=5 {
        // The end of the turn before the last one: its message is the first that changes.
        let first_call = 3 * (turn - 1) + 1;
        let mut shorter = calls[..first_call - 3].to_vec();
        shorter.last_mut().unwrap()["messages"].as_array_mut().unwrap().pop();
        let unchanged = Anthropic.count(&shorter)["prompt"].as_u64().unwrap();
        assert_eq!(tokens(first_call, "cached"), unchanged, "turn {turn}");
        for call in first_call + 1..first_call + 3 {
            assert_eq!(tokens(call, "cached"), tokens(call - 1, "prompt"), "call {call}");
        }
    }
}
