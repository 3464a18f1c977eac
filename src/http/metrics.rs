//! Metrics of requests. Routes are labels by their template, never by their path, so that their number is bounded.

use axum::{
    extract::{MatchedPath, Request},
    http::{Method, StatusCode},
    middleware::Next,
    response::Response,
};
use metrics::{counter, gauge, histogram};
use tokio::time::Instant;

use crate::metric::Metric;

const REQUESTS: Metric = Metric::counter(
    "dalsegno_http_requests_total",
    &["method", "route", "status"],
    "HTTP requests that were answered; 499 if the client closed the connection before.",
);
const DURATION: Metric = Metric::histogram(
    "dalsegno_http_request_duration_seconds",
    &["method", "route"],
    "Time in seconds from the head of an HTTP request to the head of its response.",
);
const IN_FLIGHT: Metric = Metric::gauge(
    "dalsegno_http_requests_in_flight",
    &[],
    "HTTP requests that wait for the head of their response.",
);
const EVENT_STREAMS: Metric =
    Metric::gauge("dalsegno_http_event_streams", &[], "Open streams of server-sent events.");

/// All metrics of requests.
pub const METRICS: [Metric; 4] = [REQUESTS, DURATION, IN_FLIGHT, EVENT_STREAMS];

/// The route of requests that no route matches.
const UNMATCHED: &str = "unmatched";
/// The status of nginx for a client that closed the connection before the response.
const CLIENT_CLOSED: &str = "499";

/// Describes the metrics and starts the gauges at 0. The series of a route begin with its first request.
pub(super) fn describe() {
    METRICS.iter().for_each(Metric::describe);
    for metric in [IN_FLIGHT, EVENT_STREAMS] {
        gauge!(metric.name).increment(0.0);
    }
}

/// Measures a request. The outermost layer, so that refusals and timeouts of the other layers are measured, too.
pub(super) async fn measure(request: Request, next: Next) -> Response {
    let mut measurement = RequestMeasurement::begin(&request);
    let response = next.run(request).await;
    measurement.status = Some(response.status());
    response
}

/// A request in flight. Recorded on drop, because the future of a request is dropped when its client disconnects.
struct RequestMeasurement {
    method: &'static str,
    route: String,
    began: Instant,
    status: Option<StatusCode>,
}

impl RequestMeasurement {
    fn begin(request: &Request) -> Self {
        gauge!(IN_FLIGHT.name).increment(1.0);
        let route =
            request.extensions().get::<MatchedPath>().map_or(UNMATCHED, MatchedPath::as_str);
        Self {
            method: method(request.method()),
            route: route.to_owned(),
            began: Instant::now(),
            status: None,
        }
    }
}

impl Drop for RequestMeasurement {
    fn drop(&mut self) {
        gauge!(IN_FLIGHT.name).decrement(1.0);
        let status = self.status.as_ref().map_or(CLIENT_CLOSED, StatusCode::as_str).to_owned();
        let (method, route) = (self.method, std::mem::take(&mut self.route));
        histogram!(DURATION.name, "method" => method, "route" => route.clone())
            .record(self.began.elapsed().as_secs_f64());
        counter!(REQUESTS.name, "method" => method, "route" => route, "status" => status)
            .increment(1);
    }
}

/// Returns the label of a method. Clients may invent methods, which must not create series.
fn method(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}

/// An open event stream, counted until it is dropped.
pub(super) struct EventStream;

impl EventStream {
    pub(super) fn open() -> Self {
        gauge!(EVENT_STREAMS.name).increment(1.0);
        Self
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        gauge!(EVENT_STREAMS.name).decrement(1.0);
    }
}
