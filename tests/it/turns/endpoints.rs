//! Turns of agents whose files name an endpoint of the configuration, on a scripted server with chat completions.

use dalsegno::domain::{compactions, tasks::State};
use serde_json::{Value, json};

use super::{Fixture, contexts};
use crate::providers::conformance::{
    dialects::{Answer, OpenAi},
    server::{Play, ScriptedServer},
};

const WRITER: &str = "---\nname: writer\ndescription: Writes\nprovider: local\nmodel: qwen3:8b\n\
                      tools: mcp__dalsegno__status, mcp__dalsegno__board_post\n---\nYou write.\n";
const PART: &str = "The harbour has a mole and a light. ";

async fn fixture(server: &ScriptedServer, window_tokens: u32) -> Fixture {
    let url = format!("{}/v1", server.base_url());
    let models = format!("[{{ name = \"qwen3:8b\", window_tokens = {window_tokens} }}]");
    let settings = [
        ("providers.local.base_url", url.as_str()),
        ("providers.local.models", &models),
        ("providers.local.credential_variable", "LOCAL_KEY"),
        ("providers.local.ttl_days", "3"),
    ];
    let fixture = Fixture::new(&settings).await.with_variable("LOCAL_KEY", "sk-of-the-test");
    fixture.write_agent("writer", WRITER);
    fixture
}

fn calling(calls: &[(&str, Value)]) -> Play {
    let answer =
        calls.iter().enumerate().fold(Answer::of(&[]), |answer, (at, (name, arguments))| {
            // Compatible servers count from 0 in each answer.
            answer.calls(Some(&format!("call_{at}")), name, arguments.clone())
        });
    Play::Answers(answer)
}

/// Returns the last call of a turn. Calls for summaries may follow it.
fn last_turn(server: &ScriptedServer) -> String {
    let calls = server.calls();
    let is_turn = |call: &&Value| call["messages"][0].to_string().contains("You write.");
    calls.iter().rfind(is_turn).unwrap().to_string()
}

#[tokio::test]
async fn an_agent_on_an_endpoint_uses_tools_and_its_requests_are_shown_byte_for_byte() {
    let both = [("status", json!({})), ("board_post", json!({ "text": "Tide <&> 語 😀" }))];
    let plays =
        [calling(&both), calling(&both[..1]), Play::Answers(Answer::of(&["Part ", "one."]))];
    let server = ScriptedServer::playing(&OpenAi, plays).await;
    let fixture = fixture(&server, 16_384).await;
    let worker = fixture.start_worker().await;
    let first = fixture.done(&fixture.add("Write part one.\n\"Quoted\" \\ </task>").await).await;
    assert_eq!(first.result.as_deref(), Some("Part one."));
    fixture.done(&fixture.add("Write part two.").await).await;
    worker.stop().await;
    let calls = server.calls();
    assert_eq!(calls.len(), 4);
    // Each call repeats the earlier messages byte for byte, so the server reads only the new ones.
    for pair in calls.windows(2) {
        let (sent, next) =
            (pair[0]["messages"].as_array().unwrap(), pair[1]["messages"].as_array().unwrap());
        for (message, again) in sent.iter().zip(next) {
            assert_eq!(message.to_string(), again.to_string());
        }
    }
    let sent = calls[2]["messages"].as_array().unwrap().iter();
    let mut ids: Vec<_> = sent.filter_map(|message| message["tool_call_id"].as_str()).collect();
    assert_eq!(ids.len(), 3);
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 3, "each result names its own call");
    let session = fixture.session(&first).await;
    assert_eq!((session.provider.as_str(), session.model.as_str()), ("local", "qwen3:8b"));
    let id = session.id.to_string();
    let bodies = server.bodies();
    for (at, body) in bodies[..3].iter().enumerate() {
        let call = (at + 1).to_string();
        let shown = ["context", "show", &id, "--turn", "1", "--call", &call, "--raw"];
        assert_eq!(fixture.run_command(&shown).await.stdout, *body, "call {call}");
    }
    let curl = fixture.run_command(&["context", "show", &id, "--curl"]).await.stdout;
    let curl = String::from_utf8(curl).unwrap();
    let sends = format!("curl -sS '{}/v1/chat/completions' -H 'content-type:", server.base_url());
    assert!(curl.contains(&sends), "{curl}");
    assert!(curl.contains("-H \"authorization: Bearer $KEY\""), "{curl}");
    contexts::assert_exact(&fixture.pool).await;
    // Each call is charged once, by our own id: the server repeats its ids.
    assert_eq!(fixture.count("select count(*) from dalsegno.usage").await, 4);
    let stored =
        "select count(*) from dalsegno.manifests where manifests::text like '%sk-of-the-test%'";
    assert_eq!(fixture.count(stored).await, 0);
}

