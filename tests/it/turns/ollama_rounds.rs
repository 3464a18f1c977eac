//! The requests to Ollama in each call of a turn with tools, message by message.

use dalsegno::domain::{
    amount::Limit,
    campaigns::LimitChange,
    tasks::{self, State},
    turns,
};
use serde_json::{Value, json};

use super::{Fixture, budgets::stop_and_continue};
use crate::providers::fake_ollama::{FakeOllama, Play};

const WRITER: &str = "---\nname: writer\ndescription: Writes\nprovider: ollama\nmodel: qwen3:8b\n\
                      tools: mcp__dalsegno__status, mcp__dalsegno__board_post\n---\nYou write.\n";

async fn fixture(fake: &FakeOllama, settings: &[(&str, &str)]) -> Fixture {
    let url = format!("http://{}", fake.addr);
    let usual = [("ollama.base_url", url.as_str()), ("ollama.num_ctx", "16384")];
    let settings: Vec<_> = usual.into_iter().chain(settings.iter().copied()).collect();
    let fixture = Fixture::new(&settings).await;
    fixture.write_agent("writer", WRITER);
    fixture
}

fn status() -> Play {
    Play::Calls(vec![("status", json!({}))])
}

fn posting(text: &str) -> Play {
    Play::Calls(vec![("board_post", json!({ "text": text }))])
}

fn messages(chat: &Value) -> &[Value] {
    chat["messages"].as_array().unwrap()
}

#[tokio::test]
async fn each_call_contains_all_earlier_calls_and_results() {
    let both = Play::Calls(vec![
        ("status", json!({})),
        ("board_post", json!({ "text": "Tide.", "to": ["all"] })),
    ]);
    let fake = FakeOllama::playing([both, status(), Play::Says(&["Part ", "one."])]).await;
    let fixture = fixture(&fake, &[]).await;
    let worker = fixture.start_worker().await;
    let first = fixture.done(&fixture.add("Write part one.").await).await;
    assert_eq!(first.result.as_deref(), Some("Part one."));
    fixture.done(&fixture.add("Write part two.").await).await;
    worker.stop().await;
    let chats = fake.chats();
    assert_eq!(chats.len(), 4);
    let roles = |at: usize| -> Vec<&str> {
        messages(&chats[at]).iter().map(|message| message["role"].as_str().unwrap()).collect()
    };
    assert_eq!(roles(0), ["system", "user"]);
    assert_eq!(roles(1), ["system", "user", "assistant", "tool", "tool"]);
    assert_eq!(roles(2), ["system", "user", "assistant", "tool", "tool", "assistant", "tool"]);
    let later =
        ["system", "user", "assistant", "tool", "tool", "assistant", "tool", "assistant", "user"];
    assert_eq!(roles(3), later);
    // Each call repeats the earlier messages byte for byte, so the server reads only the new ones.
    for at in 0..3 {
        let (sent, next) = (messages(&chats[at]), messages(&chats[at + 1]));
        for (message, again) in sent.iter().zip(next) {
            assert_eq!(message.to_string(), again.to_string(), "call {at}");
        }
        assert_eq!(chats[at]["tools"], chats[at + 1]["tools"]);
    }
    let sent = messages(&chats[2]);
    let calls = &sent[2]["tool_calls"];
    assert_eq!(calls[0]["function"]["name"], "status");
    assert_eq!(calls[1]["function"]["arguments"], json!({ "text": "Tide.", "to": ["all"] }));
    for (at, result) in sent[3..5].iter().enumerate() {
        assert_eq!(
            (&result["tool_call_id"], &result["tool_name"]),
            (&calls[at]["id"], &calls[at]["function"]["name"])
        );
        assert!(
            result["content"].as_str().unwrap().starts_with("<tool_output fence=\""),
            "{result}"
        );
    }
    let names: Vec<_> = chats[0]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| &tool["function"]["name"])
        .collect();
    assert_eq!(names, ["board_post", "status"]);
    // Each call of the ledger has the server's own count of its prompt.
    let counted = "select json_agg(input_tokens order by id) from dalsegno.usage";
    let counted: Vec<u64> = serde_json::from_value(fixture.json(counted).await).unwrap();
    let expected: Vec<u64> =
        chats.iter().map(crate::providers::fake_ollama::count_prompt).collect();
    assert_eq!(counted, expected);
}

