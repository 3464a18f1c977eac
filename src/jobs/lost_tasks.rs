//! Sweeper of tasks whose job ended without them, so that every accepted task gets a visible end. It does the same for
//! bulk actions, and requests another look at erasures that an older worker has ended.
//!
//! Each worker examines one stretch of the open tasks after the other; two workers that find the same task do no harm.
//! A task that cannot be ended is retried with a growing backoff, so that it does not block the others.

use std::{collections::HashMap, hash::Hash, time::Duration};

use sqlx::PgPool;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::Services;
use crate::{
    causes::causes,
    domain::{
        StatementError, budgets, bulk_actions, erasures, rate_limits, tasks,
        transaction::{begin, commit},
    },
    queue::{self, admin::GoneJob},
};

const EVERY: Duration = Duration::from_secs(5);
const STRETCH: i64 = 2000;
const LONGEST_BACKOFF: Duration = Duration::from_secs(10 * 60);

/// The state of one worker between two rounds.
#[derive(Default)]
struct Sweep {
    after_job_id: i64,
    after_task: Uuid,
    lost: Backoffs<i64>,
    waits: Backoffs<Uuid>,
}

/// Sweeps at an interval, until `stop`.
pub async fn end_lost_tasks(services: &Services, pool: &PgPool, stop: &CancellationToken) {
    let mut sweep = Sweep::default();
    while stop.run_until_cancelled(tokio::time::sleep(EVERY)).await.is_some() {
        if let Err(error) = sweep.end_lost_in_range(services, pool).await {
            tracing::warn!(error = causes(&error), "cannot look for tasks without a job");
        }
        if let Err(error) = sweep.end_lost_waits(pool).await {
            let error = causes(&error);
            tracing::warn!(error, "cannot look for tasks whose dependencies have ended");
        }
        if let Err(error) = wake_for_budgets(services, pool).await {
            tracing::warn!(error = causes(&error), "cannot look for tasks whose budget has space");
        }
        if let Err(error) = rate_limits::tend(pool, services.clock.now()).await {
            let error = causes(&error);
            tracing::warn!(error, "cannot look for tasks whose rate limit was removed");
        }
        match bulk_actions::end_lost(pool, services.clock.now()).await {
            Ok(0) => {}
            Ok(n_ended) => {
                tracing::warn!(n_ended, "ended bulk actions without a job")
            }
            Err(error) => {
                tracing::warn!(error = causes(&error), "cannot look for bulk actions without a job")
            }
        }
        if let Err(error) = enqueue_incomplete_erasures(services, pool).await {
            tracing::warn!(error = causes(&error), "cannot look for incomplete erasures");
        }
    }
}

/// Wakes tasks that wait for a budget with space. A wake-up is missing where a woken task did not use its space, its job was locked, or
/// an older version released a reservation.
async fn wake_for_budgets(services: &Services, pool: &PgPool) -> Result<(), StatementError> {
    for (owner, key) in budgets::list_awaited(pool).await? {
        budgets::wake(pool, &owner, &key, services.clock.now()).await?;
    }
    Ok(())
}

async fn enqueue_incomplete_erasures(
    services: &Services,
    pool: &PgPool,
) -> Result<(), erasures::Error> {
    let mut tx = begin(pool).await?;
    let campaigns = erasures::enqueue_incomplete(&mut tx, services.clock.now()).await?;
    commit(tx).await?;
    for campaign in campaigns {
        tracing::info!(campaign.id = %campaign, "an older worker erased this campaign: checking it again");
    }
    Ok(())
}