#[tokio::test]
async fn a_conversation_on_an_endpoint_is_compacted_and_its_requests_stay_exact() {
    let server = ScriptedServer::playing(&OpenAi, []).await;
    let fixture = fixture(&server, 8192).await;
    let worker = fixture.start_worker().await;
    let mut last = None;
    for number in 1..=16 {
        // A pin is a line, and a summary has room for short ones only.
        let prompt = format!("PIN: BERTH-{number:04} stays.\n{}", PART.repeat(70));
        last = Some(fixture.done(&fixture.add(&prompt).await).await);
    }
    fixture.settled().await;
    worker.stop().await;
    let session = fixture.session(&last.unwrap()).await;
    let done = compactions::list(&fixture.pool, session.id).await.unwrap();
    assert!(!done.is_empty());
    let sent = last_turn(&server);
    assert!(sent.contains("Earlier conversation, summarised"), "{sent}");
    assert!(sent.contains("BERTH-0001"), "{sent}");
    contexts::assert_exact(&fixture.pool).await;
}

#[tokio::test]
async fn a_prompt_that_the_server_refuses_as_too_long_is_compacted_and_sent_again() {
    use crate::providers::conformance::dialects::Dialect as _;
    let (status, body) = OpenAi.overflows().remove(2);
    let server = ScriptedServer::playing(&OpenAi, []).await;
    let fixture = fixture(&server, 16_384).await;
    let worker = fixture.start_worker().await;
    for number in 1..=3 {
        let prompt = format!("PIN: BERTH-{number:04} stays. {}", PART.repeat(70));
        fixture.done(&fixture.add(&prompt).await).await;
    }
    server.play(Play::status(status, body));
    let task = fixture.ended_after_waits(&fixture.add("Write the last part.").await).await;
    worker.stop().await;
    assert_eq!(task.state, State::Done, "{task:?}");
    let sent = last_turn(&server);
    assert!(sent.contains("Earlier conversation, summarised"), "{sent}");
}

#[tokio::test]
async fn a_busy_endpoint_uses_up_no_attempt_and_a_wrong_key_fails_with_the_next_step() {
    let busy = Play::Status(429, "retry-after: 1\r\n".to_owned(), "{}".to_owned());
    let wrong = r#"{"error":{"message":"Incorrect API key provided","code":"invalid_api_key"}}"#;
    let server = ScriptedServer::playing(&OpenAi, [busy]).await;
    let fixture = fixture(&server, 16_384).await;
    let worker = fixture.start_worker().await;
    let first = fixture.ended_after_waits(&fixture.add("Write part one.").await).await;
    assert_eq!(first.state, State::Done, "{first:?}");
    let attempts: Vec<_> = fixture.turns(&first).await.iter().map(|it| it.attempt).collect();
    assert_eq!(attempts, [1, 1]);
    server.play(Play::status(401, wrong));
    let second = fixture.ended(&fixture.add("Write part two.").await).await;
    worker.stop().await;
    assert_eq!(second.state, State::Failed);
    let error = second.error.unwrap();
    assert!(error.contains("providers.local.credential_variable"), "{error}");
    assert!(!error.contains("sk-of-the-test"), "{error}");
}
