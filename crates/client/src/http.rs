//! A client of the service over HTTP.

use std::{sync::Arc, time::Duration};

use chrono::{DateTime, Utc};
use reqwest::{
    Response, Url,
    header::{CONTENT_TYPE, HeaderValue},
    redirect,
};
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    Error, Events, Mode, NewTask, RetryPolicy,
    bulk::{self, BulkAnswer, BulkItem},
    error::refused,
    request::Request,
    retry::Sleep,
};

/// A client of a service. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Client {
    http: reqwest::Client,
    base_url: Url,
    key: Option<SecretString>,
    pub(super) retry: RetryPolicy,
    sleep: Sleep,
}

/// A task and its outcome.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Task {
    pub id: Uuid,
    pub campaign_id: Uuid,
    pub agent: String,
    pub instance: String,
    /// The session that the task asked for.
    pub session_mode: Mode,
    pub state: State,
    pub prompt: String,
    pub result: Option<String>,
    /// The result as JSON, if the task has a result schema.
    pub result_json: Option<Value>,
    pub error: Option<String>,
    /// Limits of the task. `None`: no limit.
    pub budget_micros: Option<i64>,
    pub budget_tokens: Option<i64>,
    pub spent_micros: i64,
    pub spent_tokens: i64,
    /// Number of its job, for `dalsegno job`.
    pub job_id: i64,
    pub session_id: Option<Uuid>,
    /// Number of its last turn in the session.
    pub turn: Option<i32>,
    pub created_at: DateTime<Utc>,
    pub started_at: Option<DateTime<Utc>>,
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
        let http = connections(&base_url).map_err(Error::SetUp)?;
        let (retry, sleep) = (RetryPolicy::default(), Sleep::default());
        Ok(Self { http, base_url, key: None, retry, sleep })
    }

    /// Returns the client with an API key.
    pub fn with_key(self, key: impl Into<SecretString>) -> Self {
        Self { key: Some(key.into()), ..self }
    }

    /// Returns the client with another policy for retries.
    pub fn with_retries(self, retry: RetryPolicy) -> Self {
        Self { retry, ..self }
    }

    /// Returns the client with another way to wait between tries, for tests.
    pub fn with_sleep<F: Future<Output = ()> + Send + 'static>(
        self,
        sleep: impl Fn(Duration) -> F + Send + Sync + 'static,
    ) -> Self {
        Self { sleep: Sleep(Arc::new(move |wait| Box::pin(sleep(wait)))), ..self }
    }

    /// Adds a task. Returns the earlier task if this idempotency key already has one.
    pub async fn add_task(&self, campaign_id: Uuid, new: &NewTask<'_>) -> Result<Task, Error> {
        let request = Request::post("add a task", format!("v1/campaigns/{campaign_id}/tasks"));
        self.json(&request.with_key(new.idempotency_key).with_body(new)?).await
    }

    /// Adds any number of tasks, a thousand per request, and returns them in their order. Each request adds all of its tasks or none. A
    /// task without an idempotency key of its own gets `key` and its number, such as `import-1/3`: with the same `key` the call can be
    /// repeated after any failure, without it a repeat adds the tasks of earlier requests again.
    /// [`TaskLink::Item`](super::TaskLink::Item) counts from 0 over all tasks.
    pub async fn add_tasks(
        &self,
        campaign_id: Uuid,
        tasks: &[NewTask<'_>],
        key: Option<&str>,
    ) -> Result<Vec<BulkItem>, Error> {
        let prefix = key.map_or_else(|| Uuid::new_v4().to_string(), str::to_owned);
        let keys = bulk::keys(tasks, &prefix);
        let links = bulk::links(tasks, &keys)?;
        let keyed = bulk::keyed(tasks, &keys, &links);
        let mut added = Vec::with_capacity(tasks.len());
        for batch in keyed.chunks(bulk::BATCH) {
            let path = format!("v1/campaigns/{campaign_id}/tasks/bulk");
            let request = Request::post("add tasks", path).with_key(Some(&prefix));
            let answer: BulkAnswer = self.json(&request.with_body(&batch)?).await?;
            added.extend(answer.items);
        }
        Ok(added)
    }

    /// Returns a task with its current state.
    pub async fn task(&self, id: Uuid) -> Result<Task, Error> {
        self.json(&Request::get("show a task", format!("v1/tasks/{id}"))).await
    }

    /// Waits until a task has ended, in any state.
    pub async fn wait(&self, id: Uuid) -> Result<Task, Error> {
        let request = Request::get("wait for a task", format!("v1/tasks/{id}?wait={WAIT_SECS}s"));
        loop {
            let task: Task = self.json(&request).await?;
            if task.ended_at.is_some() {
                return Ok(task);
            }
        }
    }

    /// Follows the events of a task, from its beginning or after the event with this id.
    pub async fn events(&self, id: Uuid, after: Option<&str>) -> Result<Events, Error> {
        let request = Request::get("follow a task", format!("v1/tasks/{id}/events")).after(after);
        Events::open(self.clone(), request).await
    }

    /// Cancels a task: at once, or through the worker that runs it.
    pub async fn cancel(&self, id: Uuid, reason: &str) -> Result<(), Error> {
        let request = Request::post("cancel a task", format!("v1/tasks/{id}/cancel"));
        let request = request.with_key(None).with_body(&json!({ "reason": reason }))?;
        self.bytes(&request).await.map(drop)
    }

    async fn json<T: DeserializeOwned>(&self, request: &Request) -> Result<T, Error> {
        let bytes = self.bytes(request).await?;
        let action = request.action;
        serde_json::from_slice(&bytes).map_err(|source| Error::Answer { action, source })
    }

    /// Returns the whole answer.
    async fn bytes(&self, request: &Request) -> Result<Vec<u8>, Error> {
        let mut retries = 0;
        loop {
            match self.bytes_once(request).await {
                Ok(bytes) => return Ok(bytes),
                Err(error) => self.wait_or_fail(error, request, &mut retries).await?,
            }
        }
    }

    /// Returns an answer whose body is still to be read.
    pub(super) async fn send(&self, request: &Request) -> Result<Response, Error> {
        let mut retries = 0;
        loop {
            match self.send_once(request).await {
                Ok(response) => return Ok(response),
                Err(error) => self.wait_or_fail(error, request, &mut retries).await?,
            }
        }
    }

    /// Waits until the next try, or returns the error to give up.
    pub(super) async fn wait_or_fail(
        &self,
        error: Error,
        request: &Request,
        retries: &mut u32,
    ) -> Result<(), Error> {
        let Some(wait) = self.retry.wait(&error, request, *retries) else { return Err(error) };
        (self.sleep.0)(wait).await;
        *retries += 1;
        Ok(())
    }

    async fn bytes_once(&self, request: &Request) -> Result<Vec<u8>, Error> {
        let response = self.send_once(request).await?;
        let bytes = response.bytes().await;
        Ok(bytes.map_err(|source| Error::Http { action: request.action, source })?.into())
    }

    pub(super) async fn send_once(&self, request: &Request) -> Result<Response, Error> {
        let action = request.action;
        let url = format!("{}/{}", self.base_url.as_str().trim_end_matches('/'), request.path);
        let mut sent = self.http.request(request.method.clone(), url);
        if let Some(key) = &self.key {
            sent = sent.bearer_auth(key.expose_secret());
        }
        if let Some(key) = &request.key {
            sent = sent.header("Idempotency-Key", key);
        }
        if let Some(id) = &request.last_event_id {
            sent = sent.header("Last-Event-ID", id);
        }
        if let Some(body) = &request.body {
            let json = HeaderValue::from_static("application/json");
            sent = sent.header(CONTENT_TYPE, json).body(body.clone());
        }
        let response = sent.send().await.map_err(|source| Error::Http { action, source })?;
        let (status, headers) = (response.status(), response.headers().clone());
        if status.is_success() {
            return Ok(response);
        }
        let body = response.bytes().await.unwrap_or_default();
        Err(refused(action, status, &headers, &body))
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
