//! A client of the service over HTTP.

use std::time::Duration;

use chrono::{DateTime, Utc};
use reqwest::{RequestBuilder, Response, StatusCode, Url, redirect};
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{Events, NewTask};

/// A client of a service. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Client {
    http: reqwest::Client,
    base_url: Url,
    key: Option<SecretString>,
}

/// A task and its outcome.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Task {
    pub id: Uuid,
    pub campaign_id: Uuid,
    pub agent: String,
    pub instance: String,
    pub state: State,
    pub result: Option<String>,
    /// The result as JSON, if the task has a result schema.
    #[serde(default)]
    pub result_json: Option<Value>,
    pub error: Option<String>,
    pub session_id: Option<Uuid>,
    pub spent_micros: i64,
    pub spent_tokens: i64,
    pub created_at: DateTime<Utc>,
    pub ended_at: Option<DateTime<Utc>>,
}

/// The state of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    Queued,
    Running,
    Done,
    Failed,
    Cancelled,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("invalid URL `{0}`: use for example http://127.0.0.1:7770")]
    Address(String),
    #[error("cannot set up the HTTP client")]
    SetUp(#[source] reqwest::Error),
    #[error("cannot {action}: the service did not answer")]
    Http {
        action: &'static str,
        #[source]
        source: reqwest::Error,
    },
    /// The service refused the call, for the reason that it gives.
    #[error("the service refuses to {action}: {detail}")]
    Refused {
        action: &'static str,
        status: u16,
        /// Code of the problem. It is stable, so programs can decide by it.
        code: String,
        detail: String,
        /// True if the same call can succeed later.
        retryable: bool,
    },
}

/// The fields of problem+json that this crate uses.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Problem {
    code: String,
    detail: String,
    retryable: bool,
}

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Longer than the service lets a request take.
const READ_TIMEOUT: Duration = Duration::from_secs(60);
/// Wait of one request; [`Client::wait`] repeats it.
const WAIT_SECS: u64 = 25;

impl Client {
    pub fn new(base_url: &str) -> Result<Self, Error> {
        let address = || Error::Address(base_url.to_owned());
        let base_url = Url::parse(base_url).map_err(|_| address())?;
        if base_url.cannot_be_a_base() || !matches!(base_url.scheme(), "http" | "https") {
            return Err(address());
        }
        Ok(Self { http: connections(&base_url).map_err(Error::SetUp)?, base_url, key: None })
    }

    /// Returns the client with an API key.
    pub fn with_key(self, key: impl Into<SecretString>) -> Self {
        Self { key: Some(key.into()), ..self }
    }

    /// Adds a task. Returns the earlier task if this idempotency key already has one.
    pub async fn add_task(&self, campaign_id: Uuid, new: &NewTask<'_>) -> Result<Task, Error> {
        let request = self.http.post(self.url(&format!("v1/campaigns/{campaign_id}/tasks")));
        let request = match new.idempotency_key {
            Some(key) => request.header("Idempotency-Key", key),
            None => request,
        };
        self.json("add a task", request.json(new)).await
    }

    /// Returns a task with its current state.
    pub async fn task(&self, id: Uuid) -> Result<Task, Error> {
        self.json("show a task", self.http.get(self.url(&format!("v1/tasks/{id}")))).await
    }

    /// Waits until a task has ended, in any state.
    pub async fn wait(&self, id: Uuid) -> Result<Task, Error> {
        loop {
            let path = format!("v1/tasks/{id}?wait={WAIT_SECS}s");
            let task: Task = self.json("wait for a task", self.http.get(self.url(&path))).await?;
            if task.ended_at.is_some() {
                return Ok(task);
            }
        }
    }

    /// Follows the events of a task, from its beginning or after the event with this id.
    pub async fn events(&self, id: Uuid, after: Option<&str>) -> Result<Events, Error> {
        let request = self.http.get(self.url(&format!("v1/tasks/{id}/events")));
        let request = match after {
            Some(after) => request.header("Last-Event-ID", after),
            None => request,
        };
        Ok(Events::of(self.send("follow a task", request).await?))
    }

    /// Cancels a task: at once, or through the worker that runs it.
    pub async fn cancel(&self, id: Uuid, reason: &str) -> Result<(), Error> {
        let request = self.http.post(self.url(&format!("v1/tasks/{id}/cancel")));
        self.send("cancel a task", request.json(&json!({ "reason": reason }))).await.map(|_| ())
    }

    /// Returns the URL of a path below the base path of the service.
    fn url(&self, path: &str) -> String {
        format!("{}/{path}", self.base_url.as_str().trim_end_matches('/'))
    }

    async fn json<T: DeserializeOwned>(
        &self,
        action: &'static str,
        request: RequestBuilder,
    ) -> Result<T, Error> {
        let response = self.send(action, request).await?;
        response.json().await.map_err(|source| Error::Http { action, source })
    }

    async fn send(&self, action: &'static str, request: RequestBuilder) -> Result<Response, Error> {
        let request = match &self.key {
            Some(key) => request.bearer_auth(key.expose_secret()),
            None => request,
        };
        let response = request.send().await.map_err(|source| Error::Http { action, source })?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        // A proxy may answer with another kind of body.
        let problem: Problem = response.json().await.unwrap_or_default();
        Err(refused(action, status, problem))
    }
}

/// Builds the HTTP client. It follows no redirect, so that the key goes only to its service.
fn connections(base_url: &Url) -> reqwest::Result<reqwest::Client> {
    // Fails if the process already has a provider, which is then used.
    _ = rustls::crypto::ring::default_provider().install_default();
    let builder = reqwest::Client::builder()
        .user_agent(concat!("dalsegno/", env!("CARGO_PKG_VERSION")))
        .redirect(redirect::Policy::none())
        .connect_timeout(CONNECT_TIMEOUT)
        .read_timeout(READ_TIMEOUT);
    match base_url.scheme() {
        // Otherwise the client looks for the system's certificates, and fails in an image that has none.
        "http" => builder.tls_certs_only([]).build(),
        _ => builder.build(),
    }
}

fn refused(action: &'static str, status: StatusCode, problem: Problem) -> Error {
    let Problem { code, detail, retryable } = problem;
    let detail = if detail.is_empty() { status.to_string() } else { detail };
    let retryable = retryable || (code.is_empty() && status.is_server_error());
    Error::Refused { action, status: status.as_u16(), code, detail, retryable }
}
