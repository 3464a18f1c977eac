//! Client for other systems in Rust: adds tasks over HTTP, or in SQL within the caller's own transaction.
//!
//! ```no_run
//! # #[cfg(feature = "http")]
//! # async fn example(campaign: uuid::Uuid) -> Result<(), dalsegno_client::Error> {
//! use dalsegno_client::{Client, NewTask};
//!
//! let client = Client::new("http://127.0.0.1:7770")?;
//! let new = NewTask { idempotency_key: Some("order-17"), ..NewTask::of("copywriter", "Write part one.") };
//! let task = client.add_task(campaign, &new).await?;
//! println!("{}", client.wait(task.id).await?.result.unwrap_or_default());
//! # Ok(())
//! # }
//! ```
//!
//! With the feature `sql` and a connection to the service's database, `enqueue` makes the task a part of the caller's
//! transaction: it exists if and only if that commits.
//!
//! Over HTTP the client repeats calls that can succeed later, and waits as long as the service asks for ([`RetryPolicy`]). Each change has an
//! idempotency key, so the service runs it once. A broken stream of events continues after its last event. [`verify_webhook`] checks the messages
//! that the service sends.

mod attachment;
#[cfg(feature = "http")]
mod bulk;
#[cfg(feature = "http")]
mod error;
#[cfg(feature = "http")]
mod events;
#[cfg(feature = "http")]
mod http;
mod link;
#[cfg(feature = "http")]
mod request;
#[cfg(feature = "http")]
mod retry;
#[cfg(feature = "sql")]
mod sql;
#[cfg(feature = "http")]
mod webhook;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[cfg(feature = "sql")]
pub use self::sql::{EnqueueError, EnqueueResult, enqueue};
pub use self::{
    attachment::Attachment,
    link::{OnFailure, TaskLink},
};
#[cfg(feature = "http")]
pub use self::{
    bulk::BulkItem,
    error::Error,
    events::{Event, Events},
    http::{Client, State, Task},
    retry::RetryPolicy,
    webhook::{WebhookError, WebhookEvent, verify_webhook},
};

/// A request to an agent.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct NewTask<'a> {
    pub agent: &'a str,
    /// Instance of the agent; each has a conversation of its own.
    pub instance: &'a str,
    pub prompt: &'a str,
    /// Node that the task belongs to: the name of the node's file. `None`: the session stays at its node. Only over HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<&'a str>,
    /// Session to use. `None`: as the agent's file says; in SQL, which does not read the file, [`Mode::Continue`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<Mode>,
    pub budget: Limit,
    /// Key under which the same question gives the same task, over HTTP and in SQL. `None`: each call adds a task; over HTTP the client
    /// makes a key for its own retries.
    #[serde(skip)]
    pub idempotency_key: Option<&'a str>,
    /// Priority; 0 is the most urgent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
    /// Earliest moment of the first turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_at: Option<DateTime<Utc>>,
    /// Tasks to wait for: the task runs when all of them have ended, and its agent gets their results in this order. In SQL
    /// [`TaskLink::Task`] alone.
    #[serde(skip_serializing_if = "<[TaskLink<'_>]>::is_empty")]
    pub depends_on: &'a [TaskLink<'a>],
    /// Reaction to a failed or cancelled task in `depends_on`.
    pub on_failure: OnFailure,
    /// Flow templates that the agent may start in the task; an empty list: none. `None`: those of the agent's file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow_templates: Option<&'a [&'a str]>,
    /// Short names to find the task by. An idempotency key does not compare them.
    #[serde(skip_serializing_if = "<[&str]>::is_empty")]
    pub tags: &'a [&'a str],
    /// JSON object with keys and values to find the task by. An idempotency key does not compare it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<&'a Value>,
    /// JSON object with named values that the calls of the task contain. They win over those of the campaign. Only over HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameters: Option<&'a Value>,
    /// JSON Schema that the answer has to match. `None`: the one of the agent's file, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_schema: Option<&'a Value>,
    /// Seconds that the answer may take: 3600 to 604800. `None`: no time is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub within_secs: Option<i32>,
    /// Files that the task is given with its prompt; in SQL [`Attachment::File`] alone.
    #[serde(skip_serializing_if = "<[Attachment<'_>]>::is_empty")]
    pub attachments: &'a [Attachment<'a>],
}

/// The session that a task asks for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Continues the conversation that the agent has in the campaign.
    #[default]
    Continue,
    /// Begins without memory; later tasks continue from here.
    Fresh,
    /// A session of its own, which no later task continues.
    None,
}

/// A budget; `None` means no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limit {
    pub micros: Option<i64>,
    pub tokens: Option<i64>,
}

/// The instance of an agent that has only one.
const MAIN: &str = "main";

impl<'a> NewTask<'a> {
    /// Creates a request with defaults for everything else.
    pub fn of(agent: &'a str, prompt: &'a str) -> Self {
        Self {
            agent,
            instance: MAIN,
            prompt,
            node: None,
            session: None,
            budget: Limit::default(),
            idempotency_key: None,
            priority: None,
            run_at: None,
            depends_on: &[],
            on_failure: OnFailure::default(),
            flow_templates: None,
            tags: &[],
            metadata: None,
            parameters: None,
            result_schema: None,
            within_secs: None,
            attachments: &[],
        }
    }
}
