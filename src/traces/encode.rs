//! Spans as OTLP JSON, which every collector accepts beside the binary form.

use chrono::{DateTime, Utc};
use serde_json::{Value as Json, json};

use super::span::{Span, Value};

/// The service that the spans come from.
#[derive(Debug, Clone)]
pub(super) struct Resource {
    pub(super) service_name: String,
}

const FAILED: u8 = 2;

pub(super) fn request(resource: &Resource, spans: &[Span]) -> Json {
    let version = env!("CARGO_PKG_VERSION");
    json!({
        "resourceSpans": [{
            "resource": { "attributes": [
                attribute("service.name", &resource.service_name.as_str().into()),
                attribute("service.version", &version.into()),
            ]},
            "scopeSpans": [{
                "scope": { "name": "dalsegno", "version": version },
                "spans": spans.iter().map(span).collect::<Vec<_>>(),
            }],
        }]
    })
}

fn span(span: &Span) -> Json {
    let mut json = json!({
        "traceId": hex::encode(span.context.trace),
        "spanId": hex::encode(span.context.span),
        "name": span.name,
        "kind": span.kind as u8,
        "startTimeUnixNano": nanos(span.started_at),
        "endTimeUnixNano": nanos(span.ended_at.max(span.started_at)),
        "attributes": span.attributes.iter().map(|(key, value)| attribute(key, value)).collect::<Vec<_>>(),
        "links": span.links.iter().map(|to| json!({ "traceId": hex::encode(to.trace), "spanId": hex::encode(to.span) })).collect::<Vec<_>>(),
        // 1: sampled.
        "flags": 1,
    });
    if let Some(parent) = &span.parent {
        json["parentSpanId"] = hex::encode(parent).into();
    }
    if let Some(error) = &span.error {
        json["status"] = json!({ "code": FAILED, "message": error });
    }
    json
}

fn attribute(key: &str, value: &Value) -> Json {
    json!({ "key": key, "value": value })
}

fn nanos(at: DateTime<Utc>) -> String {
    // Valid until the year 2262.
    at.timestamp_nanos_opt().unwrap_or_default().to_string()
}
