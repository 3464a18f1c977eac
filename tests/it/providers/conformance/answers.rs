//! Good answers: their text, thinking, counts and times.

use dalsegno::{
    providers::{Event, Outcome, Status, StopReason, Usage},
    transcript::{Message, Role},
};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::{
    behaviours,
    dialects::{Answer, Dialect},
    server::{Play, ScriptedServer},
};
use crate::providers::requests::{ask, request, text_of, watch};

behaviours![
    an_answer_arrives_whole,
    an_answer_is_streamed_as_it_arrives,
    the_first_event_is_the_request_with_its_hash,
    the_model_is_named_when_the_call_begins,
    tokens_are_counted_by_the_server,
    cached_tokens_are_counted_apart,
    a_missing_count_is_unknown_and_not_zero,
    impossible_counts_are_unknown,
    more_cached_than_read_tokens_are_unknown,
    the_window_is_reported,
    the_first_byte_and_the_whole_call_are_timed,
    an_answer_that_fills_its_reserve_is_flagged,
    an_answer_without_thinking_has_none,
    thinking_in_a_field_is_kept_apart,
    thinking_in_tags_is_kept_apart,
    tags_in_the_middle_of_an_answer_are_text,
    thinking_is_announced_before_the_answer,
    characters_of_every_script_arrive_unchanged,
    empty_pieces_change_nothing,
    space_within_an_answer_is_kept,
    a_long_answer_arrives_whole,
    the_ledger_counts_by_our_own_id,
];

/// Plays one answer, and returns what the provider made of it.
pub async fn outcome(dialect: &'static dyn Dialect, answer: Answer) -> Outcome {
    let server = ScriptedServer::playing(dialect, [Play::Answers(answer)]).await;
    ask(&*server.provider(), request("Write.")).await.unwrap()
}

async fn text(dialect: &'static dyn Dialect, pieces: &[&str]) -> String {
    outcome(dialect, Answer::of(pieces)).await.message.text
}

async fn an_answer_arrives_whole(dialect: &'static dyn Dialect) {
    let outcome = outcome(dialect, Answer::of(&["A ", "good ", "answer."])).await;
    assert_eq!(outcome.message, Message::new(Role::Assistant, "A good answer."));
    assert_eq!(outcome.stop, StopReason::End);
    assert!(outcome.conversation.is_none() && outcome.spent.is_empty());
}

async fn an_answer_is_streamed_as_it_arrives(dialect: &'static dyn Dialect) {
    let server =
        ScriptedServer::playing(dialect, [Play::Answers(Answer::of(&["A ", "good ", "one."]))]);
    let (outcome, events) = watch(&*server.await.provider(), request("Write.")).await;
    assert_eq!(text_of(&events), outcome.unwrap().message.text);
    let n_texts = events.iter().filter(|event| matches!(event, Event::Text(_))).count();
    assert!(n_texts >= 2, "{events:?}");
}

async fn the_first_event_is_the_request_with_its_hash(dialect: &'static dyn Dialect) {
    let server = ScriptedServer::playing(dialect, []).await;
    let (outcome, events) = watch(&*server.provider(), request("Write.")).await;
    outcome.unwrap();
    let Event::Sent(sent) = &events[0] else { panic!("{events:?}") };
    assert_eq!(sent.sha256[..], Sha256::digest(&server.bodies()[0])[..]);
}

async fn the_model_is_named_when_the_call_begins(dialect: &'static dyn Dialect) {
    let server = ScriptedServer::playing(dialect, []).await;
    let (_, events) = watch(&*server.provider(), request("Write.")).await;
    assert_eq!(events[1], Event::Started { model: "qwen3:8b".to_owned() });
}

async fn tokens_are_counted_by_the_server(dialect: &'static dyn Dialect) {
    let usage = outcome(dialect, Answer::of(&["Yes."]).counts(345, 12)).await.usage;
    assert_eq!((usage.prompt(), usage.output), (Some(345), Some(12)));
    assert_eq!(usage.context(), Some(357));
}

async fn cached_tokens_are_counted_apart(dialect: &'static dyn Dialect) {
    let answer = dialect.caches(Answer::of(&["Yes."]).counts(1000, 3), 900);
    let usage = outcome(dialect, answer).await.usage;
    assert_eq!((usage.input, usage.cache_read), (Some(100), Some(900)));
    assert_eq!(usage.prompt(), Some(1000));
}

async fn a_missing_count_is_unknown_and_not_zero(dialect: &'static dyn Dialect) {
    let outcome = outcome(dialect, Answer::of(&["Yes."]).uncounted()).await;
    assert_eq!(outcome.usage, Usage::default());
    assert_eq!(outcome.message.text, "Yes.");
}

async fn impossible_counts_are_unknown(dialect: &'static dyn Dialect) {
    let wrong: [(Value, Value); 6] = [
        (Value::Null, Value::Null),
        (json!(0), json!(0)),
        (json!(-5), json!(-1)),
        (json!(1e300), json!(99_999_999)),
        (json!("many"), json!([])),
        (json!(4097), json!(4097)),
    ];
    for (prompt, answer) in wrong {
        let counted = Answer::of(&["Yes."]).counts(prompt.clone(), answer);
        let server = ScriptedServer::playing(dialect, [Play::Answers(counted)]).await;
        let mut request = request("Write.");
        request.estimated_prompt_tokens = Some(3_000);
        let outcome = ask(&*server.provider(), request).await.unwrap();
        assert_eq!(outcome.message.text, "Yes.", "{prompt}");
        assert_eq!((outcome.usage.input, outcome.usage.output), (None, None), "{prompt}");
    }
}

