//! Event streams as server-sent events.
//!
//! Each event has an id. A client that reconnects with it as `Last-Event-ID` continues after that event, without gap or
//! repetition. A client that has received everything gets 204, which stops browsers from reconnecting.

use std::{convert::Infallible, time::Duration};

use axum::{
    http::StatusCode,
    response::{
        IntoResponse as _, Response, Sse,
        sse::{self, KeepAlive},
    },
};
use futures_util::StreamExt as _;

use super::{Problem, auth::KeyWatch, metrics::EventStream, request_id, waiters::WaitPlace};
use crate::{
    app::App,
    operations::{Events, Refusal, StreamEvent},
};

/// Pings keep proxies from closing the connection, which they do after about a minute of silence.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Answers with a stream. Its place is released when the stream ends or the client disconnects.
pub(super) fn stream_response(
    events: Option<Events>,
    place: WaitPlace,
    over: impl Future<Output = ()> + Send + 'static,
) -> Response {
    let Some(events) = events else { return StatusCode::NO_CONTENT.into_response() };
    let events = request_id::carry_request_id(events.map(|event| event.map_or_else(failed, sent)));
    let open = EventStream::open();
    let events = events.take_until(over).map(move |event| {
        let _held = (&place, &open);
        Ok::<_, Infallible>(event)
    });
    Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response()
}

/// Waits until a stream has to end: the service stops, or the stream's key is no longer admitted.
pub(super) fn wait_for_end(app: &App, pass: KeyWatch) -> impl Future<Output = ()> + use<> {
    let stopped = app.shutdown.soft.clone().cancelled_owned();
    async move {
        tokio::select! {
            () = stopped => {}
            () = pass.wait_until_revoked() => {}
        }
    }
}

fn sent(StreamEvent { id, name, data }: StreamEvent) -> sse::Event {
    sse::Event::default().event(name).id(id).data(data)
}

/// Builds the last event of a failed stream.
fn failed(refusal: Refusal) -> sse::Event {
    let problem = Problem::from(refusal).of_this_request();
    let problem = serde_json::to_string(&problem).unwrap_or_default();
    sse::Event::default().event("error").data(problem)
}
