//! Faults that only an Ollama server has. The suite `conformance` has those of all servers.

use dalsegno::providers::Class;
use serde_json::json;

use super::{
    fake_ollama::{FakeOllama, Play},
    ollama_answers::{done, says, stream},
    requests::{OVERFLOW, TRUNCATED, ask, fail, request},
};

/// Plays once, and checks code and class of the error.
async fn check(play: Play, code: &str, class: Class) {
    let fake = FakeOllama::playing([play]).await;
    let error = fail(&fake.client(), request("Write.")).await;
    assert_eq!((error.code, error.class), (code, class), "{error}");
    assert_eq!(fake.chats().len(), 1, "one attempt");
}

fn long_request(estimated: u32) -> dalsegno::providers::Request {
    let mut request = request(&"word ".repeat(6_000));
    request.estimated_prompt_tokens = Some(estimated);
    request
}

#[tokio::test]
async fn a_silently_truncated_prompt_gives_no_answer() {
    let fake = FakeOllama::playing([Play::IgnoresTruncate]).await;
    let error = fail(&fake.client(), long_request(4_000)).await;
    assert_eq!((error.code, error.class), ("ollama.truncated", TRUNCATED), "{error}");
    // The tokens are spent anyway.
    assert_eq!(error.usage.unwrap().input, Some(2050));
}

#[tokio::test]
async fn a_refused_long_prompt_is_an_overflow() {
    let fake = FakeOllama::start().await;
    let error = fail(&fake.client(), long_request(4_000)).await;
    assert_eq!((error.code, error.class), ("ollama.overflow", OVERFLOW), "{error}");
}

#[tokio::test]
async fn an_old_servers_low_count_is_unknown_unless_the_window_was_nearly_full() {
    let plays = || [stream([says("Yes."), done(&json!({ "prompt_eval_count": 30 }))])];
    let fake = FakeOllama::playing(plays()).await;
    *fake.state.version.lock().unwrap() = "0.29.0".to_owned();
    let client = fake.client();
    let mut request = request("Write.");
    request.estimated_prompt_tokens = Some(3_000);
    assert_eq!(ask(&client, request.clone()).await.unwrap().usage.input, None);
    fake.state.plays.lock().unwrap().extend(plays());
    request.estimated_prompt_tokens = Some(4_000);
    let error = fail(&client, request).await;
    assert_eq!(error.class, TRUNCATED);
}

#[tokio::test]
async fn a_missing_model_is_reported_with_the_pull_command() {
    let missing = r#"{"error":"model 'qwen3:8b' not found"}"#;
    check(Play::Status(404, "", missing), "ollama.model_missing", Class::Fail).await;
    // Usually the request for the model's details fails first.
    let fake = FakeOllama::start().await;
    *fake.state.shown.lock().unwrap() = serde_json::from_str(missing).unwrap();
    let error = fail(&fake.client(), request("Write.")).await;
    assert_eq!((error.code, error.class), ("ollama.model_missing", Class::Fail));
    assert!(error.to_string().contains("ollama pull qwen3:8b"), "{error}");
    assert_eq!(fake.chats().len(), 0);
}
