//! Requests to Ollama, and answers that only it gives. The suite `conformance` has those of all servers.

use std::{sync::atomic::Ordering, time::Duration};

use dalsegno::{
    providers::{Event, Options, Status, StopReason, Think, ollama::Ollama},
    transcript::Role,
};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio_util::sync::CancellationToken;

use super::{
    fake_ollama::{FakeOllama, Play, Step, config, count_prompt, line},
    requests::{OVERFLOW, ask, fail, message, request, text_of, watch},
};

/// Returns the final line of an answer, with changes.
pub fn done(changes: &Value) -> Vec<u8> {
    let mut done = json!({
        "message": { "role": "assistant", "content": "" },
        "done": true,
        "done_reason": "stop",
        "prompt_eval_count": 20,
        "eval_count": 3,
    });
    for (key, value) in changes.as_object().unwrap() {
        done[key] = value.clone();
    }
    line(&done)
}

pub fn says(content: &str) -> Vec<u8> {
    line(&json!({ "message": { "role": "assistant", "content": content }, "done": false }))
}

pub fn stream(lines: impl IntoIterator<Item = Vec<u8>>) -> Play {
    let steps = lines.into_iter().map(Step::Bytes).chain([Step::End]);
    Play::Stream(steps.collect())
}

#[tokio::test]
async fn an_answer_is_streamed_counted_and_timed() {
    let fake = FakeOllama::start().await;
    let (outcome, events) = watch(&fake.client(), request("Write.")).await;
    let outcome = outcome.unwrap();
    assert_eq!(outcome.message, message(Role::Assistant, "A good answer."));
    assert_eq!(outcome.stop, StopReason::End);
    assert_eq!(outcome.usage.input, Some(count_prompt(&fake.chats()[0])));
    assert_eq!(outcome.usage.output, Some(4));
    assert_eq!((outcome.usage.cache_read, outcome.usage.cache_creation), (None, None));
    assert_eq!(outcome.window_tokens, Some(4096));
    assert_eq!(outcome.durations.load, Some(Duration::from_millis(1)));
    assert!(outcome.durations.first_byte.unwrap() <= outcome.durations.total);
    let Event::Sent(sent) = &events[0] else { panic!("{:?}", events[0]) };
    assert_eq!(sent.sha256[..], Sha256::digest(&fake.bodies()[0])[..]);
    assert_eq!(events[1], Event::Started { model: "qwen3:8b".to_owned() });
    assert_eq!(events[2], Event::Status(Status::Answering));
    assert_eq!(text_of(&events), "A good answer.");
}

#[tokio::test]
async fn the_request_prevents_silent_truncation() {
    let fake = FakeOllama::start().await;
    let mut request = request("Write.");
    request.options = Options {
        temperature: Some(0.5),
        seed: Some(7),
        stop: vec!["END".to_owned()],
        think: Some(Think::Off),
        format: Some(json!({ "type": "object" })),
        ..Options::default()
    };
    ask(&fake.client(), request).await.unwrap();
    let expected = json!({
        "model": "qwen3:8b",
        "messages": [
            { "role": "system", "content": "You write for the client." },
            { "role": "user", "content": "Hello." },
            { "role": "assistant", "content": "Hello!" },
            { "role": "user", "content": "Write." },
        ],
        "stream": true,
        "truncate": false,
        "shift": false,
        "keep_alive": 300,
        "think": false,
        "format": { "type": "object" },
        "options": {
            "num_ctx": 4096, "num_predict": 512, "temperature": 0.5, "seed": 7, "stop": ["END"],
        },
    });
    assert_eq!(fake.chats(), [expected]);
}

#[tokio::test]
async fn different_windows_do_not_make_the_server_reload_the_model() {
    let fake = FakeOllama::start().await;
    let client = fake.client();
    for window_tokens in [1024, 4096, 32_768] {
        let mut request = request("Write.");
        request.window_tokens = window_tokens;
        ask(&client, request).await.unwrap();
    }
    assert_eq!(fake.state.n_loads.load(Ordering::Relaxed), 1);
    assert_eq!(fake.n_requests("POST /api/show"), 1);
    assert_eq!(fake.n_requests("GET /api/version"), 1);
}

#[tokio::test]
async fn the_window_never_exceeds_the_models_trained_length() {
    let fake = FakeOllama::start().await;
    fake.state.shown.lock().unwrap()["model_info"]["qwen3.context_length"] = json!(2048);
    let client = fake.client();
    let outcome = ask(&client, request("Write.")).await.unwrap();
    assert_eq!(fake.chats()[0]["options"]["num_ctx"], 2048);
    assert_eq!(outcome.window_tokens, Some(2048));
    let cancel = CancellationToken::new();
    assert_eq!(client.ask_window_tokens("qwen3:8b", &cancel).await.unwrap(), 2048);
    assert_eq!(client.version(&cancel).await.unwrap(), "0.33.1");
    // A prompt whose estimate exceeds the window is not sent.
    let mut large = request("Write.");
    large.estimated_prompt_tokens = Some(2048);
    let error = fail(&client, large).await;
    assert_eq!((error.code, error.class), ("ollama.overflow", OVERFLOW));
    assert_eq!(fake.chats().len(), 1);
}

#[tokio::test]
async fn thinking_is_requested_in_each_models_format() {
    let cases = [
        (json!(["completion"]), "llama", Think::Off, Value::Null),
        (json!(["completion", "thinking"]), "qwen3", Think::On, json!(true)),
        (json!(["completion", "thinking"]), "qwen3", Think::High, json!("high")),
        (json!(["completion", "thinking"]), "gptoss", Think::Off, json!("low")),
        (json!(["completion", "thinking"]), "gptoss", Think::On, json!("medium")),
    ];
    for (capabilities, family, think, expected) in cases {
        let fake = FakeOllama::start().await;
        *fake.state.shown.lock().unwrap() =
            json!({ "details": { "family": family }, "capabilities": capabilities });
        let mut request = request("Write.");
        request.options.think = Some(think);
        ask(&fake.client(), request).await.unwrap();
        assert_eq!(fake.chats()[0]["think"], expected, "{family} {think:?}");
    }
}

#[tokio::test]
async fn a_server_behind_a_base_path_is_reached() {
    let fake = FakeOllama::start().await;
    let client = Ollama::new(config(&format!("http://{}/ollama", fake.addr))).unwrap();
    let error = fail(&client, request("Write.")).await;
    assert_eq!(error.code, "ollama.not_ollama");
    assert_eq!(fake.n_requests("POST /ollama/api/show"), 1);
}

#[test]
fn the_configuration_has_no_unused_keys() {
    let unknown = json!({ "base_url": "http://127.0.0.1:11434", "num_context": 1 });
    assert!(serde_json::from_value::<dalsegno::providers::ollama::Config>(unknown).is_err());
    assert_eq!(config("http://127.0.0.1:11434").check(), []);
}
