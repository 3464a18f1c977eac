//! The events of the feed for open pages, as server-sent events. One reader of the feed serves all of them.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::{
    Extension,
    extract::{Query, State},
    http::{HeaderMap, HeaderName},
    response::{
        IntoResponse as _, Response, Sse,
        sse::{self, KeepAlive},
    },
};
use futures_util::{StreamExt as _, stream};
use serde::Deserialize;

use crate::{
    domain::feed::{Follower, Hub, SharedEvent},
    http::{
        Problem, RouterState,
        auth::{Gate, PageAccess, accepts_html},
        metrics::EventStream,
        pages::see_other,
        waiters::PageStreams,
    },
};

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// Pings keep proxies from closing the connection, and tell the page that it is connected.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Time after which a browser reconnects.
const RECONNECT_AFTER: Duration = Duration::from_secs(1);

#[derive(Debug, Deserialize)]
pub(super) struct StreamQuery {
    /// The last event of an earlier stream. The header takes precedence: a browser sends it when it reconnects by itself.
    after: Option<i64>,
}

/// Streams all events that the caller may see, until its sign-in ends. The first event has the id at which the stream begins, and says if
/// events before it are missing: the page has to be reloaded. A browser that opens the address is redirected to the overview.
pub(super) async fn events(
    State(front): State<RouterState>,
    Extension(gate): Extension<Gate>,
    Extension(hub): Extension<Hub>,
    Extension(streams): Extension<PageStreams>,
    Extension(access): Extension<PageAccess>,
    Query(query): Query<StreamQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    // A person who opens the address would see a page that never ends loading.
    if accepts_html(&headers) {
        return Ok(see_other("/"));
    }
    let app = front.app()?;
    let place = streams.take_place(access.holder)?;
    let last = headers.get(LAST_EVENT_ID).and_then(|id| id.to_str().ok()?.parse().ok());
    let last = last.or(query.after);
    let (begun, follower) = hub.follow(&app.pool, last).await?;
    let hello = sse::Event::default()
        .event("begin")
        .id(begun.to_string())
        .data(format!("{{\"has_gap\":{}}}", follower.has_gap()))
        .retry(RECONNECT_AFTER);
    let reach = access.reach.clone();
    let events = stream::unfold(follower, next).filter_map(move |event| {
        let is_seen = match (reach.campaigns(), reach.only_of(), event.campaign_id) {
            (_, Some(_), _) => false,
            (Some(campaigns), None, Some(campaign)) => campaigns.contains(&campaign),
            (Some(_), None, None) => false,
            (None, None, _) => true,
        };
        std::future::ready(is_seen.then(|| sent(&event)))
    });
    let open = EventStream::open();
    let stop = app.shutdown.soft.clone().cancelled_owned();
    let over = async move {
        tokio::select! {
            () = stop => {}
            () = gate.wait_until_signed_out(access) => {}
        }
    };
    let all = stream::iter([hello]).chain(events).take_until(Box::pin(over)).map(move |event| {
        let _held = (&open, &place);
        Ok::<_, Infallible>(event)
    });
    Ok(Sse::new(all).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response())
}

/// Returns the next event; the stream ends if the follower was too slow or the database is away, and the browser comes back.
async fn next(mut follower: Follower) -> Option<(Arc<SharedEvent>, Follower)> {
    let event = follower.next().await.ok()?;
    Some((event, follower))
}

fn sent(event: &SharedEvent) -> sse::Event {
    sse::Event::default().event("change").id(event.id.to_string()).data(event.json())
}
