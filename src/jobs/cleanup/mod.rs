//! Handler of the nightly cleanup: removes expired rows in batches, sessions first, and archives old posts.
//!
//! Each batch is a short transaction, so a run can be stopped between any two and continued later: removed rows are not
//! due any more. Between batches it keeps only its place.
//!
//! Race: a run that was declared lost may still be in a batch. The record of the run names the lease; a batch that
//! cannot update the record rolls back.

mod due_rows;
mod metrics;
mod old_rows;

use std::{sync::Arc, time::Duration};

use self::{
    due_rows::remove_all,
    old_rows::{
        give_up_orphaned_batches, remove_old_audit, remove_old_deliveries, remove_old_keys,
        remove_old_versions, remove_unused_contents,
    },
};
use super::Services;
pub use crate::domain::cleanups::Cleanup;
use crate::{
    domain::{
        StatementError,
        cleanups::{self, RunRow},
        installation, schedules,
        transaction::{begin, commit},
    },
    queue::{CommitError, End, HandlerResult, JobError, Run, Stop},
};

pub(super) use self::metrics::begin_counts;
pub use self::metrics::{METRICS, describe, installed_at, succeeded_at};

/// Reasons why a run did not finish.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("the run was stopped between two batches")]
    Stopped,
    #[error("a later run of this job took over")]
    Overtaken,
    #[error(transparent)]
    Database(#[from] StatementError),
    #[error(transparent)]
    End(#[from] CommitError),
}

pub(super) async fn run(_: Cleanup, run: Run, services: Arc<Services>) -> HandlerResult {
    let mut recorded = record(&run, &services).await?;
    let removed = async {
        remove_all(&run, &services, &mut recorded).await?;
        remove_old_deliveries(&run, &services).await?;
        remove_old_keys(&run, &services).await?;
        remove_old_versions(&run, &services).await?;
        remove_old_audit(&run, &services).await?;
        remove_unused_contents(&run, &services).await?;
        give_up_orphaned_batches(&run, &services).await?;
        record_sizes(&run, &services).await
    };
    let ended = match removed.await {
        Ok(()) => finish(&run, &services, &recorded).await,
        Err(error) => Err(error),
    };
    match ended {
        Ok(end) => Ok(end),
        Err(Error::Stopped) if run.stop_reason() == Some(Stop::Cancelled) => {
            let now = services.clock.now();
            cleanups::cancel(run.pool(), &recorded, now).await.map_err(JobError::retry)?;
            Err(JobError::retry(Error::Stopped))
        }
        // The queue knows why the run was stopped: a worker that shuts down returns the job, which uses no attempt.
        Err(Error::End(error)) => Err(error.into()),
        Err(error) => Err(JobError::retry(error)),
    }
}

async fn record(run: &Run, services: &Services) -> Result<RunRow, JobError> {
    let now = services.clock.now();
    let recorded = async {
        let mut tx = begin(run.pool()).await?;
        let requester = schedules::requester(run.headers());
        let (job_id, lease, requester) = (run.job_id(), run.lease(), requester.as_deref());
        let recorded = cleanups::begin(&mut tx, job_id, lease, requester, now).await?;
        commit(tx).await?;
        recorded.ok_or(Error::Overtaken)
    };
    recorded.await.map_err(JobError::retry)
}

/// Stores the sizes of the tables on this day.
async fn record_sizes(run: &Run, services: &Services) -> Result<(), Error> {
    let mut tx = begin(run.pool()).await?;
    installation::record_sizes(&mut tx, services.clock.now().date_naive()).await?;
    Ok(commit(tx).await?)
}

async fn finish(run: &Run, services: &Services, recorded: &RunRow) -> Result<End, Error> {
    let now = services.clock.now();
    let mut tx = begin(run.pool()).await?;
    if !cleanups::finish(&mut *tx, recorded, now).await? {
        return Err(Error::Overtaken);
    }
    let end = run.commit(tx).await?;
    let progress = &recorded.progress;
    tracing::info!(
        sessions = progress.sessions,
        messages = progress.messages,
        bytes = progress.bytes,
        events = progress.events,
        memory_items = progress.memory_items,
        summaries_kept = progress.summaries_kept,
        summaries_removed = progress.summaries_removed,
        posts_archived = progress.posts_archived,
        kept = progress.kept.values().sum::<i64>(),
        "the cleanup is complete"
    );
    succeeded_at(now);
    Ok(end)
}

/// Leaves the database to others between two batches.
async fn pause(run: &Run, services: &Services) {
    let pause = Duration::from_millis(services.sessions.cleanup_pause_ms.into());
    run.cancel().run_until_cancelled(tokio::time::sleep(pause)).await;
}
