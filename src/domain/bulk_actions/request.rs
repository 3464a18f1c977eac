//! Asking for an action on many tasks.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::{PgConnection, types::Json};
use uuid::Uuid;

use super::{Action, BulkAction, Error, get};
use crate::{
    domain::{
        StatementError, ids,
        limits::{LimitEffect::Refused, LimitEntry},
        tasks::{self, TaskFilter},
        text,
    },
    queue::{self, Job, Options, Policy},
};

/// The longest reason, in bytes.
const REASON_MAX_BYTES: usize = 4_096;

pub const LIMITS: &[LimitEntry] = &[LimitEntry::fixed(
    "bytes of the reason of a bulk action",
    REASON_MAX_BYTES as u64,
    Refused(text::Error::TOO_LONG.code),
)];

#[derive(Debug, Clone, Copy)]
pub struct New<'a> {
    pub action: Action,
    pub filter: &'a TaskFilter,
    pub reason: &'a str,
    /// The request is refused unless exactly this number of tasks match.
    pub expected_count: Option<i64>,
}

/// The job that carries it out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CarryOut {
    pub bulk_action_id: Uuid,
}

impl Job for CarryOut {
    const KIND: &'static str = "bulk_action";

    fn policy() -> Policy {
        Policy { queue: "upkeep", ..Policy::default() }
    }
}

/// Stores an action, and enqueues the job that carries it out.
pub async fn request(
    conn: &mut PgConnection,
    new: &New<'_>,
    now: DateTime<Utc>,
) -> Result<BulkAction, Error> {
    text::check_optional("reason", new.reason, REASON_MAX_BYTES)?;
    new.filter.check()?;
    if new.filter.is_empty() && new.expected_count.is_none() {
        return Err(Error::EmptyFilter);
    }
    let states = new.action.states();
    let matched = tasks::count_matching(&mut *conn, new.filter, states, now).await?;
    if let Some(expected) = new.expected_count.filter(|expected| *expected != matched) {
        return Err(Error::CountDiffers { expected, found: matched });
    }
    let id = ids::new_at(now);
    let job =
        queue::enqueue(&mut *conn, &CarryOut { bulk_action_id: id }, &Options::default()).await?;
    sqlx::query!(
        "insert into dalsegno.bulk_actions (id, created_at, job_id, matched, action, reason, filter) values ($1, $2, $3, $4, $5, $6, $7)",
        id,
        now,
        job.job_id,
        matched,
        new.action as Action,
        new.reason,
        Json(new.filter) as _,
    )
    .execute(&mut *conn)
    .await
    .map_err(StatementError::to("store a bulk action"))?;
    get(conn, id).await
}
