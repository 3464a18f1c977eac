//! Calls of operations on a Dalsegno server, over HTTP.

use std::time::Duration;

use anyhow::anyhow;
use reqwest::{
    Client, Method, RequestBuilder, Response, StatusCode, Url,
    header::{CONTENT_DISPOSITION, CONTENT_TYPE, HeaderMap, LOCATION},
};
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Map, Value};

use super::{
    Exit, Failure,
    target::{Target, usage},
};
use crate::{
    causes::causes,
    operations::{Download, FieldError, Operation, Spec, Success, kind_of_status},
    outbound,
};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Longer than the servers' own limit for requests.
const TIMEOUT: Duration = Duration::from_secs(300);
/// Effectively unlimited: the reader ends a stream.
const TIMEOUT_OF_STREAMS: Duration = Duration::from_secs(366 * 86_400);
const VERSION: &str = env!("CARGO_PKG_VERSION");

pub(super) struct Remote {
    /// Of a stored server.
    name: Option<String>,
    url: Url,
    key: Option<SecretString>,
    client: Client,
}

/// Problem document of a refused request.
#[derive(Deserialize)]
struct ProblemDocument {
    code: String,
    detail: String,
    request_id: Option<String>,
    #[serde(default)]
    errors: Vec<FieldError>,
}

impl Remote {
    pub(super) fn new(target: &Target) -> Result<Self, Failure> {
        let client = outbound::client(Some(&target.url));
        let client = client.connect_timeout(CONNECT_TIMEOUT).timeout(TIMEOUT).build();
        let client = client.map_err(|error| Failure::failed(error.into()))?;
        let Target { name, url, key } = target.clone();
        Ok(Self { name, url, key, client })
    }

    /// Calls an operation. Returns true with the output if it is replayed from an earlier call with the same
    /// idempotency key.
    pub(super) async fn call<O: Operation>(
        &self,
        operation: &O,
        idempotency_key: Option<&str>,
    ) -> Result<(O::Output, bool), Failure> {
        let fields =
            serde_json::to_value(operation).map_err(|error| Failure::failed(error.into()))?;
        let request = self.request(&O::SPEC, fields)?;
        let request = match idempotency_key.filter(|_| O::SPEC.reads_key()) {
            Some(key) => request.header("Idempotency-Key", key),
            None => request,
        };
        let response = request.send().await;
        let response = response.map_err(|error| self.unreachable_failure(error))?;
        let status = response.status();
        let headers = response.headers().clone();
        let is_replay = headers.contains_key("idempotent-replayed");
        let body = response.bytes().await.map_err(|error| self.unreachable_failure(error))?;
        if !status.is_success() {
            return Err(self.refusal(&O::SPEC, status, &headers, &body));
        }
        let body = if O::SPEC.success == Success::NoContent { b"null" } else { &*body };
        let output = serde_json::from_slice(body).map_err(|error| {
            if serde_json::from_slice::<IgnoredAny>(body).is_err() {
                return self.foreign_server_failure(status);
            }
            let words = format!(
                "cannot read the answer of {} to `{}`: the server has another version than this command ({VERSION}): {error}",
                self.url,
                O::SPEC.id
            );
            Failure::failed(anyhow!(words))
        })?;
        Ok((output, is_replay))
    }

    /// Reads a file.
    pub(super) async fn download<D: Download>(&self, download: &D) -> Result<Vec<u8>, Failure> {
        let fields = serde_json::to_value(download);
        let fields = fields.map_err(|error| Failure::failed(error.into()))?;
        let response = self.request(&D::SPEC, fields)?.send().await;
        let response = response.map_err(|error| self.unreachable_failure(error))?;
        let (status, headers) = (response.status(), response.headers().clone());
        let body = response.bytes().await.map_err(|error| self.unreachable_failure(error))?;
        match (status.is_success(), headers.contains_key(CONTENT_DISPOSITION)) {
            (true, true) => Ok(body.into()),
            (true, false) => Err(self.foreign_server_failure(status)),
            (false, _) => Err(self.refusal(&D::SPEC, status, &headers, &body)),
        }
    }

    /// Opens a stream after the event with this id. `None`: the stream has ended.
    pub(super) async fn open(
        &self,
        spec: &Spec,
        fields: Value,
        last_id: Option<&str>,
    ) -> Result<Option<Response>, Failure> {
        let request = self.request(spec, fields)?.timeout(TIMEOUT_OF_STREAMS);
        let request = match last_id {
            Some(id) => request.header("Last-Event-ID", id),
            None => request,
        };
        let response = request.send().await.map_err(|error| self.unreachable_failure(error))?;
        match response.status() {
            StatusCode::NO_CONTENT => Ok(None),
            status if status.is_success() => match is_stream(&response) {
                true => Ok(Some(response)),
                false => Err(self.foreign_server_failure(status)),
            },
            status => {
                let headers = response.headers().clone();
                let body =
                    response.bytes().await.map_err(|error| self.unreachable_failure(error))?;
                Err(self.refusal(spec, status, &headers, &body))
            }
        }
    }

