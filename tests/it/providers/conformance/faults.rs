//! Faults of a server that has accepted a call: each has its class, ends by itself, and uses bounded memory.

use std::sync::atomic::Ordering;

use dalsegno::providers::{Class, Scope};

use super::{
    behaviours,
    dialects::{Answer, Dialect},
    server::{Play, ScriptedServer},
};
use crate::providers::{
    requests::{OVERFLOW, RETRY, TRUNCATED, fail, request},
    transport::Step,
};

behaviours![
    an_error_in_a_stream_is_an_error,
    a_prompt_that_is_too_long_is_recognised_in_a_stream,
    a_busy_error_in_a_stream_postpones,
    a_stream_that_ends_early_is_not_an_answer,
    a_stream_that_ends_in_a_line_is_not_an_answer,
    an_empty_stream_is_not_an_answer,
    a_connection_that_breaks_in_a_stream_is_retried,
    a_connection_that_breaks_before_the_answer_is_retried,
    malformed_json_is_retried,
    invalid_utf_8_is_retried,
    html_with_status_200_is_not_the_api,
    an_empty_answer_is_retried,
    an_answer_of_thinking_alone_is_retried,
    an_answer_that_only_thinks_up_to_its_reserve_fails,
    a_window_that_is_full_before_the_answer_is_compacted,
    a_filtered_answer_is_rejected,
    a_silently_cut_prompt_gives_no_answer,
    a_low_count_of_a_short_prompt_is_accepted,
    a_line_of_64_mb_is_not_read_to_its_end,
    an_endless_answer_is_read_up_to_its_reserve,
];

const MIB: usize = 1 << 20;

async fn check(dialect: &'static dyn Dialect, play: Play, code: &str, class: Class) {
    let server = ScriptedServer::playing(dialect, [play]).await;
    let error = fail(&*server.provider(), request("Write.")).await;
    let codes = dialect.codes();
    assert_eq!((error.code, error.class), (&*format!("{codes}.{code}"), class), "{error}");
    assert_eq!(server.bodies().len(), 1, "one attempt");
}

/// Returns the events of an answer without its end.
fn begun(dialect: &dyn Dialect) -> Vec<Vec<u8>> {
    let whole = dialect.events(&Answer::of(&["Once upon"]));
    let is_of_text = |event: &Vec<u8>| String::from_utf8_lossy(event).contains("Once upon");
    whole.into_iter().filter(is_of_text).collect()
}

async fn an_error_in_a_stream_is_an_error(dialect: &'static dyn Dialect) {
    let mut chunks = begun(dialect);
    chunks.push(dialect.error_event("the model runner has unexpectedly stopped"));
    check(dialect, Play::chunks(chunks), "failed_in_stream", RETRY).await;
}

async fn a_prompt_that_is_too_long_is_recognised_in_a_stream(dialect: &'static dyn Dialect) {
    let full = dialect.error_event("request (9 tokens) exceeds the available context size");
    check(dialect, Play::chunks([full]), "overflow", OVERFLOW).await;
}

async fn a_busy_error_in_a_stream_postpones(dialect: &'static dyn Dialect) {
    let busy = dialect.error_event("Rate limit reached");
    let class = Class::Snooze { after: std::time::Duration::ZERO, scope: Scope::Host };
    check(dialect, Play::chunks([busy]), "busy", class).await;
}

async fn a_stream_that_ends_early_is_not_an_answer(dialect: &'static dyn Dialect) {
    check(dialect, Play::chunks(begun(dialect)), "ended_early", RETRY).await;
}

async fn a_stream_that_ends_in_a_line_is_not_an_answer(dialect: &'static dyn Dialect) {
    let begun = begun(dialect).concat();
    let half = begun[..begun.len() / 2].to_vec();
    check(dialect, Play::chunks([begun.clone(), half]), "ended_early", RETRY).await;
}

async fn an_empty_stream_is_not_an_answer(dialect: &'static dyn Dialect) {
    check(dialect, Play::chunks([]), "ended_early", RETRY).await;
    check(dialect, Play::chunks([b"\n\n".to_vec()]), "ended_early", RETRY).await;
}

async fn a_connection_that_breaks_in_a_stream_is_retried(dialect: &'static dyn Dialect) {
    let steps = begun(dialect).into_iter().map(Step::Bytes).chain([Step::HangUp]);
    check(dialect, Play::Stream(steps.collect()), "broken", RETRY).await;
}

async fn a_connection_that_breaks_before_the_answer_is_retried(dialect: &'static dyn Dialect) {
    check(dialect, Play::HangsUp, "broken", RETRY).await;
    check(dialect, Play::Stream(vec![Step::HangUp]), "broken", RETRY).await;
}

async fn malformed_json_is_retried(dialect: &'static dyn Dialect) {
    for data in [&b"{\"half\":"[..], b"<html>"] {
        let mut chunks = begun(dialect);
        chunks.push(dialect.malformed_event(data));
        chunks.extend(begun(dialect));
        check(dialect, Play::chunks(chunks), "malformed", RETRY).await;
    }
}

