//! Answers in any pieces, at any speed.

use std::time::Duration;

use dalsegno::providers::{EventSink, Outcome};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{
    behaviours,
    dialects::{Answer, Dialect},
    server::{Play, ScriptedServer},
};
use crate::providers::{
    requests::{ask, request, text_of, watch},
    transport::Step,
};

behaviours![
    a_stream_may_be_split_at_every_byte,
    a_stream_may_be_split_in_two_anywhere,
    a_tool_call_may_be_split_at_every_byte,
    characters_split_between_packets_arrive_whole,
    events_may_arrive_all_at_once,
    lines_may_end_with_carriage_returns,
    blank_lines_are_ignored,
    comments_in_a_stream_are_ignored,
    a_last_line_without_a_line_end_counts,
    bytes_after_the_end_are_ignored,
    an_answer_that_is_not_streamed_is_read,
    a_missing_end_after_the_finish_counts,
    a_slow_stream_is_read_to_its_end,
    an_idle_event_reader_blocks_nothing,
];

const TEXT: &str = "Größe 語 🎼 e\u{301}";

fn answer() -> Answer {
    Answer::of(&["Größe ", "語 🎼", " e\u{301}"]).thinks(&["Hm ß."])
}

async fn play(dialect: &'static dyn Dialect, play: Play) -> Outcome {
    let server = ScriptedServer::playing(dialect, [play]).await;
    ask(&*server.provider(), request("Write.")).await.unwrap()
}

fn check_whole(outcome: &Outcome) {
    assert_eq!(outcome.message.text, TEXT);
    assert_eq!(outcome.thinking.as_deref(), Some("Hm ß."));
    assert_eq!(outcome.usage.prompt(), Some(20));
}

async fn a_stream_may_be_split_at_every_byte(dialect: &'static dyn Dialect) {
    let bytes = dialect.events(&answer()).concat();
    check_whole(&play(dialect, Play::Stream(vec![Step::ByteByByte(bytes), Step::End])).await);
}

async fn a_stream_may_be_split_in_two_anywhere(dialect: &'static dyn Dialect) {
    let bytes = dialect.events(&Answer::of(&["語."])).concat();
    let halves = (1..bytes.len()).map(|at| {
        let (first, second) = bytes.split_at(at);
        Play::chunks([first.to_vec(), second.to_vec()])
    });
    let server = ScriptedServer::playing(dialect, halves).await;
    let provider = server.provider();
    for at in 1..bytes.len() {
        let outcome = ask(&*provider, request("Write.")).await.unwrap();
        assert_eq!(outcome.message.text, "語.", "split at {at}");
    }
}

async fn a_tool_call_may_be_split_at_every_byte(dialect: &'static dyn Dialect) {
    let arguments = json!({ "what": TEXT, "n": [1, { "deep": null }] });
    let call = Answer::of(&[]).calls(Some("call_7"), "look_up", arguments.clone());
    let bytes = dialect.events(&call).concat();
    let outcome = play(dialect, Play::Stream(vec![Step::ByteByByte(bytes), Step::End])).await;
    let [call] = outcome.message.tool_calls.as_slice() else { panic!("{outcome:?}") };
    assert_eq!((call.id.as_str(), call.name.as_str()), ("call_7", "look_up"));
    assert_eq!(call.arguments, arguments);
}

async fn characters_split_between_packets_arrive_whole(dialect: &'static dyn Dialect) {
    let bytes = dialect.events(&answer()).concat();
    let pieces = bytes.chunks(3).map(<[u8]>::to_vec);
    let server = ScriptedServer::playing(dialect, [Play::chunks(pieces)]).await;
    let (outcome, events) = watch(&*server.provider(), request("Write.")).await;
    check_whole(&outcome.unwrap());
    assert_eq!(text_of(&events), TEXT);
}

async fn events_may_arrive_all_at_once(dialect: &'static dyn Dialect) {
    check_whole(&play(dialect, Play::chunks([dialect.events(&answer()).concat()])).await);
}

async fn lines_may_end_with_carriage_returns(dialect: &'static dyn Dialect) {
    let text = String::from_utf8(dialect.events(&answer()).concat()).unwrap();
    check_whole(&play(dialect, Play::chunks([text.replace('\n', "\r\n").into_bytes()])).await);
}

async fn blank_lines_are_ignored(dialect: &'static dyn Dialect) {
    let events = dialect.events(&answer());
    let chunks = events.into_iter().flat_map(|event| [b"\n \n".to_vec(), event]);
    check_whole(&play(dialect, Play::chunks(chunks)).await);
}

async fn comments_in_a_stream_are_ignored(dialect: &'static dyn Dialect) {
    let events = dialect.events(&answer());
    let waiting = b": PROCESSING\n\nevent: message\nid: 7\nretry: 1\n".to_vec();
    let chunks = events.into_iter().flat_map(|event| [waiting.clone(), event]);
    check_whole(&play(dialect, Play::chunks(chunks)).await);
}

async fn a_last_line_without_a_line_end_counts(dialect: &'static dyn Dialect) {
    let mut bytes = dialect.events(&answer()).concat();
    while bytes.last() == Some(&b'\n') {
        bytes.pop();
    }
    check_whole(&play(dialect, Play::chunks([bytes])).await);
}

async fn bytes_after_the_end_are_ignored(dialect: &'static dyn Dialect) {
    let mut chunks = dialect.events(&answer());
    chunks.push(b"more\n".to_vec());
    check_whole(&play(dialect, Play::chunks(chunks)).await);
}

async fn an_answer_that_is_not_streamed_is_read(dialect: &'static dyn Dialect) {
    let message = json!({ "role": "assistant", "content": TEXT, "reasoning_content": "Hm ß." });
    let whole = json!({
        "choices": [{ "index": 0, "message": message, "finish_reason": "stop" }],
        "usage": { "prompt_tokens": 20, "completion_tokens": 3 },
    });
    let pretty = serde_json::to_string_pretty(&whole).unwrap();
    for body in [whole.to_string(), pretty] {
        check_whole(&play(dialect, Play::chunks([body.into_bytes()])).await);
    }
}

async fn a_missing_end_after_the_finish_counts(dialect: &'static dyn Dialect) {
    let mut events = dialect.events(&answer());
    events.pop();
    check_whole(&play(dialect, Play::chunks(events.clone())).await);
    // Also if the connection breaks there.
    let steps = events.into_iter().map(Step::Bytes).chain([Step::HangUp]).collect();
    check_whole(&play(dialect, Play::Stream(steps)).await);
}

async fn a_slow_stream_is_read_to_its_end(dialect: &'static dyn Dialect) {
    let pieces = dialect.events(&answer());
    let every = Duration::from_millis(2);
    check_whole(
        &play(dialect, Play::Stream(vec![Step::Trickle { pieces, every }, Step::End])).await,
    );
}

async fn an_idle_event_reader_blocks_nothing(dialect: &'static dyn Dialect) {
    let answer = Answer { pieces: vec!["word ".to_owned(); 2_000], ..Answer::of(&[]) };
    let server = ScriptedServer::playing(dialect, [Play::Answers(answer)]).await;
    let (sink, events) = EventSink::channel(1);
    let provider = server.provider();
    let call = provider.run(request("Write."), sink, CancellationToken::new());
    let outcome = tokio::time::timeout(crate::app::SOON, call).await.unwrap().unwrap();
    assert_eq!(outcome.message.text.len(), 10_000);
    drop(events);
}
