//! Slow and silent servers. The clock of these tests jumps to the next timeout.

use std::time::Duration;

use dalsegno::providers::{Event, Request};
use tokio::sync::mpsc::Receiver;

use super::{
    behaviours,
    dialects::{Answer, Dialect},
    server::{Play, ScriptedServer},
};
use crate::providers::{
    requests::{RETRY, ask, fail, impatient, request, time_out},
    transport::Step,
};

behaviours![
    a_slow_first_token_within_its_timeout_is_awaited,
    silence_before_the_head_ends_with_its_timeout,
    silence_before_the_first_byte_ends_with_its_timeout,
    silence_within_an_answer_ends_with_its_timeout,
    the_total_timeout_ends_a_call_that_did_not_begin,
    the_total_timeout_ends_an_answer,
    an_endless_stream_ends_with_the_total_timeout,
];

fn midway(dialect: &dyn Dialect) -> Play {
    let events = dialect.events(&Answer::of(&["Once"]));
    let is_of_text = |event: &Vec<u8>| String::from_utf8_lossy(event).contains("Once");
    let begun = events.into_iter().filter(is_of_text).map(Step::Bytes);
    Play::Stream(begun.chain([Step::Stall]).collect())
}

/// Plays a server that falls silent, and checks that the call ends with this error and closes its connection. `has_begun`: the beginning of
/// the answer has to arrive before the clock jumps.
async fn check(
    dialect: &'static dyn Dialect,
    play: Play,
    request: Request,
    has_begun: bool,
    code: &str,
) {
    let server = ScriptedServer::playing(dialect, [play]).await;
    let provider = server.provider();
    let begun = async |events: &mut Receiver<Event>| {
        server.wait_for_calls(1).await;
        if has_begun {
            while !matches!(events.recv().await, Some(Event::Text(_)) | None) {}
        }
    };
    let error = time_out(&*provider, request, begun).await;
    let code = format!("{}.{code}", dialect.codes());
    assert_eq!((error.code, error.class), (&*code, RETRY), "{error}");
    assert!(error.to_string().contains("timeout_secs"), "{error}");
    // The server notices the disconnect and stops generating.
    server.state.transport.wait_for_disconnects(1).await;
}

async fn a_slow_first_token_within_its_timeout_is_awaited(dialect: &'static dyn Dialect) {
    let events = dialect.events(&Answer::of(&["Yes."])).into_iter().map(Step::Bytes);
    let steps = [Step::Gate].into_iter().chain(events).chain([Step::End]).collect();
    let server = ScriptedServer::playing(dialect, [Play::Stream(steps)]).await;
    let provider = server.provider();
    let call = ask(&*provider, request("Write."));
    let opened = async {
        server.wait_for_calls(1).await;
        server.state.transport.open();
    };
    let (outcome, ()) = tokio::join!(call, opened);
    assert_eq!(outcome.unwrap().message.text, "Yes.");
}

async fn silence_before_the_head_ends_with_its_timeout(dialect: &'static dyn Dialect) {
    let request = impatient(100, 10_000, 10_000);
    check(dialect, Play::NeverBegins, request, false, "silent").await;
}

async fn silence_before_the_first_byte_ends_with_its_timeout(dialect: &'static dyn Dialect) {
    let request = impatient(100, 10_000, 10_000);
    check(dialect, Play::Stream(vec![Step::Stall]), request, false, "silent").await;
}

async fn silence_within_an_answer_ends_with_its_timeout(dialect: &'static dyn Dialect) {
    check(dialect, midway(dialect), impatient(10_000, 100, 10_000), true, "silent").await;
}

async fn the_total_timeout_ends_a_call_that_did_not_begin(dialect: &'static dyn Dialect) {
    let request = impatient(10_000, 10_000, 100);
    check(dialect, Play::NeverBegins, request, false, "too_long").await;
}

async fn the_total_timeout_ends_an_answer(dialect: &'static dyn Dialect) {
    check(dialect, midway(dialect), impatient(10_000, 10_000, 100), true, "too_long").await;
}

async fn an_endless_stream_ends_with_the_total_timeout(dialect: &'static dyn Dialect) {
    let events = dialect.events(&Answer::of(&["and "]));
    let event = events.into_iter().find(|it| String::from_utf8_lossy(it).contains("and ")).unwrap();
    let flood = Step::Flood { bytes: event, n_bytes: usize::MAX };
    let server = ScriptedServer::playing(dialect, [Play::Stream(vec![flood])]).await;
    let mut request = request("Write.");
    request.timeouts.total = Some(Duration::from_millis(300));
    let error = fail(&*server.provider(), request).await;
    assert_eq!((error.code, error.class), (&*format!("{}.too_long", dialect.codes()), RETRY));
}
