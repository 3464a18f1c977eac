//! Message batches: calls of turns that have begun, and whose answers a later run of the job reads.
//!
//! The row of a batch exists from the moment before its request is sent until the end of its turn, so a task has one at most. The
//! transaction that ends the turn without the answer [gives the batch up](give_up).

mod job;

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use sqlx::{PgConnection, PgExecutor};
use uuid::Uuid;

pub use self::job::CancelBatch;
use super::{StatementError, text::count};
use crate::queue;

/// Time after the last sending in which the list of the provider may not have the batch yet. Longer than the timeout of the sending.
pub const UNLISTED: TimeDelta = TimeDelta::minutes(2);

/// The call of an open turn, before it is sent.
#[derive(Debug, Clone, Copy)]
pub struct NewBatch<'a> {
    pub session_id: Uuid,
    pub turn: i32,
    pub task_id: Uuid,
    /// Our id of the call.
    pub call_id: Uuid,
    pub provider: &'a str,
    pub model: &'a str,
    pub answer_by: DateTime<Utc>,
    /// The turn between its call and its end, as JSON.
    pub open_turn: &'a str,
}

/// A batch that a turn waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    pub session_id: Uuid,
    pub turn: i32,
    pub task_id: Uuid,
    pub call_id: Uuid,
    pub provider: String,
    pub model: String,
    /// The provider's id. `None`: it is unknown if the provider has received the request.
    pub batch_id: Option<String>,
    /// The time before the first sending.
    pub sent_at: DateTime<Utc>,
    /// The time before the last sending. A batch that the provider does not have is sent again.
    pub last_sent_at: DateTime<Utc>,
    pub answer_by: DateTime<Utc>,
    /// Set once the batch was cancelled, because the task waits no longer.
    pub cancelled_at: Option<DateTime<Utc>>,
    /// Number of times that the provider was asked about it.
    pub n_looks: i32,
}

/// The wait of a task for a batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = TaskBatch)]
pub struct BatchWait {
    /// The provider's id. Null: it is unknown if the provider has received the request.
    pub batch_id: Option<String>,
    pub provider: String,
    pub model: String,
    pub sent_at: DateTime<Utc>,
    /// The task waits for the batch until then, and then makes an ordinary call.
    pub answer_by: DateTime<Utc>,
    /// The time at which the batch was cancelled, because that moment has passed.
    pub cancelled_at: Option<DateTime<Utc>>,
    /// The error of the last look at the batch.
    pub problem: Option<String>,
}

/// Stores a batch before it is sent. The caller holds the running turn.
pub async fn insert(
    executor: impl PgExecutor<'_>,
    new: &NewBatch<'_>,
    now: DateTime<Utc>,
) -> Result<(), StatementError> {
    sqlx::query!(
        "insert into dalsegno.batches (session_id, turn, task_id, call_id, provider, model, sent_at, last_sent_at, answer_by, open_turn)
         values ($1, $2, $3, $4, $5, $6, $7, $7, $8, $9)",
        new.session_id,
        new.turn,
        new.task_id,
        new.call_id,
        new.provider,
        new.model,
        now,
        new.answer_by,
        new.open_turn,
    )
    .execute(executor)
    .await
    .map(drop)
    .map_err(StatementError::to("store a batch before it is sent"))
}

/// Finds the batch that a task waits for.
pub async fn of_task(
    executor: impl PgExecutor<'_>,
    task_id: Uuid,
) -> Result<Option<Batch>, StatementError> {
    sqlx::query_as!(
        Batch,
        "select session_id, turn, task_id, call_id, provider, model, batch_id, sent_at, last_sent_at, answer_by, cancelled_at, n_looks
           from dalsegno.batches where task_id = $1",
        task_id,
    )
    .fetch_optional(executor)
    .await
    .map_err(StatementError::to("find the batch of a task"))
}

