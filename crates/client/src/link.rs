//! Tasks that wait for others.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A task that another one waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskLink<'a> {
    /// A task that comes before this one in the same call of `Client::add_tasks`, by its index from 0.
    Item(usize),
    /// A task that the same caller added under this idempotency key.
    Key(&'a str),
    #[serde(untagged)]
    Task(Uuid),
}

/// Reaction to the failure or cancellation of a task that this one waits for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    /// Runs when all of them have ended, and is told of the failures.
    #[default]
    Run,
    /// Is cancelled at once, with the failed task as the reason.
    Cancel,
}
