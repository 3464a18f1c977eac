//! Calls of operations on a Dalsegno server, over HTTP.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::anyhow;
use clap::Args;
use reqwest::{
    Client, Method, RequestBuilder, Response, StatusCode, Url,
    header::{CONTENT_TYPE, HeaderMap, LOCATION},
};
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Map, Value};

use super::{Exit, Failure, remotes};
use crate::{
    causes::causes,
    operations::{FieldError, Operation, Spec, Success, kind_of_status},
    outbound,
    settings::Environment,
};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Longer than the servers' own limit for requests.
const TIMEOUT: Duration = Duration::from_secs(300);
/// Effectively unlimited: the reader ends a stream.
const TIMEOUT_OF_STREAMS: Duration = Duration::from_secs(366 * 86_400);
const VERSION: &str = env!("CARGO_PKG_VERSION");

#[derive(Debug, Default, Args)]
pub(super) struct RemoteFlags {
    // Not a doc comment: rustdoc would turn the address into a link.
    #[arg(
        id = "server_url",
        long = "url",
        global = true,
        value_name = "URL",
        help = "Sends the command to this server",
        long_help = "Sends the command to this server, for example https://dalsegno.example.com, instead of the database. DALSEGNO_URL sets it, too"
    )]
    url: Option<String>,
    /// Sends the command to this stored server.
    ///
    /// `dalsegno remote` stores servers; `local` is the database. DALSEGNO_REMOTE sets it, too.
    #[arg(
        id = "server_name",
        long = "remote",
        global = true,
        value_name = "NAME",
        conflicts_with = "server_url"
    )]
    remote: Option<String>,
    /// API key for the server.
    ///
    /// DALSEGNO_KEY sets it, too, for the server of --url or DALSEGNO_URL, and keeps it out of the list of processes.
    #[arg(id = "server_key", long = "key", global = true, value_name = "KEY")]
    key: Option<String>,
    /// File with the API key for the server.
    #[arg(
        id = "server_key_file",
        long = "key-file",
        global = true,
        value_name = "FILE",
        conflicts_with = "server_key"
    )]
    key_file: Option<PathBuf>,
}

/// The server that a command is sent to.
#[derive(Debug, Clone)]
pub(super) struct Target {
    /// Name of the stored server. `None`: the server was given by its URL.
    name: Option<String>,
    url: Url,
    key: Option<SecretString>,
}

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

impl RemoteFlags {
    pub(super) fn is_given(&self) -> bool {
        self.url.is_some() || self.remote.is_some() || self.has_key()
    }

    /// Returns the key, or the file with the key, from the command line.
    pub(super) fn own_key(&self) -> (Option<&str>, Option<&Path>) {
        (self.key.as_deref(), self.key_file.as_deref())
    }

    /// Selects the server: flags first, then variables, then the stored server in use. `None`: the command works on the
    /// database.
    pub(super) fn target(&self, environment: &Environment) -> Result<Option<Target>, Failure> {
        let variable = |name| environment.get(name).filter(|_| !self.names_server());
        let target = match self.url.as_deref().or_else(|| variable("DALSEGNO_URL")) {
            Some(url) => {
                // DALSEGNO_KEY is only sent to the server of DALSEGNO_URL.
                let is_its_server = environment.get("DALSEGNO_URL").is_none_or(|its| its == url);
                let key = environment.get("DALSEGNO_KEY").filter(|_| is_its_server);
                Some(Target::new(None, server_url(url)?, key.map(str::to_owned)))
            }
            None => {
                let name = self.remote.as_deref().or_else(|| variable("DALSEGNO_REMOTE"));
                remotes::target(name, environment)?
            }
        };
        let key = match self.own_key() {
            (Some(key), _) => Some(key.to_owned()),
            (None, Some(file)) => Some(read_key_file(file)?),
            (None, None) => None,
        };
        match (target, key) {
            (Some(target), Some(key)) => Ok(Some(Target::new(target.name, target.url, Some(key)))),
            (None, Some(_)) => {
                Err(usage("a key needs a server: name it with --url or --remote".to_owned()))
            }
            (target, None) => Ok(target),
        }
    }

    pub(super) fn names_server(&self) -> bool {
        self.url.is_some() || self.remote.is_some()
    }

    pub(super) fn has_key(&self) -> bool {
        self.key.is_some() || self.key_file.is_some()
    }
}

impl Target {
    /// Creates a target. Whitespace around the key, for example from a file, is removed.
    pub(super) fn new(name: Option<String>, url: Url, key: Option<String>) -> Self {
        Self { name, url, key: key.map(|key| SecretString::from(key.trim())) }
    }

    /// Returns a note that names a stored server, because the command line does not show it.
    pub(super) fn describe(&self) -> Option<String> {
        self.name.as_ref().map(|name| format!("on {name}, {}", self.url))
    }
}

pub(super) fn server_url(text: &str) -> Result<Url, Failure> {
    // Credentials in the URL would be printed with it.
    let is_plain = |url: &Url| {
        let has_more = url.query().is_some() || url.fragment().is_some();
        let has_user = !url.username().is_empty() || url.password().is_some();
        ["http", "https"].contains(&url.scheme()) && !has_more && !has_user
    };
    let url = Url::parse(text).ok().filter(is_plain);
    match url {
        Some(url) if url.path().trim_end_matches('/').ends_with("/v1") => {
            Err(usage(format!("invalid URL `{text}`: leave out `/v1`, commands add it themselves")))
        }
        Some(url) => Ok(url),
        None => Err(usage(format!(
            "invalid URL `{text}`: use for example https://dalsegno.example.com"
        ))),
    }
}

pub(super) fn read_key_file(file: &Path) -> Result<String, Failure> {
    let key = std::fs::read_to_string(file);
    key.map_err(|error| usage(format!("cannot read {}: {error}", file.display())))
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

fn usage(words: String) -> Failure {
    Failure::new(Exit::Usage, anyhow!(words))
}

fn not_a_base(url: &Url) -> Failure {
    usage(format!("invalid URL `{url}`: use for example https://dalsegno.example.com"))
}
