//! Handler that adds the task of a schedule, in the transaction that ends the job: once per moment.

use std::sync::Arc;

use super::{Services, services::no_agent};
use crate::{
    domain::{
        class::{Classify as _, Kind},
        tasks::{self, AddTask},
        transaction::begin,
    },
    queue::{HandlerResult, JobError, Run},
};

pub(super) async fn run(job: AddTask, run: Run, services: Arc<Services>) -> HandlerResult {
    let catalogue = services.library.current();
    let agent = catalogue.agent(&job.agent).map_err(no_agent)?;
    let mut tx = begin(run.pool()).await.map_err(JobError::retry)?;
    let added =
        tasks::add(&mut tx, &services.tasks, &job.to_new_task(agent), services.clock.now()).await;
    match added {
        Ok(added) => {
            let end = run.commit(tx).await?;
            tracing::info!(task.id = %added.task.id, "a schedule added a task");
            Ok(end)
        }
        Err(error) if is_transient(&error) => Err(JobError::retry(error)),
        Err(error) => Err(JobError::fail(error)),
    }
}

fn is_transient(error: &tasks::Error) -> bool {
    let class = error.class();
    class.retryable || matches!(class.kind, Kind::Unavailable | Kind::Internal)
}