async fn more_cached_than_read_tokens_are_unknown(dialect: &'static dyn Dialect) {
    let answer = dialect.caches(Answer::of(&["Yes."]).counts(100, 3), 101);
    let usage = outcome(dialect, answer).await.usage;
    assert_eq!((usage.input, usage.cache_read), (Some(100), None));
}

async fn the_window_is_reported(dialect: &'static dyn Dialect) {
    let server = ScriptedServer::playing(dialect, []).await;
    let provider = server.provider();
    let outcome = ask(&*provider, request("Write.")).await.unwrap();
    assert_eq!(outcome.window_tokens, Some(4096));
    let cancel = tokio_util::sync::CancellationToken::new();
    assert_eq!(provider.window_tokens("qwen3:8b", &cancel).await, 4096);
}

async fn the_first_byte_and_the_whole_call_are_timed(dialect: &'static dyn Dialect) {
    let durations = outcome(dialect, Answer::of(&["Yes."])).await.durations;
    assert!(durations.first_byte.unwrap() <= durations.total);
}

async fn an_answer_that_fills_its_reserve_is_flagged(dialect: &'static dyn Dialect) {
    let cut = Answer::of(&["On and on"]).counts(20, 512).cut();
    assert_eq!(outcome(dialect, cut).await.stop, StopReason::Length);
}

async fn an_answer_without_thinking_has_none(dialect: &'static dyn Dialect) {
    assert_eq!(outcome(dialect, Answer::of(&["Yes."])).await.thinking, None);
}

/// Checks that "Hm. So." is thinking and "Yes." is text, in the outcome and in the events.
async fn check_thinking(dialect: &'static dyn Dialect, answer: Answer) -> Vec<Event> {
    let server = ScriptedServer::playing(dialect, [Play::Answers(answer)]).await;
    let (outcome, events) = watch(&*server.provider(), request("Write.")).await;
    let outcome = outcome.unwrap();
    assert_eq!(outcome.message.text, "Yes.");
    assert_eq!(outcome.thinking.as_deref(), Some("Hm. So."));
    assert_eq!(text_of(&events), "Yes.");
    events
}

async fn thinking_in_a_field_is_kept_apart(dialect: &'static dyn Dialect) {
    check_thinking(dialect, Answer::of(&["Yes."]).thinks(&["Hm. ", "So."])).await;
}

async fn thinking_in_tags_is_kept_apart(dialect: &'static dyn Dialect) {
    let whole = Answer::of(&["<think>Hm. So.</think>\n\nYes."]);
    let split = Answer::of(&["<thi", "nk>Hm. ", "So.</th", "ink>\n\n", "Yes."]);
    for answer in [whole, split] {
        check_thinking(dialect, answer).await;
    }
}

async fn tags_in_the_middle_of_an_answer_are_text(dialect: &'static dyn Dialect) {
    let said = "Write <think>x</think> so.";
    assert_eq!(text(dialect, &[said]).await, said);
    assert_eq!(text(dialect, &["<thi"]).await, "<thi", "the beginning of a tag");
}

async fn thinking_is_announced_before_the_answer(dialect: &'static dyn Dialect) {
    let events = check_thinking(dialect, Answer::of(&["Yes."]).thinks(&["Hm. ", "So."])).await;
    let statuses: Vec<_> =
        events.iter().filter(|event| matches!(event, Event::Status(_))).collect();
    let expected = [Event::Status(Status::Thinking), Event::Status(Status::Answering)];
    assert!(statuses.into_iter().eq(&expected), "{events:?}");
}

async fn characters_of_every_script_arrive_unchanged(dialect: &'static dyn Dialect) {
    let said = "Größe 語 🎼 e\u{301} \u{202e}\u{2028}\u{1}\"\\</think>";
    assert_eq!(text(dialect, &[said]).await, said);
}

async fn empty_pieces_change_nothing(dialect: &'static dyn Dialect) {
    assert_eq!(text(dialect, &["", "Yes", "", ".", ""]).await, "Yes.");
}

async fn space_within_an_answer_is_kept(dialect: &'static dyn Dialect) {
    let said = "A  b\n\n\tc \r\n d";
    assert_eq!(text(dialect, &["A  b\n", "\n\tc ", "\r\n d"]).await, said);
}

async fn a_long_answer_arrives_whole(dialect: &'static dyn Dialect) {
    let piece = "word ".repeat(1_000);
    let answer = Answer { pieces: vec![piece.clone(); 100], ..Answer::of(&[]) };
    let server = ScriptedServer::playing(dialect, [Play::Answers(answer)]).await;
    let mut request = request("Write.");
    request.reserve_tokens = 2_000;
    let outcome = ask(&*server.provider(), request).await.unwrap();
    assert!(outcome.message.text == piece.repeat(100));
}

async fn the_ledger_counts_by_our_own_id(dialect: &'static dyn Dialect) {
    // Servers repeat their ids. A call that is counted by such an id would be lost.
    assert_eq!(outcome(dialect, Answer::of(&["Yes."])).await.provider_message_id, None);
}
