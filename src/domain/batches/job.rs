//! The job that cancels a batch whose turn has ended without it.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::queue::{Backoff, Job, Policy};

/// Cancels a batch of a call that no turn waits for any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CancelBatch {
    pub provider: String,
    pub call_id: Uuid,
    /// `None`: the provider may or may not have received the request.
    pub batch_id: Option<String>,
    /// The time before the first sending.
    pub sent_at: DateTime<Utc>,
    /// The time before the last sending.
    pub last_sent_at: DateTime<Utc>,
}

impl Job for CancelBatch {
    const KIND: &'static str = "cancel_batch";

    fn policy() -> Policy {
        Policy {
            // These workers have the credentials of providers.
            queue: "turns",
            max_attempts: 20,
            backoff: Backoff { first: Duration::from_secs(10), cap: Duration::from_secs(60 * 60) },
            deadline: Some(Duration::from_secs(5 * 60)),
            ..Policy::default()
        }
    }
}
