//! Turns of agents on an endpoint with the Messages API, on a scripted server with a prompt cache.

mod batches;
mod cache;
mod cost;
mod counting;

use dalsegno::domain::tasks::State;
use serde_json::{Value, json};

use super::{Fixture, contexts};
use crate::providers::conformance::{
    dialects::{Answer, Anthropic, Dialect as _},
    server::{Play, ScriptedServer},
};

const WRITER: &str = "---\nname: writer\ndescription: Writes\nprovider: anthropic\nmodel: claude-of-the-test\n\
                      tools: mcp__dalsegno__status, mcp__dalsegno__board_post\n---\nYou write.\n";
const PART: &str = "The harbour has a mole and a light. ";

async fn fixture(server: &ScriptedServer, window_tokens: u32) -> Fixture {
    fixture_with(server, window_tokens, &[]).await
}

async fn fixture_with(
    server: &ScriptedServer,
    window_tokens: u32,
    more: &[(&str, &str)],
) -> Fixture {
    let (url, window_tokens) = (format!("{}/v1", server.base_url()), window_tokens.to_string());
    let settings = [
        ("providers.anthropic.kind", "anthropic"),
        ("providers.anthropic.base_url", url.as_str()),
        ("providers.anthropic.window_tokens", &window_tokens),
        ("providers.anthropic.credential_variable", "ANTHROPIC_KEY"),
    ];
    let settings = [&settings[..], more].concat();
    let fixture = Fixture::new(&settings).await.with_variable("ANTHROPIC_KEY", "sk-of-the-test");
    fixture.write_agent("writer", WRITER);
    fixture
}

fn calling(id: &str, name: &str, arguments: Value) -> Answer {
    Answer::of(&["I look."]).thinks(&["Hm. ", "So."]).calls(Some(id), name, arguments)
}

/// Returns the messages of a call without their marks.
fn unmarked(call: &Value) -> Vec<Value> {
    let mut messages = call["messages"].as_array().unwrap().clone();
    for block in messages.iter_mut().flat_map(|it| it["content"].as_array_mut().unwrap()) {
        block.as_object_mut().unwrap().remove("cache_control");
    }
    messages
}

/// Returns the calls of turns. Calls for summaries may be among the others.
fn turns(server: &ScriptedServer) -> Vec<Value> {
    let mut calls = server.calls();
    calls.retain(|call| call["system"].to_string().contains("You write."));
    calls
}

#[tokio::test]
async fn signed_thinking_goes_back_with_its_calls_and_requests_are_shown_byte_for_byte() {
    let plays = [
        calling("toolu_1", "status", json!({})),
        calling("toolu_2", "board_post", json!({ "text": "Tide <&> 語 😀" })),
        Answer::of(&["Part ", "one."]).thinks(&["Done."]),
    ];
    let server = ScriptedServer::playing(&Anthropic, plays.map(Play::Answers)).await;
    let fixture = fixture(&server, 16_384).await;
    let worker = fixture.start_worker().await;
    let first = fixture.done(&fixture.add("Write part one.\n\"Quoted\" \\ </task>").await).await;
    assert_eq!(first.result.as_deref(), Some("Part one."));
    fixture.done(&fixture.add("Write part two.").await).await;
    worker.stop().await;
    let calls = server.calls();
    assert_eq!(calls.len(), 4);
    // Each call repeats the earlier messages, so the server reads them from its cache.
    for pair in calls.windows(2) {
        for (message, again) in unmarked(&pair[0]).iter().zip(unmarked(&pair[1])) {
            assert_eq!(*message, again);
        }
    }
    let thinking = json!({ "type": "thinking", "thinking": "Hm. So.", "signature": "c2lnbmVk" });
    let answers = calls[3]["messages"].as_array().unwrap().iter();
    let answers: Vec<_> = answers.filter(|it| it["role"] == "assistant").collect();
    for (answer, id) in answers.iter().zip(["toolu_1", "toolu_2"]) {
        let blocks = answer["content"].as_array().unwrap();
        assert_eq!(blocks[0], thinking);
        assert_eq!((&blocks[1]["text"], &blocks[2]["id"]), (&json!("I look."), &json!(id)));
    }
    let session = fixture.session(&first).await;
    let id = session.id.to_string();
    for (at, body) in server.bodies()[..3].iter().enumerate() {
        let call = (at + 1).to_string();
        let shown = ["context", "show", &id, "--turn", "1", "--call", &call, "--raw"];
        assert_eq!(fixture.run_command(&shown).await.stdout, *body, "call {call}");
    }
    let curl = fixture.run_command(&["context", "show", &id, "--curl"]).await.stdout;
    let curl = String::from_utf8(curl).unwrap();
    for part in ["/v1/messages'", "-H 'anthropic-version: 2023-06-01'", "-H \"x-api-key: $KEY\""] {
        assert!(curl.contains(part), "{part}: {curl}");
    }
    contexts::assert_exact(&fixture.pool).await;
    assert_eq!(fixture.count("select count(*) from dalsegno.usage").await, 4);
}

#[tokio::test]
async fn a_prompt_that_is_too_long_is_compacted_and_an_overloaded_server_uses_up_no_attempt() {
    let server = ScriptedServer::playing(&Anthropic, []).await;
    let fixture = fixture(&server, 16_384).await;
    let worker = fixture.start_worker().await;
    for number in 1..=3 {
        let prompt = format!("PIN: BERTH-{number:04} stays. {}", PART.repeat(70));
        fixture.done(&fixture.add(&prompt).await).await;
    }
    let (status, body) = Anthropic.overflows().remove(0);
    server.play(Play::status(status, body));
    let task = fixture.ended_after_waits(&fixture.add("Write the last part.").await).await;
    assert_eq!(task.state, State::Done, "{task:?}");
    fixture.settled().await;
    let error = r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
    server.play(Play::status(529, error));
    let task = fixture.ended_after_waits(&fixture.add("Write an end.").await).await;
    worker.stop().await;
    assert_eq!(task.state, State::Done, "{task:?}");
    let attempts: Vec<_> = fixture.turns(&task).await.iter().map(|it| it.attempt).collect();
    assert_eq!(attempts, [1, 1]);
}

#[tokio::test]
async fn a_rerun_sends_the_same_bytes_and_reads_them_from_the_cache() {
    let plays = [calling("toolu_1", "status", json!({})), Answer::of(&["Part one."])];
    let server = ScriptedServer::playing(&Anthropic, plays.map(Play::Counted)).await;
    // The command has the settings of the test, but not its variables.
    let no_key = [("providers.anthropic.credential_variable", "")];
    let fixture = fixture_with(&server, 100_000, &no_key).await;
    let worker = fixture.start_worker().await;
    let brief = format!("Read the brief.\n{}", PART.repeat(500));
    let task = fixture.done(&fixture.add(&brief).await).await;
    fixture.done(&fixture.add("Write part two.").await).await;
    let session = fixture.session(&task).await.id;
    let id = session.to_string();
    let rerun = ["turn", "rerun", &id, "--turn", "1", "--call", "2", "--json"];
    let output = fixture.run_configured(&rerun).await;
    assert!(output.status.success(), "{output:?}");
    let rerun: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(rerun["reruns"][0]["is_same_request"], true, "{rerun}");
    assert!(rerun["reruns"][0]["cache_read_tokens"].as_i64() > Some(0), "{rerun}");
    let bodies = server.bodies();
    assert_eq!(bodies[3], bodies[1]);
    worker.stop().await;
}