/// Reads the open turn of a batch, as JSON.
pub async fn open_turn(
    executor: impl PgExecutor<'_>,
    call_id: Uuid,
) -> Result<Option<String>, StatementError> {
    sqlx::query_scalar!("select open_turn from dalsegno.batches where call_id = $1", call_id)
        .fetch_optional(executor)
        .await
        .map_err(StatementError::to("read the open turn of a batch"))
}

/// Records that a batch is about to be sent again. The caller holds the running turn.
pub async fn record_sending(
    executor: impl PgExecutor<'_>,
    call_id: Uuid,
    now: DateTime<Utc>,
) -> Result<(), StatementError> {
    sqlx::query!("update dalsegno.batches set last_sent_at = $2 where call_id = $1", call_id, now)
        .execute(executor)
        .await
        .map(drop)
        .map_err(StatementError::to("record the sending of a batch"))
}

/// Records the id that the provider has given to a batch.
pub async fn record_id(
    executor: impl PgExecutor<'_>,
    call_id: Uuid,
    batch_id: &str,
) -> Result<(), StatementError> {
    sqlx::query!(
        "update dalsegno.batches set batch_id = $2, problem = null where call_id = $1",
        call_id,
        batch_id,
    )
    .execute(executor)
    .await
    .map(drop)
    .map_err(StatementError::to("store the id of a batch"))
}

/// Records a look at a batch, with its error if it failed.
pub async fn record_look(
    executor: impl PgExecutor<'_>,
    call_id: Uuid,
    cancelled_at: Option<DateTime<Utc>>,
    problem: Option<&str>,
) -> Result<(), StatementError> {
    sqlx::query!(
        "update dalsegno.batches set n_looks = n_looks + 1, problem = $3, cancelled_at = coalesce(cancelled_at, $2) where call_id = $1",
        call_id,
        cancelled_at,
        problem,
    )
    .execute(executor)
    .await
    .map(drop)
    .map_err(StatementError::to("record a look at a batch"))
}

/// Removes a batch whose turn ends or goes on with its answer.
pub async fn remove(executor: impl PgExecutor<'_>, call_id: Uuid) -> Result<(), StatementError> {
    sqlx::query!("delete from dalsegno.batches where call_id = $1", call_id)
        .execute(executor)
        .await
        .map(drop)
        .map_err(StatementError::to("remove a batch"))
}

