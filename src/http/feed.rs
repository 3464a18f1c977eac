//! `/v1/feed`: everything that happens, as a stream of server-sent events.
//!
//! Each event has the feed's id; a client that comes back with `Last-Event-ID`, or with `after`, goes on behind it, without a
//! gap and without a repetition. One that names no place, or a place that this database has not reached, is told first where the
//! stream begins, in an event `begin`.

use std::convert::Infallible;

use axum::{
    Extension, Router,
    http::{HeaderMap, StatusCode},
    response::{
        IntoResponse, Response, Sse,
        sse::{self, KeepAlive},
    },
    routing::get,
};
use futures_util::{Stream, StreamExt as _, stream};
use serde::Deserialize;
use serde_json::json;
use uuid::Uuid;

use super::{
    Front, Problem,
    auth::Pass,
    events::{KEEP_ALIVE, failed, over},
    input::Asked,
    reach::Reach,
    waiters::{Place, Waiters},
};
use crate::{
    app::App,
    domain::feed::{Told, Watch, Watched},
};

pub(super) fn routes(waiters: Waiters) -> Router<Front> {
    Router::new().route("/v1/feed", get(follow)).layer(Extension(waiters))
}

#[derive(utoipa::OpenApi)]
#[openapi(paths(follow))]
pub(super) struct Described;

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Wanted {
    /// The id of the last event that was received; 0 for all that there is. Last-Event-ID, where it is sent, comes first.
    #[param(minimum = 0)]
    after: Option<i64>,
    campaign_id: Option<Uuid>,
    /// Only these, with commas between them: `turn.done,turn.failed`.
    kinds: Option<String>,
}

/// Everything that happens, as a stream of server-sent events that does not end.
///
/// The data of an event is a `FeedEvent`. A client that names no place, or one that this database has not reached (it was
/// restored, or a standby has taken over), gets an event `begin` first, whose id is where the stream begins.
#[utoipa::path(
    get,
    path = "/v1/feed",
    operation_id = "follow_feed",
    tag = "feed",
    params(
        Wanted,
        ("Last-Event-ID" = Option<String>, Header, description = "The id of the last event that was received: the stream goes on after it", pattern = "^[0-9]{1,18}$"),
    ),
    responses(
        (status = 200, body = String, content_type = "text/event-stream", description = "The data of each event but `begin` is a FeedEvent"),
        (status = 400, description = "`bad_last_event_id`"),
        (status = 429, description = "`too_many_waiting_per_client`", headers(("Retry-After" = i32, description = "Seconds"))),
        (status = 503, description = "`too_many_waiting`", headers(("Retry-After" = i32, description = "Seconds"))),
    ),
)]
async fn follow(
    app: App,
    pass: Pass,
    reach: Reach,
    Extension(waiters): Extension<Waiters>,
    headers: HeaderMap,
    Asked(wanted): Asked<Wanted>,
) -> Result<Response, Problem> {
    let after = last_id(&headers)?.or(wanted.after);
    let kinds = wanted.kinds.map(|kinds| kinds.split(',').map(str::to_owned).collect());
    let within = reach.into_campaigns();
    let watched = Watched { campaign_id: wanted.campaign_id, within, kinds };
    let place = waiters.enter(pass.holder())?;
    let watch = Watch::begin(&app.pool, watched, after).await?;
    let stop = over(&app, pass);
    let events = told(watch, place).take_until(stop);
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response())
}

/// Ends after an error: the client comes back by itself, and says where it was.
fn told(watch: Watch, place: Place) -> impl Stream<Item = Result<sse::Event, Infallible>> {
    stream::unfold(Some((watch, place)), async |state| {
        let (mut watch, place) = state?;
        match watch.next().await {
            Ok(told) => Some((Ok(event(&told)), Some((watch, place)))),
            Err(error) => Some((Ok(failed(error)), None)),
        }
    })
}

fn event(told: &Told) -> sse::Event {
    let (name, id, data) = match told {
        Told::Begun(id) => ("begin", *id, json!({ "after": id }).to_string()),
        Told::Event(event) => {
            (event.kind.as_str(), event.id, serde_json::to_string(event).unwrap_or_default())
        }
    };
    sse::Event::default().event(name).id(id.to_string()).data(data)
}

fn last_id(headers: &HeaderMap) -> Result<Option<i64>, Problem> {
    let Some(value) = headers.get("last-event-id") else { return Ok(None) };
    let text = value.to_str().unwrap_or_default();
    text.parse().map(Some).map_err(|_| {
        let detail =
            format!("Last-Event-ID is `{text}`: send the id of the last event, or leave it out");
        Problem::new(StatusCode::BAD_REQUEST, "bad_last_event_id", detail)
    })
}
