//! Handler of bulk actions: cancels or retries all tasks that match a filter. It uses short transactions, because a
//! long one would block every turn whose task it has touched. Waiting tasks are cancelled in batches, others one by
//! one.

use std::sync::Arc;

use uuid::Uuid;

use super::Services;
use crate::{
    domain::{
        StatementError,
        bulk_actions::{self, Action, BulkAction, CarryOut, Step},
        class::{Classify as _, Kind},
        tasks,
        transaction::{begin, commit},
    },
    queue::{CommitError, End, HandlerResult, JobError, Run, Stop},
};

/// Tasks of one page.
const PAGE: i64 = tasks::CANCEL_MANY_MAX;

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("the run was stopped between two tasks")]
    Stopped,
    #[error(transparent)]
    Action(#[from] bulk_actions::Error),
    #[error(transparent)]
    Database(#[from] StatementError),
    #[error(transparent)]
    End(#[from] CommitError),
}

pub(super) async fn run(job: CarryOut, run: Run, services: Arc<Services>) -> HandlerResult {
    let id = job.bulk_action_id;
    match carry_out(&run, &services, &job).await {
        Ok(end) => Ok(end),
        Err(Error::Stopped) if run.stop_reason() == Some(Stop::Cancelled) => {
            let now = services.clock.now();
            bulk_actions::cancel(run.pool(), id, now).await.map_err(JobError::retry)?;
            Err(JobError::retry(Error::Stopped))
        }
        Err(Error::End(error)) => Err(error.into()),
        Err(error) => Err(JobError::retry(error)),
    }
}

async fn carry_out(run: &Run, services: &Services, job: &CarryOut) -> Result<End, Error> {
    let (pool, id) = (run.pool(), job.bulk_action_id);
    if bulk_actions::start(pool, id, services.clock.now()).await? {
        let mut action = bulk_actions::get(pool, id).await?;
        loop {
            let task_ids = bulk_actions::list_remaining_tasks(pool, &action, PAGE).await?;
            if task_ids.is_empty() {
                break;
            }
            let left = match action.action {
                Action::Cancel => cancel_together(run, services, &mut action, &task_ids).await?,
                Action::Retry => task_ids,
            };
            for task_id in left {
                if run.cancel().is_cancelled() {
                    return Err(Error::Stopped);
                }
                with_task(run, services, &action, task_id).await?;
                action.cursor = Some(task_id);
            }
        }
    }
    let mut tx = begin(pool).await?;
    bulk_actions::finish(&mut *tx, id, services.clock.now()).await?;
    let end = run.commit(tx).await?;
    tracing::info!(bulk_action.id = %id, "a bulk action ended");
    Ok(end)
}

/// Cancels the tasks that can be cancelled in one statement, and returns the others.
async fn cancel_together(
    run: &Run,
    services: &Services,
    action: &mut BulkAction,
    task_ids: &[Uuid],
) -> Result<Vec<Uuid>, Error> {
    if run.cancel().is_cancelled() {
        return Err(Error::Stopped);
    }
    let mut tx = begin(run.pool()).await?;
    let now = services.clock.now();
    let left = bulk_actions::cancel_many(&mut tx, action, task_ids, now).await?;
    commit(tx).await?;
    Ok(left)
}

async fn with_task(
    run: &Run,
    services: &Services,
    action: &BulkAction,
    task_id: Uuid,
) -> Result<(), Error> {
    let mut tx = begin(run.pool()).await?;
    match bulk_actions::step(&mut tx, action, task_id, services.clock.now()).await {
        Ok(()) => Ok(commit(tx).await?),
        // The task has ended, was retried or removed since the page was read.
        Err(bulk_actions::Error::Task(error))
            if matches!(error.class().kind, Kind::Conflict | Kind::NotFound) =>
        {
            drop(tx);
            Ok(bulk_actions::advance(run.pool(), action, task_id, Step::Skipped).await?)
        }
        Err(error) => Err(error.into()),
    }
}
