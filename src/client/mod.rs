//! For other systems in Rust: asks a service over HTTP to have something done, or puts it on the queue in the caller's own
//! transaction.
//!
//! ```no_run
//! # async fn example(campaign: uuid::Uuid) -> Result<(), dalsegno::client::Error> {
//! use dalsegno::client::{Client, NewTask};
//!
//! let client = Client::new("http://127.0.0.1:7770")?;
//! let new = NewTask { idempotency_key: Some("order-17"), ..NewTask::of("copywriter", "Write part one.") };
//! let task = client.add_task(campaign, &new).await?;
//! println!("{}", client.wait(task.id).await?.result.unwrap_or_default());
//! # Ok(())
//! # }
//! ```
//!
//! With a connection to the service's database, [`enqueue`] makes the task a part of the caller's transaction: it exists exactly
//! if that commits.
//!
//! Nothing is tried again here. An error says whether the same call can succeed later; with an idempotency key it is safe to
//! make it again.

mod events;
mod sql;

use std::time::Duration;

use chrono::{DateTime, Utc};
use reqwest::{RequestBuilder, Response, StatusCode, Url};
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::json;
use uuid::Uuid;

pub use self::{
    events::{Event, Events},
    sql::{EnqueueError, Enqueued, enqueue},
};
pub use crate::domain::{agents::SessionMode as Mode, amount::Limit, tasks::State};
use crate::{domain::agents::MAIN, outbound};

/// A service, as another system sees it. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Client {
    http: reqwest::Client,
    base_url: Url,
    key: Option<SecretString>,
}

/// What is asked.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct NewTask<'a> {
    pub agent: &'a str,
    /// Which one of several copies of the agent; each has a conversation of its own.
    pub instance: &'a str,
    pub prompt: &'a str,
    /// `None`: as the agent's file says; in SQL, where nobody reads it, [`Mode::Continue`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<Mode>,
    pub budget: Limit,
    /// The same key and question give the same task, whichever way they come.
    #[serde(skip)]
    pub idempotency_key: Option<&'a str>,
    /// 0 is the most urgent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
    /// Not before this moment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_at: Option<DateTime<Utc>>,
}

/// What was asked, and what came of it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Task {
    pub id: Uuid,
    pub campaign_id: Uuid,
    pub agent: String,
    pub instance: String,
    pub state: State,
    pub result: Option<String>,
    pub error: Option<String>,
    pub session_id: Option<Uuid>,
    pub spent_micros: i64,
    pub spent_tokens: i64,
    pub created_at: DateTime<Utc>,
    pub ended_at: Option<DateTime<Utc>>,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("`{0}` is no address of a service: write it like http://127.0.0.1:7770")]
    Address(String),
    #[error("setting up HTTP")]
    SetUp(#[source] reqwest::Error),
    #[error("asking the service to {action}")]
    Http {
        action: &'static str,
        #[source]
        source: reqwest::Error,
    },
    /// In the words of the service.
    #[error("the service refuses to {action}: {detail}")]
    Refused {
        action: &'static str,
        status: u16,
        /// Stable: programs decide by it.
        code: String,
        detail: String,
        /// Whether the same call can succeed later.
        retryable: bool,
    },
}

/// The part of problem+json that programs decide by.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Problem {
    code: String,
    detail: String,
    retryable: bool,
}

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Longer than a request may take on the other side.
const READ_TIMEOUT: Duration = Duration::from_secs(60);
/// Of one request; [`Client::wait`] makes as many as it takes.
const WAIT_SECS: u64 = 25;

impl<'a> NewTask<'a> {
    /// With everything else left to the service.
    pub fn of(agent: &'a str, prompt: &'a str) -> Self {
        Self {
            agent,
            instance: MAIN,
            prompt,
            session: None,
            budget: Limit::default(),
            idempotency_key: None,
            priority: None,
            run_at: None,
        }
    }
}

impl Client {
    pub fn new(base_url: &str) -> Result<Self, Error> {
        let address = || Error::Address(base_url.to_owned());
        let base_url = Url::parse(base_url).map_err(|_| address())?;
        if base_url.cannot_be_a_base() || !matches!(base_url.scheme(), "http" | "https") {
            return Err(address());
        }
        let http = outbound::client(Some(&base_url))
            .connect_timeout(CONNECT_TIMEOUT)
            .read_timeout(READ_TIMEOUT);
        Ok(Self { http: http.build().map_err(Error::SetUp)?, base_url, key: None })
    }

    /// The same with an API key.
    pub fn with_key(self, key: impl Into<SecretString>) -> Self {
        Self { key: Some(key.into()), ..self }
    }

    /// Asks an agent to do something. The task that an earlier call with this idempotency key made is given back.
    pub async fn add_task(&self, campaign_id: Uuid, new: &NewTask<'_>) -> Result<Task, Error> {
        let request = self.http.post(self.url(&format!("v1/campaigns/{campaign_id}/tasks")));
        let request = match new.idempotency_key {
            Some(key) => request.header("Idempotency-Key", key),
            None => request,
        };
        self.json("add a task", request.json(new)).await
    }

    /// How a task stands.
    pub async fn task(&self, id: Uuid) -> Result<Task, Error> {
        self.json("show a task", self.http.get(self.url(&format!("v1/tasks/{id}")))).await
    }

    /// Waits for the end of a task, whatever that is.
    pub async fn wait(&self, id: Uuid) -> Result<Task, Error> {
        loop {
            let path = format!("v1/tasks/{id}?wait={WAIT_SECS}s");
            let task: Task = self.json("wait for a task", self.http.get(self.url(&path))).await?;
            if task.ended_at.is_some() {
                return Ok(task);
            }
        }
    }

    /// What happens to a task, from its beginning or after the event with this id.
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

    /// Below the path that the service is served from.
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
        // What is in between may answer in other words.
        let problem: Problem = response.json().await.unwrap_or_default();
        Err(refused(action, status, problem))
    }
}

fn refused(action: &'static str, status: StatusCode, problem: Problem) -> Error {
    let Problem { code, detail, retryable } = problem;
    let detail = if detail.is_empty() { status.to_string() } else { detail };
    let retryable = retryable || (code.is_empty() && status.is_server_error());
    Error::Refused { action, status: status.as_u16(), code, detail, retryable }
}