impl Sweep {
    /// Ends the tasks of a stretch that have lost their jobs.
    async fn end_lost_in_range(
        &mut self,
        services: &Services,
        pool: &PgPool,
    ) -> Result<(), tasks::Error> {
        let job_ids = tasks::live_jobs(pool, self.after_job_id, STRETCH).await?;
        for job in tasks::list_ended_jobs(pool, &job_ids).await? {
            if self.lost.is_waiting(&job.id) {
                continue;
            }
            match end(services, pool, &job).await {
                Ok(()) => {
                    tracing::warn!(job.id, error = job.error, "ended a task without a job")
                }
                // Its run has ended it meanwhile, or it was put on the queue again.
                Err(
                    tasks::Error::Ended { .. }
                    | tasks::Error::NoTaskOfJob(_)
                    | tasks::Error::Requeued(_),
                ) => {}
                Err(error) if queue::is_unavailable(&error) => return Err(error),
                Err(error) => {
                    let (error, again_in) = (causes(&error), self.lost.fail(job.id));
                    tracing::error!(
                        job.id,
                        error,
                        retry_in_ms = again_in.as_millis() as u64,
                        "cannot end a task without a job"
                    );
                }
            }
        }
        let is_last = job_ids.len() < usize::try_from(STRETCH).unwrap_or(usize::MAX);
        self.after_job_id = job_ids.last().copied().filter(|_| !is_last).unwrap_or(0);
        Ok(())
    }

    /// Ends waits of tasks whose signal was lost.
    async fn end_lost_waits(&mut self, pool: &PgPool) -> Result<(), tasks::Error> {
        let mut conn = pool.acquire().await.map_err(tasks::Error::transaction)?;
        let stretch = tasks::find_lost_signals(&mut conn, self.after_task, STRETCH).await?;
        for task_id in stretch.due {
            if self.waits.is_waiting(&task_id) {
                continue;
            }
            match tasks::end_wait(&mut conn, task_id).await {
                Ok(()) => {}
                Err(error) if queue::is_unavailable(&error) => return Err(error.into()),
                Err(error) => {
                    let (error, again_in) = (causes(&error), self.waits.fail(task_id));
                    tracing::error!(task.id = %task_id, error, retry_in_ms = again_in.as_millis() as u64, "cannot end the wait of a task");
                }
            }
        }
        self.after_task = stretch.next.unwrap_or_default();
        Ok(())
    }
}

async fn end(services: &Services, pool: &PgPool, job: &GoneJob) -> Result<(), tasks::Error> {
    let mut tx = begin(pool).await?;
    tasks::end_lost(&mut tx, job, services.clock.now()).await?;
    Ok(commit(tx).await?)
}

/// Rows that could not be changed, each with the time of its next attempt.
struct Backoffs<K>(HashMap<K, Backoff>);

struct Backoff {
    wait: Duration,
    until: Instant,
}

impl<K> Default for Backoffs<K> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<K: Eq + Hash> Backoffs<K> {
    fn is_waiting(&self, key: &K) -> bool {
        self.0.get(key).is_some_and(|backoff| backoff.until > Instant::now())
    }

    /// Records a failure, and returns the wait before the next attempt.
    fn fail(&mut self, key: K) -> Duration {
        let now = Instant::now();
        // A task that has not failed again for so long was ended, by this worker or by another one.
        self.0.retain(|_, backoff| backoff.until + 2 * LONGEST_BACKOFF > now);
        let before = self.0.get(&key).map_or(EVERY, |backoff| backoff.wait);
        let wait = (before * 2).min(LONGEST_BACKOFF);
        self.0.insert(key, Backoff { wait, until: now + wait });
        wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_failing_task_is_retried_at_growing_intervals() {
        let mut backoffs = Backoffs::default();
        let waits: Vec<u64> = (0..9).map(|_| backoffs.fail(7).as_secs()).collect();
        assert_eq!(waits, [10, 20, 40, 80, 160, 320, 600, 600, 600]);
        assert!(backoffs.is_waiting(&7) && !backoffs.is_waiting(&8));
        tokio::time::advance(LONGEST_BACKOFF).await;
        assert!(!backoffs.is_waiting(&7));
        tokio::time::advance(3 * LONGEST_BACKOFF).await;
        assert_eq!(backoffs.fail(8), Duration::from_secs(10));
        assert_eq!(backoffs.0.len(), 1, "task 7 is forgotten");
    }
}
