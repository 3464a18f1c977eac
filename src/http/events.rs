//! What happens to a task, as a stream of server-sent events.
//!
//! Each event has the feed's id; a client that comes back with `Last-Event-ID` goes on after it, without a gap and without
//! a repetition. The last event is `end`, with the task as its data; whoever has got that and asks again gets 204, which
//! keeps a browser from asking for ever.

use std::{convert::Infallible, future::Future, time::Duration};

use axum::{
    Extension,
    http::{HeaderMap, StatusCode},
    response::{
        IntoResponse, Response, Sse,
        sse::{self, KeepAlive},
    },
};
use futures_util::{Stream, StreamExt as _, stream};

use super::{
    Problem,
    auth::Pass,
    input::Id,
    waiters::{Place, Waiters},
};
use crate::{
    app::App,
    domain::tasks::{self, Follow, News},
};

/// Proxies give up on a silent connection after a minute or so.
pub(super) const KEEP_ALIVE: Duration = Duration::from_secs(15);
const END: &str = "end";
/// Behind the last id, on the event `end`: whoever comes back with it has been told everything.
const END_MARK: &str = ".end";

/// What a client has got before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Seen {
    id: Option<i64>,
    end: bool,
}

/// What happens to a task, as a stream of server-sent events; the last one is `end`, with the task as its data.
#[utoipa::path(
    get,
    path = "/v1/tasks/{id}/events",
    tag = "tasks",
    operation_id = "follow_task",
    params(
        ("id" = Uuid, Path),
        ("Last-Event-ID" = Option<String>, Header, description = "The id of the last event that was received: the stream goes on after it", pattern = r"^-?[0-9]{1,18}(\.end)?$"),
    ),
    responses(
        (status = 200, body = String, content_type = "text/event-stream", description = "Each event has the feed's id; the data of all but the last is a `FeedEvent`"),
        (status = 204, description = "The client that asks has got the end already"),
        (status = 400, description = "`bad_last_event_id`"),
        (status = 404, description = "`unknown_task`"),
        (status = 429, description = "`too_many_waiting_per_client`", headers(("Retry-After" = i32, description = "Seconds"))),
        (
            status = 503,
            description = "`too_many_waiting`",
            headers(("Retry-After" = i32, description = "Seconds")),
        ),
    ),
)]
pub(super) async fn of_task(
    app: App,
    Id(id): Id,
    pass: Pass,
    Extension(waiters): Extension<Waiters>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let seen = seen(&headers)?;
    let place = waiters.enter(pass.holder())?;
    let mut follow = Follow::begin(&app.pool, id, seen.id).await?;
    let mut first = None;
    if seen.end && tasks::has_ended(&app.pool, id).await? {
        first = follow.next().await?;
        if matches!(first, None | Some(News::Ended(_))) {
            return Ok(StatusCode::NO_CONTENT.into_response());
        }
    }
    let first = stream::iter(first.map(|news| Ok(event(&news, follow.told()))));
    let stop = over(&app, pass);
    let events = first.chain(rest(follow, place)).take_until(stop);
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response())
}

/// Ends after the end of the task, or after an error: the client comes back by itself, and says where it was.
fn rest(follow: Follow, place: Place) -> impl Stream<Item = Result<sse::Event, Infallible>> {
    stream::unfold(Some((follow, place)), async |state| {
        let (mut follow, place) = state?;
        match follow.next().await {
            Ok(None) => None,
            Ok(Some(news)) => {
                let event = event(&news, follow.told());
                Some((Ok(event), Some((follow, place))))
            }
            Err(error) => Some((Ok(failed(error)), None)),
        }
    })
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

/// The last event of a stream that cannot go on.
pub(super) fn failed(error: impl Into<Problem>) -> sse::Event {
    let problem = serde_json::to_string(&error.into()).unwrap_or_default();
    sse::Event::default().event("error").data(problem)
}

fn event(news: &News, told: i64) -> sse::Event {
    let (name, id, data) = match news {
        News::Event(event) => {
            (event.kind.as_str(), event.id.to_string(), serde_json::to_string(event))
        }
        News::Ended(task) => (END, format!("{told}{END_MARK}"), serde_json::to_string(task)),
    };
    sse::Event::default().event(name).id(id).data(data.unwrap_or_default())
}

fn seen(headers: &HeaderMap) -> Result<Seen, Problem> {
    let Some(value) = headers.get("last-event-id") else { return Ok(Seen::default()) };
    let text = value.to_str().unwrap_or_default();
    let (id, end) = match text.strip_suffix(END_MARK) {
        Some(id) => (id, true),
        None => (text, false),
    };
    match id.parse() {
        Ok(id) => Ok(Seen { id: Some(id), end }),
        Err(_) => {
            let detail = format!(
                "Last-Event-ID is `{text}`: send the id of the last event, or leave it out"
            );
            Err(Problem::new(StatusCode::BAD_REQUEST, "bad_last_event_id", detail))
        }
    }
}
