//! Streams of events as server-sent events.
//!
//! Each event has an id. A client that comes back with it as `Last-Event-ID` goes on behind it, without a gap and without a repetition. One
//! that has received everything gets 204, which keeps a browser from coming back.

use std::{convert::Infallible, time::Duration};

use axum::{
    http::StatusCode,
    response::{
        IntoResponse as _, Response, Sse,
        sse::{self, KeepAlive},
    },
};
use futures_util::StreamExt as _;

use super::{Problem, auth::Pass, request_id, waiters::Place};
use crate::{
    app::App,
    operations::{Events, Refusal, StreamEvent},
};

/// Proxies give up on a silent connection after a minute or so.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The place is free again at the end of the stream, or when the client has gone.
pub(super) fn answer(
    events: Option<Events>,
    place: Place,
    over: impl Future<Output = ()> + Send + 'static,
) -> Response {
    let Some(events) = events else { return StatusCode::NO_CONTENT.into_response() };
    let events = request_id::within(events.map(|event| event.map_or_else(failed, sent)));
    let events = events.take_until(over).map(move |event| {
        let _held = &place;
        Ok::<_, Infallible>(event)
    });
    Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response()
}

/// When a stream ends by itself: an open one would hold up the end of the service, and outlive the key that it was opened with.
pub(super) fn over(app: &App, pass: Pass) -> impl Future<Output = ()> + use<> {
    let stopped = app.shutdown.soft.clone().cancelled_owned();
    async move {
        tokio::select! {
            () = stopped => {}
            () = pass.withdrawn() => {}
        }
    }
}

fn sent(StreamEvent { id, name, data }: StreamEvent) -> sse::Event {
    sse::Event::default().event(name).id(id).data(data)
}

/// The last event of a stream that cannot go on.
fn failed(refusal: Refusal) -> sse::Event {
    let problem = Problem::from(refusal).of_this_request();
    let problem = serde_json::to_string(&problem).unwrap_or_default();
    sse::Event::default().event("error").data(problem)
}