#[tokio::test]
async fn the_last_call_offers_no_tools_and_announces_it() {
    let fake = FakeOllama::playing([status(), posting("One."), status()]).await;
    let fixture = fixture(&fake, &[("agents.max_rounds", "3")]).await;
    let worker = fixture.start_worker().await;
    // It calls tools to the end, and gives no final answer.
    let silent = fixture.ended(&fixture.add("Write.").await).await;
    assert_eq!(silent.state, State::Failed, "{silent:?}");
    assert!(silent.error.as_ref().unwrap().contains("no final answer"), "{silent:?}");
    let chats = fake.chats();
    assert!(chats[1]["tools"].is_array() && chats[2].get("tools").is_none());
    let last = messages(&chats[2]).last().unwrap();
    assert_eq!(last["role"], "user");
    assert!(last["content"].as_str().unwrap().contains("You can call no more tools"), "{last}");
    // Its calls are in the transcript, and the next turn gets a notice that this one was interrupted.
    let turn = fixture.turns(&silent).await.pop().unwrap();
    assert_eq!((turn.state, turn.calls), (turns::State::Failed, 3));
    fixture.done(&fixture.add("Write on.").await).await;
    worker.stop().await;
    let next = fake.chats().pop().unwrap();
    let sent = messages(&next);
    assert_eq!(sent.iter().filter(|message| message["role"] == "tool").count(), 2);
    assert!(
        sent.last().unwrap()["content"].as_str().unwrap().contains("was interrupted"),
        "{sent:?}"
    );
}

