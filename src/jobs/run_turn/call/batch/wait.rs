//! Puts a task off until the next look at its batch.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::json;

use crate::{
    domain::{
        Amount,
        batches::{self, Batch, BatchWait},
        feed,
        tasks::{self, Task},
        text,
    },
    jobs::{
        Services,
        run_turn::{error::Error, gate::refuse},
    },
    queue::{End, HoldUntil, Run, Stop, WaitCause},
};

/// The result of a look after which the task still waits.
#[derive(Debug, Default)]
pub struct LookRecord {
    /// Set if the batch was cancelled with this look.
    pub cancelled_at: Option<DateTime<Utc>>,
    pub problem: Option<String>,
}

/// Time before the first look. Most batches take longer.
const FIRST: Duration = Duration::from_secs(60);
const LONGEST: Duration = Duration::from_secs(600);
/// Looks at the shortest interval.
const N_FIRST: i32 = 5;

/// Puts the task off, in its place of the lane and without an attempt.
pub async fn put_off(
    run: &Run,
    services: &Services,
    task: &Task,
    batch: &Batch,
    record: LookRecord,
) -> Result<End, Error> {
    if run.stop_reason() == Some(Stop::Cancelled) {
        return refuse::end_cancelled(run, services, task).await;
    }
    let now = services.clock.now();
    let problem = record.problem.map(text::make_storable);
    let wait = BatchWait {
        cancelled_at: batch.cancelled_at.or(record.cancelled_at),
        problem: problem.clone(),
        ..BatchWait::from(batch)
    };
    let why = text::make_storable(wait.describe());
    let after = pause(batch, record.cancelled_at.is_some(), now);
    let mut tx = run.pool().begin().await.map_err(Error::undone)?;
    let cancelled_at = record.cancelled_at;
    batches::record_look(&mut *tx, batch.call_id, cancelled_at, problem.as_deref()).await?;
    if batch.n_looks == 0 {
        tasks::end(&mut tx, task.id, tasks::End::Queued, Amount::ZERO, now).await?;
        let event = task.event(feed::Kind::TaskWaiting, json!({ "because": why }));
        feed::append(&mut *tx, &[event], now).await?;
    }
    let cause = Some(WaitCause::Batch);
    Ok(run.commit_snooze(tx, HoldUntil::After(after), cause, &why).await?)
}

/// Returns the time until the next look. It grows, and ends at the moment at which the task no longer waits.
fn pause(batch: &Batch, was_cancelled: bool, now: DateTime<Utc>) -> Duration {
    if was_cancelled || batch.cancelled_at.is_some() {
        return FIRST;
    }
    let doublings = u32::try_from(batch.n_looks - N_FIRST).unwrap_or(0).min(10);
    let grown = FIRST.saturating_mul(1 << doublings).min(LONGEST);
    let left = (batch.answer_by - now).to_std().unwrap_or_default();
    grown.min(left.max(FIRST))
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn looks_become_rarer_until_the_task_no_longer_waits() {
        let now = DateTime::UNIX_EPOCH;
        let batch = |n_looks, left_secs| Batch {
            session_id: Uuid::nil(),
            turn: 1,
            task_id: Uuid::nil(),
            call_id: Uuid::nil(),
            provider: "anthropic".to_owned(),
            model: "m".to_owned(),
            batch_id: None,
            sent_at: now,
            last_sent_at: now,
            answer_by: now + TimeDelta::seconds(left_secs),
            cancelled_at: None,
            n_looks,
        };
        let secs = |n_looks, left| pause(&batch(n_looks, left), false, now).as_secs();
        let usual = [0, 4, 5, 6, 7, 8, 9, 10, 99].map(|n| secs(n, 90_000));
        assert_eq!(usual, [60, 60, 60, 120, 240, 480, 600, 600, 600]);
        assert_eq!([secs(99, 200), secs(99, 0), secs(99, -9)], [200, 60, 60]);
        assert_eq!(pause(&batch(99, 90_000), true, now).as_secs(), 60);
    }
}
