//! Gives every accepted task an end that people can see, also where its job ended and no handler could write it; and so for
//! bulk actions, and for erasures that an older worker has ended.
//!
//! Each worker looks in turn at a stretch of the tasks that have not ended; two that find the same one do no harm.

use std::time::Duration;

use sqlx::PgPool;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::Services;
use crate::{
    causes::causes,
    domain::{
        bulk_actions, erasures, tasks,
        transaction::{begin, commit},
    },
};

const EVERY: Duration = Duration::from_secs(5);
const STRETCH: i64 = 2000;

/// Looks until it is told to stop.
pub async fn end_lost_tasks(services: &Services, pool: &PgPool, stop: &CancellationToken) {
    let (mut after_job_id, mut after_task) = (0, Uuid::nil());
    while stop.run_until_cancelled(tokio::time::sleep(EVERY)).await.is_some() {
        match end_stretch(services, pool, after_job_id).await {
            Ok(next) => after_job_id = next,
            Err(error) => tracing::warn!(
                error = causes(&error),
                "looking for tasks that have lost their jobs"
            ),
        }
        match look_at_waits(pool, after_task).await {
            Ok(next) => after_task = next.unwrap_or_default(),
            Err(error) => {
                tracing::warn!(
                    error = causes(&error),
                    "looking for tasks that wait for nothing any more"
                )
            }
        }
        match bulk_actions::end_lost(pool, services.clock.now()).await {
            Ok(0) => {}
            Ok(n_ended) => {
                tracing::warn!(n_ended, "bulk actions had lost their jobs and were ended")
            }
            Err(error) => {
                tracing::warn!(
                    error = causes(&error),
                    "looking for bulk actions that have lost their jobs"
                )
            }
        }
        if let Err(error) = ask_again_for_erasures(services, pool).await {
            tracing::warn!(error = causes(&error), "looking for erasures that are not whole");
        }
    }
}

async fn ask_again_for_erasures(services: &Services, pool: &PgPool) -> Result<(), erasures::Error> {
    let mut tx = begin(pool).await?;
    let campaigns = erasures::again(&mut tx, services.clock.now()).await?;
    commit(tx).await?;
    for campaign in campaigns {
        tracing::info!(campaign.id = %campaign, "an older worker has erased it, so it is looked at again");
    }
    Ok(())
}

/// The net for signals that were not given. Says where the next stretch begins.
async fn look_at_waits(pool: &PgPool, after: Uuid) -> Result<Option<Uuid>, tasks::Error> {
    let mut conn = pool.acquire().await.map_err(tasks::Error::transaction)?;
    Ok(tasks::look_at_waits(&mut conn, after, STRETCH).await?)
}

/// Says where the next stretch begins.
async fn end_stretch(services: &Services, pool: &PgPool, after: i64) -> Result<i64, tasks::Error> {
    let job_ids = tasks::live_jobs(pool, after, STRETCH).await?;
    for job in tasks::gone(pool, &job_ids).await? {
        let ended = async {
            let mut tx = pool.begin().await.map_err(tasks::Error::transaction)?;
            tasks::end_lost(&mut tx, &job, services.clock.now()).await?;
            tx.commit().await.map_err(tasks::Error::transaction)
        };
        match ended.await {
            Ok(()) => {
                tracing::warn!(job.id, error = job.error, "a task had lost its job and was ended")
            }
            // Its run has ended it meanwhile, or it was put on the queue again.
            Err(
                tasks::Error::Ended { .. }
                | tasks::Error::NoTaskOfJob(_)
                | tasks::Error::Requeued(_),
            ) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(if job_ids.len() < STRETCH as usize { 0 } else { job_ids.last().copied().unwrap_or(0) })
}