async fn invalid_utf_8_is_retried(dialect: &'static dyn Dialect) {
    let event = dialect.malformed_event(b"{\"message\":\"\xff\xfe\",\"choices\":\"\xff\"}");
    check(dialect, Play::chunks([event]), "malformed", RETRY).await;
}

async fn html_with_status_200_is_not_the_api(dialect: &'static dyn Dialect) {
    let page = b"<!doctype html>\n<html><body>Sign in</body></html>\n".to_vec();
    check(dialect, Play::chunks([page]), "not_the_api", Class::Fail).await;
}

async fn an_empty_answer_is_retried(dialect: &'static dyn Dialect) {
    for pieces in [&[][..], &["", " \n"]] {
        check(dialect, Play::Answers(Answer::of(pieces)), "empty", RETRY).await;
    }
}

async fn an_answer_of_thinking_alone_is_retried(dialect: &'static dyn Dialect) {
    let thought = Answer::of(&[]).thinks(&["Hm."]);
    check(dialect, Play::Answers(thought), "empty", RETRY).await;
    check(dialect, Play::Answers(Answer::of(&["<think>Hm."])), "empty", RETRY).await;
}

async fn an_answer_that_only_thinks_up_to_its_reserve_fails(dialect: &'static dyn Dialect) {
    // A retry would end in the same way.
    let thought = Answer::of(&[]).thinks(&["Hm."]).counts(20, 512).cut();
    check(dialect, Play::Answers(thought), "no_room", Class::Fail).await;
}

async fn a_window_that_is_full_before_the_answer_is_compacted(dialect: &'static dyn Dialect) {
    let full = Answer::of(&[]).counts(4095, 1).cut();
    check(dialect, Play::Answers(full), "overflow", OVERFLOW).await;
}

async fn a_filtered_answer_is_rejected(dialect: &'static dyn Dialect) {
    let events = dialect.events(&Answer::of(&["Once"])).concat();
    let filtered = dialect.filter(&String::from_utf8(events).unwrap());
    check(dialect, Play::chunks([filtered.into_bytes()]), "filtered", Class::Reject).await;
}

async fn a_silently_cut_prompt_gives_no_answer(dialect: &'static dyn Dialect) {
    let cut = Answer::of(&["Invented."]).counts(2050, 3);
    let server = ScriptedServer::playing(dialect, [Play::Answers(cut)]).await;
    let mut request = request(&"word ".repeat(6_000));
    request.estimated_prompt_tokens = Some(4_000);
    let error = fail(&*server.provider(), request).await;
    assert_eq!(error.class, TRUNCATED, "{error}");
    // The tokens are spent anyway.
    assert_eq!(error.usage.unwrap().input, Some(2050));
}

async fn a_low_count_of_a_short_prompt_is_accepted(dialect: &'static dyn Dialect) {
    let answer = Answer::of(&["Yes."]).counts(20, 3);
    let server = ScriptedServer::playing(dialect, [Play::Answers(answer)]).await;
    let mut request = request("Write.");
    request.estimated_prompt_tokens = Some(900);
    let outcome = crate::providers::requests::ask(&*server.provider(), request).await.unwrap();
    assert_eq!(outcome.usage.input, Some(20));
}

async fn a_line_of_64_mb_is_not_read_to_its_end(dialect: &'static dyn Dialect) {
    let flood = Step::Flood { bytes: vec![b'x'; 64 << 10], n_bytes: 64 * MIB };
    let play = Play::Stream(vec![flood, Step::End]);
    let server = ScriptedServer::playing(dialect, [play]).await;
    let mut request = request("Write.");
    request.reserve_tokens = 65_536;
    let error = fail(&*server.provider(), request).await;
    assert_eq!(error.code, format!("{}.too_much", dialect.codes()));
    assert_eq!(error.class, RETRY);
    assert!(error.to_string().contains("a line of"), "{error}");
    let n_sent = server.state.transport.n_bytes_sent.load(Ordering::Relaxed);
    assert!(n_sent < 32 * MIB, "{n_sent} bytes were read");
}

async fn an_endless_answer_is_read_up_to_its_reserve(dialect: &'static dyn Dialect) {
    for (reserve_tokens, n_mib) in [(512, 24), (65_536, 96)] {
        // Each line is just below the limit of a line.
        let event = dialect.events(&Answer::of(&[&"x".repeat(6 * MIB)]));
        let event = event.into_iter().max_by_key(Vec::len).unwrap();
        let flood = Step::Flood { bytes: event, n_bytes: 120 * MIB };
        let play = Play::Stream(vec![flood, Step::End]);
        let server = ScriptedServer::playing(dialect, [play]).await;
        let mut request = request("Write.");
        request.reserve_tokens = reserve_tokens;
        let error = fail(&*server.provider(), request).await;
        assert_eq!((error.code, error.class), (&*format!("{}.too_much", dialect.codes()), RETRY));
        assert!(server.state.transport.n_bytes_sent.load(Ordering::Relaxed) < n_mib * MIB);
    }
}