#[tokio::test]
async fn a_server_failure_in_the_middle_is_retried_and_no_tool_runs_twice() {
    let broken = Play::Status(500, "", r#"{"error":"boom"}"#);
    let fake = FakeOllama::playing([posting("Once."), broken, posting("Once.")]).await;
    let fixture = fixture(&fake, &[]).await;
    let worker = fixture.start_worker().await;
    let task = fixture.done(&fixture.add("Write.").await).await;
    fixture.settled().await;
    worker.stop().await;
    assert_eq!(fixture.count("select count(*) from dalsegno.posts").await, 1);
    let turns = fixture.turns(&task).await;
    let ends: Vec<_> = turns.iter().map(|turn| (turn.attempt, turn.state, turn.calls)).collect();
    assert_eq!(ends, [(1, turns::State::Interrupted, 2), (2, turns::State::Done, 2)]);
    // The second attempt sees the results of the first one.
    let chats = fake.chats();
    let again = messages(&chats[2]);
    assert!(again.iter().any(|message| message["role"] == "tool"), "{again:?}");
    let asked = again.last().unwrap()["content"].as_str().unwrap();
    assert!(asked.contains("was interrupted") && asked.contains("Write."), "{asked}");
}

#[tokio::test]
async fn a_server_that_refuses_the_grown_prompt_is_sent_less_of_it() {
    let too_long =
        r#"{"error":"the prompt is longer than the context length currently available"}"#;
    let fake = FakeOllama::playing([status(), status(), Play::Status(400, "", too_long)]).await;
    let fixture = fixture(&fake, &[("agents.max_same_calls", "9")]).await;
    // Many agents, so that a result is long enough to be shortened.
    for number in 0..12 {
        let name = format!("colleague{number}");
        fixture.write_agent(&name, &WRITER.replace("writer", &name));
    }
    let worker = fixture.start_worker().await;
    let task = fixture.done(&fixture.add("Write.").await).await;
    worker.stop().await;
    assert_eq!(fixture.turns(&task).await.len(), 1);
    let chats = fake.chats();
    let result = |at: usize, message: usize| {
        messages(&chats[at])[message]["content"].as_str().unwrap().to_owned()
    };
    assert!(!result(2, 3).contains("are not shown any more"));
    assert!(result(3, 3).contains("are not shown any more"), "{}", result(3, 3));
    assert_eq!(result(3, 5), result(2, 5), "the latest result stays whole");
    // The refused call is in the ledger, and can be shown.
    let ledger = "select json_agg(outcome order by id) from dalsegno.usage";
    assert_eq!(fixture.json(ledger).await, json!(["done", "done", "failed", "done"]));
    let id = task.session_id.unwrap().to_string();
    for (at, body) in fake.bodies().iter().enumerate() {
        let call = (at + 1).to_string();
        let shown = fixture.run_command(&["context", "show", &id, "--call", &call, "--raw"]).await;
        assert_eq!(&shown.stdout, body, "call {call}");
    }
}

#[tokio::test]
async fn a_model_without_tools_fails_the_task_with_a_reason() {
    let fake = FakeOllama::start().await;
    fake.state.shown.lock().unwrap()["capabilities"] = json!(["completion"]);
    let fixture = fixture(&fake, &[]).await;
    let worker = fixture.start_worker().await;
    let task = fixture.ended(&fixture.add("Write.").await).await;
    worker.stop().await;
    assert_eq!(task.state, State::Failed);
    assert!(task.error.as_ref().unwrap().contains("use a model with `tools`"), "{task:?}");
    assert!(fake.chats().is_empty());
}

#[tokio::test]
async fn a_token_budget_stops_a_turn_between_two_calls_and_a_raise_continues_it() {
    const BUDGET: i64 = 6_000;
    let text = |n: usize| format!("Part {n}. {}", "The tide is out. ".repeat(40));
    let fake = FakeOllama::playing((0..30).map(|n| posting(&text(n)))).await;
    let fixture = fixture(&fake, &[("agents.max_rounds", "40")]).await;
    fixture.write_agent("writer", &WRITER.replace("tools:", "reserve_tokens: 300\ntools:"));
    let worker = fixture.start_worker().await;
    let own = Limit { micros: None, tokens: Some(BUDGET) };
    let task = fixture.add_as("writer", "main", "Write.", None, own).await;
    fixture.waiting_for_budget(1).await;
    let waiting = fixture.task(&task).await;
    assert_eq!(waiting.state, State::Queued, "{waiting:?}");
    let why = fixture.turns(&task).await[0].error.clone().unwrap();
    let sums = format!("{} tokens of {BUDGET} tokens are spent, and up to", waiting.spent_tokens);
    assert!(
        why.contains("waiting: budget: the budget of the task") && why.contains(&sums),
        "{why}"
    );
    let n_calls = fake.chats().len();
    assert!((2..30).contains(&n_calls) && waiting.spent_tokens <= BUDGET, "{n_calls}: {waiting:?}");
    let ledger = "select sum(input_tokens + output_tokens)::bigint from dalsegno.usage";
    assert_eq!(fixture.count(ledger).await, waiting.spent_tokens);
    // Each call has its result, and all of it is in the transcript.
    assert_eq!(fixture.count("select count(*) from dalsegno.posts").await, n_calls as i64);
    let results = "select count(*) from dalsegno.messages where role = 'tool'";
    assert_eq!(fixture.count(results).await, n_calls as i64);
    let mut conn = fixture.pool.acquire().await.unwrap();
    let change = tasks::BudgetChange { tokens: Some(Some(1_000_000)), ..Default::default() };
    tasks::change_budget(&mut conn, task.id, change).await.unwrap();
    drop(conn);
    let done = fixture.done(&task).await;
    fixture.settled().await;
    worker.stop().await;
    assert_eq!(fixture.count(ledger).await, done.spent_tokens);
    let last = fake.chats().last().unwrap().to_string();
    assert!(last.contains("was interrupted") && last.matches("Write.").count() == 1, "{last}");
}

#[tokio::test]
async fn at_the_limit_of_the_campaign_a_turn_keeps_its_part_and_all_tasks_continue_after_a_raise() {
    let text = |n: usize| format!("Part {n}. {}", "The tide is out. ".repeat(40));
    let fake = FakeOllama::playing((0..30).map(|n| posting(&text(n)))).await;
    let fixture = fixture(&fake, &[]).await;
    fixture.write_agent("writer", &WRITER.replace("tools:", "reserve_tokens: 300\ntools:"));
    let limit = LimitChange { tokens: Some(Some(6_000)), ..Default::default() };
    fixture.change_limit(limit).await;
    let worker = fixture.start_worker().await;
    let first = stop_and_continue(&fixture, || fake.chats().len(), || fake.stop_playing()).await;
    worker.stop().await;
    let interrupted = |chat: &&Value| chat.to_string().contains("was interrupted");
    let chats = fake.chats();
    let continued = chats.iter().find(interrupted).unwrap().to_string();
    assert!(continued.contains("Part 0.") && first.result.is_some(), "{continued}");
}