    /// Builds a request. Fields named in the path go into it; the others go into the body, or into the query if the
    /// method has no body.
    fn request(&self, spec: &Spec, fields: Value) -> Result<RequestBuilder, Failure> {
        let Value::Object(mut fields) = fields else { return Err(not_a_base(&self.url)) };
        let mut url = self.url.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty();
            for part in spec.path.split('/').skip(1) {
                let name = part.strip_prefix('{').and_then(|part| part.strip_suffix('}'));
                let value = name.map(|name| text(&fields.remove(name).unwrap_or_default()));
                if let Some(value) = value.as_deref().filter(|it| ["", ".", ".."].contains(it)) {
                    return Err(usage(format!("`{value}` cannot be part of a URL")));
                }
                segments.push(value.as_deref().unwrap_or(part));
            }
        }
        let method = Method::from_bytes(spec.method.as_str().as_bytes());
        let method = method.map_err(|error| Failure::failed(error.into()))?;
        let items = spec.items.and_then(|field| fields.remove(field));
        let request = match spec.method.has_body() {
            true if items.is_some() => self.client.request(method, url).json(&items),
            true => self.client.request(method, url).json(&fields),
            false => self.client.request(method, with_query(url, &fields)),
        };
        Ok(match &self.key {
            Some(key) => request.bearer_auth(key.expose_secret()),
            None => request,
        })
    }

    pub(super) fn unreachable_failure(&self, error: reqwest::Error) -> Failure {
        let url = &self.url;
        // The server has answered a TLS handshake in plain text.
        let is_plain = url.scheme() == "https" && causes(&error).contains("corrupt message");
        let words = match (error.is_timeout(), is_plain) {
            (true, _) => format!("the server at {url} did not answer in time: try again"),
            (false, true) => {
                format!("the server at {url} does not use TLS: try `http://` instead of `https://`")
            }
            (false, false) => {
                let server = self.name.as_ref().map(|name| format!(", the stored server `{name}`"));
                let (server, correction) = (server.unwrap_or_default(), self.correction());
                format!("no server can be reached at {url}{server}: start it, or {correction}")
            }
        };
        Failure::new(Exit::Unavailable, anyhow!(error.without_url()).context(words))
    }

    /// The next step of a person whose URL leads to no Dalsegno server.
    fn correction(&self) -> String {
        match &self.name {
            Some(name) => format!("correct its URL with `dalsegno remote add {name} URL`"),
            None => "correct --url or DALSEGNO_URL".to_owned(),
        }
    }

    fn foreign_server_failure(&self, status: StatusCode) -> Failure {
        let (url, correction) = (&self.url, self.correction());
        let words =
            format!("{url} answered {status}, but this is not a Dalsegno server: {correction}");
        Failure::failed(anyhow!(words))
    }

    /// Builds the failure of a stream that ended without a final event.
    pub(super) fn ended_stream_failure(&self) -> Failure {
        let words = format!("the server at {} ended the stream: try again", self.url);
        Failure::new(Exit::Unavailable, anyhow!(words))
    }

    /// Builds the failure from the error event of a stream.
    pub(super) fn failure_of_event(&self, spec: &Spec, problem: &[u8]) -> Failure {
        let value: Value = serde_json::from_slice(problem).unwrap_or_default();
        let status = value["status"].as_u64().and_then(|status| u16::try_from(status).ok());
        let status = status.and_then(|status| StatusCode::from_u16(status).ok());
        let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        self.refusal(spec, status, &HeaderMap::new(), problem)
    }

    fn refusal(
        &self,
        spec: &Spec,
        status: StatusCode,
        headers: &HeaderMap,
        body: &[u8],
    ) -> Failure {
        let url = &self.url;
        let exit = Exit::of(kind_of_status(status.as_u16()));
        let Ok(problem) = serde_json::from_slice::<ProblemDocument>(body) else {
            let location = headers.get(LOCATION).and_then(|location| location.to_str().ok());
            return match location.filter(|_| status.is_redirection()) {
                // Something in front of a server that is away answers like this.
                _ if exit == Exit::Unavailable => {
                    let words = format!(
                        "{url} answered {status}: a proxy cannot reach the Dalsegno server; try again"
                    );
                    Failure::new(exit, anyhow!(words))
                }
                Some(location) => {
                    let words = format!(
                        "{url} answered {status} and redirects to {location}: {}",
                        self.correction()
                    );
                    Failure::failed(anyhow!(words))
                }
                None => self.foreign_server_failure(status),
            };
        };
        let failure = match problem.code.as_str() {
            "not_found" | "method_not_allowed" => {
                let words = format!(
                    "the server at {url} has no operation `{}`: it is another version than this command, {VERSION}",
                    spec.id
                );
                return Failure::failed(anyhow!(words));
            }
            // The causes of server errors are in the server's log only.
            _ => match problem.request_id.filter(|_| status.is_server_error()) {
                Some(id) => Failure::new(
                    exit,
                    anyhow!("{} (request {id} in the log of the server)", problem.detail),
                ),
                None => Failure::new(exit, anyhow!(problem.detail)),
            },
        };
        let advice = (status == StatusCode::UNAUTHORIZED).then_some(
            "give a key with --key or --key-file, or store it with `dalsegno remote add`",
        );
        Failure { advice, wrong: problem.errors, ..failure }
    }
}

fn is_stream(response: &Response) -> bool {
    let media_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    media_type.is_some_and(|value| value.starts_with("text/event-stream"))
}

fn with_query(mut url: Url, fields: &Map<String, Value>) -> Url {
    let set: Vec<_> = fields.iter().filter(|(_, value)| !value.is_null()).collect();
    if !set.is_empty() {
        let mut query = url.query_pairs_mut();
        for (name, value) in set {
            query.append_pair(name, &text(value));
        }
    }
    url
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn not_a_base(url: &Url) -> Failure {
    usage(format!("invalid URL `{url}`: use for example https://dalsegno.example.com"))
}
