//! Tools of models: offers, calls and refusals.

use std::sync::Arc;

use dalsegno::{
    providers::{
        Class, Request, StopReason,
        sim::{Config, Sim, SummaryMode},
    },
    transcript::{Message, Role, ToolSpec},
};
use serde_json::{Value, json};

use super::{
    fake_ollama::{FakeOllama, Play},
    requests::{ask, fail, message, request},
};

fn spec(name: &str) -> Arc<ToolSpec> {
    Arc::new(ToolSpec {
        name: name.to_owned(),
        description: format!("Does {name}."),
        input_schema: json!({ "type": "object", "properties": { "what": { "type": "string" } } }),
    })
}

fn asking(prompt: &str) -> Request {
    Request { tools: vec![spec("look_up"), spec("stop")], ..request(prompt) }
}

#[tokio::test]
async fn ollama_gets_tools_and_calls_them() {
    let play = Play::Calls(vec![("look_up", json!({ "what": "it" })), ("stop", json!({}))]);
    let fake = FakeOllama::playing([play]).await;
    let outcome = ask(&fake.client(), asking("Write.")).await.unwrap();
    assert_eq!(outcome.stop, StopReason::ToolCalls);
    let calls: Vec<_> =
        outcome.message.tool_calls.iter().map(|it| (it.name.as_str(), &it.arguments)).collect();
    assert_eq!(calls, [("look_up", &json!({ "what": "it" })), ("stop", &json!({}))]);
    ask(&fake.client(), request("Write.")).await.unwrap();
    let [offered, plain] = <[Value; 2]>::try_from(fake.chats()).unwrap();
    let expected = json!({
        "type": "function",
        "function": {
            "name": "look_up",
            "description": "Does look_up.",
            "parameters": { "type": "object", "properties": { "what": { "type": "string" } } },
        },
    });
    assert_eq!((&offered["tools"][0], offered["tools"].as_array().unwrap().len()), (&expected, 2));
    assert!(plain.get("tools").is_none(), "{plain}");
}

#[tokio::test]
async fn an_ollama_model_without_tools_is_refused_with_a_reason() {
    let fake = FakeOllama::start().await;
    fake.state.shown.lock().unwrap()["capabilities"] = json!(["completion"]);
    let client = fake.client();
    let error = fail(&client, asking("Write.")).await;
    assert_eq!((error.code, error.class), ("ollama.no_tools", Class::Fail));
    assert!(error.to_string().contains("use a model with `tools`"), "{error}");
    assert!(fake.chats().is_empty());
    // A request without tools is accepted.
    ask(&client, request("Write.")).await.unwrap();
    // An older server reports the missing support only when it gets tools.
    let refusal = r#"{"error":"registry.ollama.ai/library/qwen3 does not support tools"}"#;
    let fake = FakeOllama::playing([Play::Status(400, "", refusal)]).await;
    fake.state.shown.lock().unwrap().as_object_mut().unwrap().remove("capabilities");
    let error = fail(&fake.client(), asking("Write.")).await;
    assert_eq!((error.code, error.class), ("ollama.no_tools", Class::Fail));
}

fn sim() -> Sim {
    Sim::new(Config {
        window_tokens: 4096,
        latency_ms: 0,
        chunk_delay_ms: 0,
        chunk_chars: 12,
        summary: SummaryMode::Honest,
        facts: Default::default(),
        directives: true,
        faults: Vec::new(),
    })
    .unwrap()
}

/// Returns the simulation's calls in each round, and its final text.
async fn played(mut request: Request) -> (Vec<Vec<String>>, String) {
    let (sim, mut rounds) = (sim(), Vec::new());
    loop {
        let outcome = ask(&sim, request.clone()).await.unwrap();
        if outcome.stop != StopReason::ToolCalls {
            return (rounds, outcome.message.text);
        }
        let calls = outcome.message.tool_calls.clone();
        rounds.push(calls.iter().map(|it| format!("{} {}", it.name, it.arguments)).collect());
        request.messages.push(outcome.message.into());
        for call in calls {
            let result = Message {
                tool_call_id: Some(call.id),
                tool_name: Some(call.name),
                media: Vec::new(),
                ..message(Role::Tool, "done")
            };
            request.messages.push(result.into());
        }
        assert!(rounds.len() < 20);
    }
}

#[tokio::test]
async fn the_simulation_calls_directed_tools_and_then_answers() {
    let prompt = "Write. [[sim: call look_up {\"what\": \"a &lt; b\"}]] [[sim: also stop]] \
                  [[sim: call stop {} 2 times]]";
    let (rounds, answer) = played(asking(prompt)).await;
    let expected =
        [vec!["look_up {\"what\":\"a < b\"}", "stop {}"], vec!["stop {}"], vec!["stop {}"]];
    assert_eq!(rounds, expected);
    assert!(answer.contains("Tools used: look_up, stop, stop, stop.\n"), "{answer}");
    let (again, same) = played(asking(prompt)).await;
    assert_eq!((again, same), (rounds, answer));
    // Without offered tools, there are no calls.
    let (none, answer) = played(request(prompt)).await;
    assert!(none.is_empty() && !answer.contains("Tools used"), "{answer}");
}

#[tokio::test]
async fn the_simulation_counts_its_offered_tools() {
    let count = async |request: Request| ask(&sim(), request).await.unwrap().usage.input.unwrap();
    let (plain, offered) = (count(request("Write.")).await, count(asking("Write.")).await);
    assert!(offered > plain + 40, "{plain} {offered}");
}
