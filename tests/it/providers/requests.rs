//! Requests of the tests, and a deadline for each.

use std::time::Duration;

use dalsegno::{
    providers::{
        Class, Error, Event, EventSink, Options, Outcome, Provider, Purpose, Rebuild, Request,
        Timeouts,
    },
    transcript::{Message, Role},
};
use tokio::sync::mpsc::Receiver;
use tokio_util::sync::CancellationToken;

pub const RETRY: Class = Class::Retry { after: None };
pub const OVERFLOW: Class = Class::Rebuild { reason: Rebuild::Overflow };
pub const TRUNCATED: Class = Class::Rebuild { reason: Rebuild::Truncated };

/// Deadline of each call.
const DEADLINE: Duration = crate::app::SOON;

pub fn message(role: Role, text: &str) -> Message {
    Message::new(role, text)
}

/// Builds a request for a second turn, with a history.
pub fn request(prompt: &str) -> Request {
    Request {
        turn: "turn-1".to_owned(),
        purpose: Purpose::Turn,
        model: "qwen3:8b".to_owned(),
        system: "You write for the client.".to_owned(),
        messages: vec![
            message(Role::User, "Hello.").into(),
            message(Role::Assistant, "Hello!").into(),
            message(Role::User, prompt).into(),
        ],
        tools: Vec::new(),
        window_tokens: 4096,
        reserve_tokens: 512,
        estimated_prompt_tokens: None,
        options: Options::default(),
        timeouts: Timeouts::default(),
        conversation: None,
        credential: None,
    }
}

/// Builds a request with these timeouts, in seconds.
pub fn impatient(first_byte: u64, idle: u64, total: u64) -> Request {
    let mut request = request("Write.");
    request.timeouts = Timeouts {
        first_byte: Some(Duration::from_secs(first_byte)),
        idle: Some(Duration::from_secs(idle)),
        total: Some(Duration::from_secs(total)),
    };
    request
}

pub async fn ask(provider: &dyn Provider, request: Request) -> Result<Outcome, Error> {
    let call = provider.run(request, EventSink::discard(), CancellationToken::new());
    tokio::time::timeout(DEADLINE, call).await.expect("the call ends by itself")
}

/// Returns the error of a call, which must have a text.
pub async fn fail(provider: &dyn Provider, request: Request) -> Error {
    checked(ask(provider, request).await)
}

/// Returns the error of a call that times out. The clock is paused after `begun`, and then jumps to the next timeout.
/// Only for single-threaded tests.
pub async fn time_out(
    provider: &dyn Provider,
    request: Request,
    begun: impl AsyncFnOnce(&mut Receiver<Event>),
) -> Error {
    let (sink, mut events) = EventSink::channel(1024);
    let call = provider.run(request, sink, CancellationToken::new());
    let clock = async {
        begun(&mut events).await;
        tokio::time::pause();
        // Later output still counts.
        while events.recv().await.is_some() {}
    };
    let (result, ()) = tokio::join!(call, clock);
    tokio::time::resume();
    checked(result)
}

fn checked(result: Result<Outcome, Error>) -> Error {
    let error = result.expect_err("the call fails");
    assert!(error.to_string().len() > 10, "{error:?}");
    error
}

pub async fn watch(
    provider: &dyn Provider,
    request: Request,
) -> (Result<Outcome, Error>, Vec<Event>) {
    let (sink, mut events) = EventSink::channel(1024);
    let call = provider.run(request, sink, CancellationToken::new());
    let result = tokio::time::timeout(DEADLINE, call).await.expect("the call ends by itself");
    let mut seen = Vec::new();
    while let Some(event) = events.recv().await {
        seen.push(event);
    }
    (result, seen)
}

pub fn text_of(events: &[Event]) -> String {
    let texts = events.iter().filter_map(|event| match event {
        Event::Text(text) => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}