/// Returns the ids of the batches of a provider that turns wait for.
pub async fn known_ids(
    executor: impl PgExecutor<'_>,
    provider: &str,
) -> Result<Vec<String>, StatementError> {
    sqlx::query_scalar!(
        r#"select batch_id as "batch_id!" from dalsegno.batches where provider = $1 and batch_id is not null"#,
        provider,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list the batches of a provider"))
}

/// Reads the wait of a task for a batch.
pub async fn wait_of(
    executor: impl PgExecutor<'_>,
    task_id: Uuid,
) -> Result<Option<BatchWait>, StatementError> {
    sqlx::query_as!(
        BatchWait,
        "select batch_id, provider, model, sent_at, answer_by, cancelled_at, problem from dalsegno.batches where task_id = $1",
        task_id,
    )
    .fetch_optional(executor)
    .await
    .map_err(StatementError::to("read the wait of a task for a batch"))
}

/// Gives up the batch of a turn that ends without its answer, if it has one: a job cancels it at the provider. Returns true if there was
/// one.
pub async fn give_up(
    conn: &mut PgConnection,
    session_id: Uuid,
    turn: i32,
) -> Result<bool, StatementError> {
    let row = sqlx::query!(
        "delete from dalsegno.batches where session_id = $1 and turn = $2 returning provider, call_id, batch_id, sent_at, last_sent_at",
        session_id,
        turn,
    )
    .fetch_optional(&mut *conn)
    .await
    .map_err(StatementError::to("give up the batch of a turn"))?;
    let Some(row) = row else { return Ok(false) };
    let job = CancelBatch {
        provider: row.provider,
        call_id: row.call_id,
        batch_id: row.batch_id,
        sent_at: row.sent_at,
        last_sent_at: row.last_sent_at,
    };
    queue::enqueue(conn, &job, &queue::Options::default()).await.map_err(|error| {
        StatementError {
            action: "enqueue the cancellation of a batch",
            source: sqlx::Error::Decode(error.into()),
        }
    })?;
    Ok(true)
}

/// Gives up at most `limit` batches whose turns have ended without them: workers of older versions do not know batches. Returns their
/// number.
pub async fn give_up_orphaned(
    conn: &mut PgConnection,
    limit: usize,
) -> Result<usize, StatementError> {
    let orphaned = sqlx::query_file!(
        "src/domain/batches/orphaned.sql",
        i64::try_from(limit).unwrap_or(i64::MAX),
    )
    .fetch_all(&mut *conn)
    .await
    .map_err(StatementError::to("list orphaned batches"))?;
    for row in &orphaned {
        give_up(&mut *conn, row.session_id, row.turn).await?;
    }
    Ok(orphaned.len())
}

/// Formats the time that an answer may take: `24 hours`.
pub fn format_within(secs: i32) -> String {
    match secs % 3_600 {
        0 => count(secs / 3_600, "hour", "hours"),
        _ => format!("{secs} s"),
    }
}

impl BatchWait {
    /// Formats the reason of the wait.
    pub fn describe(&self) -> String {
        let Self { batch_id, provider, sent_at, answer_by, cancelled_at, problem, .. } = self;
        let sent = sent_at.format("%Y-%m-%d %H:%M UTC");
        let until = answer_by.format("%Y-%m-%d %H:%M UTC");
        let mut text = match batch_id {
            Some(id) => {
                format!("waits for batch {id} of {provider}, sent {sent}, at most until {until}")
            }
            None => format!(
                "waits for a batch of {provider}, sent {sent}, at most until {until}; the answer to the sending was lost, so the service looks for the batch at the provider"
            ),
        };
        if cancelled_at.is_some() {
            text.push_str(
                "; the batch was cancelled, because that moment has passed, and has not ended yet",
            );
        }
        if let Some(problem) = problem {
            text.push_str(&format!("; the last look at it failed: {problem}"));
        }
        text
    }
}

impl From<&Batch> for BatchWait {
    fn from(batch: &Batch) -> Self {
        Self {
            batch_id: batch.batch_id.clone(),
            provider: batch.provider.clone(),
            model: batch.model.clone(),
            sent_at: batch.sent_at,
            answer_by: batch.answer_by,
            cancelled_at: batch.cancelled_at,
            problem: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeZone as _;

    use super::*;

    #[test]
    fn the_time_for_an_answer_is_in_whole_hours() {
        assert_eq!(
            [format_within(86_400), format_within(3_600), format_within(5_400)],
            ["24 hours", "1 hour", "5400 s"]
        );
    }

    #[test]
    fn a_wait_names_the_batch_its_times_and_what_went_wrong() {
        let at = |hour| Utc.with_ymd_and_hms(2027, 1, 18, hour, 3, 0).unwrap();
        let wait = BatchWait {
            batch_id: Some("msgbatch_1".to_owned()),
            provider: "anthropic".to_owned(),
            model: "m".to_owned(),
            sent_at: at(14),
            answer_by: at(20),
            cancelled_at: None,
            problem: None,
        };
        let text = "waits for batch msgbatch_1 of anthropic, sent 2027-01-18 14:03 UTC, at most until 2027-01-18 20:03 UTC";
        assert_eq!(wait.describe(), text);
        let failed = BatchWait { problem: Some("status 500".to_owned()), ..wait.clone() };
        assert_eq!(failed.describe(), format!("{text}; the last look at it failed: status 500"));
        let lost = BatchWait { batch_id: None, cancelled_at: Some(at(20)), ..wait };
        let text = lost.describe();
        assert!(text.contains("looks for the batch") && text.contains("was cancelled"), "{text}");
    }
}
