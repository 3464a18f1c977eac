//! Faults of a reachable server: each has its error class, ends by itself, and uses bounded memory.

use std::{sync::atomic::Ordering, time::Duration};

use dalsegno::providers::{Class, Event, Scope};
use serde_json::json;
use tokio::sync::mpsc::Receiver;

use super::{
    fake_ollama::{FakeOllama, Play, Step, line},
    ollama_answers::{done, says, stream},
    requests::{OVERFLOW, RETRY, TRUNCATED, ask, fail, impatient, message, request, time_out},
};

const MIB: usize = 1 << 20;

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
async fn an_error_inside_a_good_stream_is_an_error() {
    let broke = line(&json!({ "error": "model runner has unexpectedly stopped" }));
    let play = stream([says("Once upon"), broke]);
    check(play, "ollama.failed_in_stream", RETRY).await;
    let full = line(&json!({ "error": { "type": "exceed_context_size_error", "code": 400 } }));
    check(stream([says("Once"), full]), "ollama.overflow", OVERFLOW).await;
}

#[tokio::test]
async fn a_stream_without_its_last_line_is_not_an_answer() {
    check(stream([says("Once upon")]), "ollama.ended_early", RETRY).await;
    check(stream([]), "ollama.ended_early", RETRY).await;
    let mut whole = says("upon");
    whole.pop();
    check(stream([says("Once"), whole]), "ollama.ended_early", RETRY).await;
    let mut half = done(&json!({}));
    half.truncate(half.len() / 2);
    check(stream([says("Once"), half]), "ollama.ended_early", RETRY).await;
    let steps = vec![Step::Bytes(says("Once")), Step::HangUp];
    check(Play::Stream(steps), "ollama.broken", RETRY).await;
    check(Play::HangsUp, "ollama.broken", RETRY).await;
}

#[tokio::test]
async fn invalid_stream_lines_are_refused() {
    check(stream([b"<html>\n".to_vec()]), "ollama.malformed", RETRY).await;
    check(stream([b"{\"message\":\"\xff\xfe\"}\n".to_vec()]), "ollama.malformed", RETRY).await;
}

#[tokio::test]
async fn silence_ends_with_its_timeout_at_every_stage() {
    let midway = || Play::Stream(vec![Step::Bytes(says("Once")), Step::Stall]);
    let cases = [
        (Play::NeverBegins, impatient(100, 10_000, 10_000), "ollama.silent"),
        (Play::Stream(vec![Step::Stall]), impatient(100, 10_000, 10_000), "ollama.silent"),
        (midway(), impatient(10_000, 100, 10_000), "ollama.silent"),
        (midway(), impatient(10_000, 10_000, 100), "ollama.too_long"),
        (Play::NeverBegins, impatient(10_000, 10_000, 100), "ollama.too_long"),
    ];
    for (place, (play, request, code)) in cases.into_iter().enumerate() {
        let fake = FakeOllama::playing([play]).await;
        let begun = async |events: &mut Receiver<Event>| {
            fake.wait_for_chats(1).await;
            // In these cases, the beginning of the answer has to arrive.
            while [2, 3].contains(&place) {
                if let Some(Event::Text(_)) | None = events.recv().await {
                    break;
                }
            }
        };
        let error = time_out(&fake.client(), request, begun).await;
        assert_eq!((error.code, error.class), (code, RETRY), "{error}");
        // The server notices the disconnect and stops generating.
        fake.wait_for_disconnects(1).await;
    }
}

#[tokio::test]
async fn an_endless_stream_ends_with_the_total_timeout() {
    let flood = Step::Flood { bytes: says("and "), n_bytes: usize::MAX };
    let fake = FakeOllama::playing([Play::Stream(vec![flood])]).await;
    let mut request = request("Write.");
    request.timeouts.total = Some(Duration::from_millis(300));
    let error = fail(&fake.client(), request).await;
    assert_eq!((error.code, error.class), ("ollama.too_long", RETRY), "{error}");
}

#[tokio::test]
async fn a_line_of_64_mb_is_not_read_to_its_end() {
    let flood = Step::Flood { bytes: vec![b'x'; 64 << 10], n_bytes: 64 * MIB };
    let fake = FakeOllama::playing([Play::Stream(vec![flood, Step::End])]).await;
    let mut request = request("Write.");
    request.reserve_tokens = 65_536;
    let error = fail(&fake.client(), request).await;
    assert_eq!((error.code, error.class), ("ollama.too_much", RETRY), "{error}");
    assert!(error.to_string().contains("a line of"), "{error}");
    let sent = fake.state.n_bytes_sent.load(Ordering::Relaxed);
    assert!(sent < 32 * MIB, "{sent} bytes were read");
}

