//! Requests to Ollama, and its good answers.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use dalsegno::{
    providers::{Event, Options, Status, StopReason, Think, ollama::Ollama},
    transcript::{Message, Role, ToolCall},
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

fn thinks(thinking: &str) -> Vec<u8> {
    line(&json!({
        "message": { "role": "assistant", "content": "", "thinking": thinking },
        "done": false,
    }))
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
async fn a_history_with_tools_is_sent_in_whole_pairs() {
    let fake = FakeOllama::start().await;
    let mut request = request("And now?");
    let call = |id: &str| ToolCall {
        id: id.to_owned(),
        name: "look_up".to_owned(),
        arguments: json!({ "what": id }),
    };
    let calls =
        Message { tool_calls: vec![call("c1"), call("c2")], ..message(Role::Assistant, "") };
    let result = Message {
        tool_call_id: Some("c2".to_owned()),
        tool_name: Some("look_up".to_owned()),
        ..message(Role::Tool, "found")
    };
    request
        .messages
        .splice(2..2, [calls, result, message(Role::Notice, "Interrupted.")].map(Arc::new));
    ask(&fake.client(), request).await.unwrap();
    let sent = &fake.chats()[0]["messages"];
    let expected_call = json!({
        "id": "c1", "function": { "index": 0, "name": "look_up", "arguments": { "what": "c1" } },
    });
    // Text before the calls is sent with them, because two messages of one role must not follow each other.
    assert_eq!(sent[2]["content"], "Hello!");
    assert_eq!(sent[2]["tool_calls"][0], expected_call);
    assert_eq!(sent[3]["tool_call_id"], "c1");
    assert!(sent[3]["content"].as_str().unwrap().contains("interrupted"));
    let expected_result = json!({
        "role": "tool", "content": "found", "tool_name": "look_up", "tool_call_id": "c2",
    });
    assert_eq!(sent[4], expected_result);
    assert_eq!(sent[5]["content"], "Interrupted.\n\nAnd now?");
}

#[tokio::test]
async fn calls_in_an_answer_get_ids_of_their_own() {
    let call = json!({ "function": { "name": "look_up", "arguments": { "what": "it" } } });
    let named = json!({ "id": "call_9", "function": { "name": "stop", "arguments": {} } });
    let answer = json!({
        "message": { "role": "assistant", "content": "", "tool_calls": [call, named] },
        "done": false,
    });
    let fake = FakeOllama::playing([stream([line(&answer), done(&json!({}))])]).await;
    let outcome = ask(&fake.client(), request("Write.")).await.unwrap();
    assert_eq!(outcome.stop, StopReason::ToolCalls);
    let ids: Vec<_> = outcome.message.tool_calls.iter().map(|call| call.id.as_str()).collect();
    assert_eq!(ids, ["turn-1-0", "call_9"]);
}

#[tokio::test]
async fn thinking_is_kept_apart_in_every_server_format() {
    let field = stream([thinks("Hm. "), thinks("So."), says("Yes."), done(&json!({}))]);
    let pieces = ["<thi", "nk>Hm. ", "So.</th", "ink>\n\n", "Yes."];
    let tags = stream(pieces.map(says).into_iter().chain([done(&json!({}))]));
    let fake = FakeOllama::playing([field, tags]).await;
    let client = fake.client();
    for _ in 0..2 {
        let (outcome, events) = watch(&client, request("Write.")).await;
        let outcome = outcome.unwrap();
        assert_eq!(outcome.message.text, "Yes.");
        assert_eq!(outcome.thinking.as_deref(), Some("Hm. So."));
        assert_eq!(text_of(&events), "Yes.");
        let statuses: Vec<_> =
            events.iter().filter(|event| matches!(event, Event::Status(_))).collect();
        let expected = [Event::Status(Status::Thinking), Event::Status(Status::Answering)];
        assert!(statuses.into_iter().eq(&expected), "{events:?}");
    }
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
async fn characters_split_between_packets_arrive_whole() {
    let text = "Größe 語 🎼 e\u{301}";
    let bytes = [says(text), done(&json!({}))].concat();
    let steps = vec![Step::ByteByByte(bytes), Step::End];
    let fake = FakeOllama::playing([Play::Stream(steps)]).await;
    let (outcome, events) = watch(&fake.client(), request("Write.")).await;
    assert_eq!(outcome.unwrap().message.text, text);
    assert_eq!(text_of(&events), text);
}

#[tokio::test]
async fn a_last_line_without_a_newline_counts() {
    let mut last = done(&json!({}));
    last.pop();
    let fake = FakeOllama::playing([stream([says("Yes."), last])]).await;
    assert_eq!(ask(&fake.client(), request("Write.")).await.unwrap().message.text, "Yes.");
}

#[tokio::test]
async fn an_answer_that_fills_its_reserve_is_flagged() {
    let last = done(&json!({ "done_reason": "length", "eval_count": 512 }));
    let fake = FakeOllama::playing([stream([says("On and on"), last])]).await;
    let outcome = ask(&fake.client(), request("Write.")).await.unwrap();
    assert_eq!(outcome.stop, StopReason::Length);
}

#[tokio::test]
async fn cached_tokens_are_counted_separately() {
    let last = done(&json!({ "prompt_eval_count": 1000, "prompt_eval_cached_count": 900 }));
    let fake = FakeOllama::playing([stream([says("Yes."), last])]).await;
    let usage = ask(&fake.client(), request("Write.")).await.unwrap().usage;
    assert_eq!((usage.input, usage.cache_read), (Some(100), Some(900)));
    assert_eq!((usage.prompt(), usage.context()), (Some(1000), Some(1003)));
}

#[tokio::test]
async fn impossible_counts_are_unknown_and_the_answer_is_kept() {
    let wrong = [
        json!({ "prompt_eval_count": null, "eval_count": null }),
        json!({ "prompt_eval_count": 0, "eval_count": 0 }),
        json!({ "prompt_eval_count": -5, "eval_count": -1 }),
        json!({ "prompt_eval_count": 1e300, "eval_count": 99_999_999 }),
        json!({ "prompt_eval_count": "many", "eval_count": [] }),
        json!({ "prompt_eval_count": 4097, "eval_count": 4097 }),
    ];
    let plays = wrong.iter().map(|wrong| stream([says("Yes."), done(wrong)]));
    let fake = FakeOllama::playing(plays).await;
    let client = fake.client();
    for wrong in &wrong {
        let mut request = request("Write.");
        request.estimated_prompt_tokens = Some(3_000);
        let outcome = ask(&client, request).await.unwrap();
        assert_eq!(outcome.message.text, "Yes.", "{wrong}");
        assert_eq!((outcome.usage.input, outcome.usage.output), (None, None), "{wrong}");
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
