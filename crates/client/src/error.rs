//! Errors of calls over HTTP.

use std::time::Duration;

use chrono::{DateTime, Utc};
use reqwest::{StatusCode, header::HeaderMap};
use serde::Deserialize;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("invalid URL `{0}`: use for example http://127.0.0.1:7770")]
    Address(String),
    #[error("cannot set up the HTTP client")]
    SetUp(#[source] reqwest::Error),
    /// An index of `TaskLink::Item` that does not lead to an earlier task.
    #[error(
        "task {task} of the list waits for item {item}, which does not come before it: count from 0"
    )]
    Link { task: usize, item: usize },
    #[error("cannot write the request as JSON")]
    Body(#[source] serde_json::Error),
    #[error("cannot {action}: the service did not answer")]
    Http {
        action: &'static str,
        #[source]
        source: reqwest::Error,
    },
    #[error("cannot follow a task: the stream ended before its last event")]
    BrokenStream,
    #[error("cannot {action}: this version of the client cannot read the answer")]
    Answer {
        action: &'static str,
        #[source]
        source: serde_json::Error,
    },
    /// The service refused the call, for the reason that it gives.
    #[error("the service refuses to {action}: {detail}")]
    Refused {
        action: &'static str,
        status: u16,
        /// Code of the problem. It is stable, so programs can decide by it.
        code: String,
        detail: String,
        /// True if the same call can succeed later. The client has repeated it already, if that was safe.
        retryable: bool,
        /// The wait that the service asks for.
        retry_after: Option<Duration>,
    },
}

/// The fields of problem+json that this crate uses.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Problem {
    status: Option<u16>,
    code: String,
    detail: String,
    retryable: Option<bool>,
}

/// Builds the error for a refusal. A proxy may answer with another kind of body.
pub(super) fn refused(
    action: &'static str,
    status: StatusCode,
    headers: &HeaderMap,
    body: &[u8],
) -> Error {
    let problem: Problem = serde_json::from_slice(body).unwrap_or_default();
    let header = headers.get("retry-after").and_then(|value| value.to_str().ok());
    let retry_after = header.and_then(parse_retry_after);
    refused_because(action, status.as_u16(), problem, retry_after)
}

/// Builds the error for a refusal within a stream.
pub(super) fn refused_by_event(action: &'static str, data: &str) -> Error {
    let problem: Problem = serde_json::from_str(data).unwrap_or_default();
    let status = problem.status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR.as_u16());
    refused_because(action, status, problem, None)
}

fn refused_because(
    action: &'static str,
    status: u16,
    problem: Problem,
    retry_after: Option<Duration>,
) -> Error {
    let Problem { code, detail, retryable, .. } = problem;
    let detail = match detail.is_empty() {
        true => format!("it answered with status {status}"),
        false => detail,
    };
    let retryable = retryable.unwrap_or(matches!(status, 429 | 502..=504));
    Error::Refused { action, status, code, detail, retryable, retry_after }
}

/// Parses a `Retry-After`: seconds or a date.
fn parse_retry_after(header: &str) -> Option<Duration> {
    let header = header.trim();
    if let Ok(secs) = header.parse() {
        return Some(Duration::from_secs(secs));
    }
    let at = DateTime::parse_from_rfc2822(header).ok()?;
    Some((at.with_timezone(&Utc) - now()).to_std().unwrap_or_default())
}

#[expect(
    clippy::disallowed_methods,
    reason = "dates in headers are compared with the clock of this machine"
)]
pub(super) fn now() -> DateTime<Utc> {
    std::time::SystemTime::now().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        assert_eq!(parse_retry_after(" 12 "), Some(Duration::from_secs(12)));
        assert_eq!(parse_retry_after("Wed, 21 Oct 2015 07:28:00 GMT"), Some(Duration::ZERO));
        let far = parse_retry_after("Fri, 01 Jan 2100 00:00:00 GMT").unwrap();
        assert!(far > Duration::from_secs(86_400), "{far:?}");
        assert_eq!(parse_retry_after("soon"), None);
    }

    #[test]
    fn an_answer_of_a_proxy_is_retryable_by_its_status() {
        for (status, expected) in
            [(418, false), (429, true), (500, false), (502, true), (504, true)]
        {
            let status = StatusCode::from_u16(status).unwrap();
            let error = refused("add a task", status, &HeaderMap::new(), b"<html>");
            let Error::Refused { code, retryable, .. } = &error else { panic!("{error:?}") };
            assert_eq!((code.as_str(), *retryable), ("", expected), "{status}");
        }
    }
}