#[tokio::test]
async fn an_endless_answer_is_buffered_only_up_to_its_reserve() {
    for (reserve_tokens, n_mib_taken) in [(512, 24), (65_536, 96)] {
        // Each line is just below the limit of a line.
        let flood = Step::Flood { bytes: says(&"x".repeat(6 * MIB)), n_bytes: 120 * MIB };
        let fake = FakeOllama::playing([Play::Stream(vec![flood, Step::End])]).await;
        let mut request = request("Write.");
        request.reserve_tokens = reserve_tokens;
        let error = fail(&fake.client(), request).await;
        assert_eq!((error.code, error.class), ("ollama.too_much", RETRY), "{error}");
        assert!(fake.state.n_bytes_sent.load(Ordering::Relaxed) < n_mib_taken * MIB);
    }
}

#[tokio::test]
async fn a_full_queue_postpones_without_using_up_an_attempt() {
    let busy = r#"{"error":"server busy, please try again.  maximum pending requests exceeded"}"#;
    let snooze = |secs| Class::Snooze { after: Duration::from_secs(secs), scope: Scope::Host };
    check(Play::Status(503, "", busy), "ollama.busy", snooze(0)).await;
    check(Play::Status(503, "retry-after: 42\r\n", busy), "ollama.busy", snooze(42)).await;
    check(Play::Status(503, "retry-after: 99999999\r\n", busy), "ollama.busy", snooze(3600)).await;
    check(Play::Status(429, "retry-after: 0\r\n", "{}"), "ollama.busy", snooze(0)).await;
    let date =
        "date: Sun, 22 Nov 2026 08:00:00 GMT\r\nretry-after: Sun, 22 Nov 2026 08:01:30 GMT\r\n";
    check(Play::Status(429, date, "{}"), "ollama.busy", snooze(90)).await;
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

#[tokio::test]
async fn other_refusals_are_distinguished() {
    let invalid = r#"{"error":"invalid message role"}"#;
    check(Play::Status(400, "", invalid), "ollama.refused", Class::Reject).await;
    check(Play::Status(404, "", "not here"), "ollama.not_ollama", Class::Fail).await;
    check(Play::Status(401, "", ""), "ollama.authentication_required", Class::Fail).await;
    check(Play::Status(500, "", r#"{"error":"llama runner died"}"#), "ollama.failed", RETRY).await;
    check(Play::Status(502, "", "<html>Bad gateway"), "ollama.failed", RETRY).await;
    check(Play::Status(413, "", ""), "ollama.overflow", OVERFLOW).await;
}

#[tokio::test]
async fn a_refusal_of_the_first_message_does_not_rebuild() {
    let invalid = r#"{"error":"invalid options"}"#;
    let fake = FakeOllama::playing([Play::Status(400, "", invalid)]).await;
    let mut request = request("Write.");
    request.messages = request.messages.split_off(2);
    assert_eq!(fail(&fake.client(), request).await.class, Class::Reject);
}

#[tokio::test]
async fn an_answer_without_text_is_an_error() {
    check(stream([done(&json!({}))]), "ollama.empty", RETRY).await;
    check(stream([says("<think>Hm."), done(&json!({}))]), "ollama.empty", RETRY).await;
    // A retry would end in the same way, so the error is not retryable.
    let no_room = done(&json!({ "done_reason": "length", "eval_count": 512 }));
    check(stream([no_room]), "ollama.no_room", Class::Fail).await;
    let full = done(&json!({ "done_reason": "length", "prompt_eval_count": 4095 }));
    check(stream([full]), "ollama.overflow", OVERFLOW).await;
}

#[tokio::test]
async fn an_empty_history_sends_no_request() {
    let fake = FakeOllama::start().await;
    let mut request = request(" \n");
    request.messages = vec![message(dalsegno::transcript::Role::User, " \n").into()];
    let error = fail(&fake.client(), request).await;
    assert_eq!((error.code, error.class), ("ollama.nothing_to_send", Class::Fail));
    assert_eq!(fake.chats().len(), 0);
}

#[tokio::test]
async fn an_idle_event_reader_blocks_nothing() {
    let pieces = (0..2_000).map(|_| says("word ")).chain([done(&json!({}))]);
    let fake = FakeOllama::playing([stream(pieces)]).await;
    let (sink, events) = dalsegno::providers::EventSink::channel(1);
    let client = fake.client();
    let call = dalsegno::providers::Provider::run(
        &client,
        request("Write."),
        sink,
        tokio_util::sync::CancellationToken::new(),
    );
    let outcome = tokio::time::timeout(crate::app::SOON, call).await.unwrap().unwrap();
    assert_eq!(outcome.message.text.len(), 10_000);
    drop(events);
}
