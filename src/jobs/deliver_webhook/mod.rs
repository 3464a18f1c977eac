//! Handler of webhook deliveries: reads a delivery, sends it, and records the result with the end of the job.
//!
//! No transaction is open during the request. If the worker is killed after the request, the delivery is sent again,
//! with the same id.

mod metrics;
mod resolve;
mod send;

use std::sync::Arc;

pub use self::{metrics::METRICS, send::Sender};
use super::Services;
use crate::{
    domain::{
        transaction::begin,
        webhooks::{self, DeliverWebhook, DueDelivery, FailedAttempt, Next, Outcome},
    },
    queue::{Backoff, End, HandlerResult, JobError, Run},
};

pub(super) async fn run(job: DeliverWebhook, run: Run, services: Arc<Services>) -> HandlerResult {
    let now = services.clock.now();
    let due = webhooks::due(run.pool(), job.delivery_id, run.job_id(), now);
    let Some(due) = due.await.map_err(JobError::retry)? else {
        // Removed, or sent by another job.
        return Ok(End::Done);
    };
    let outcome = match due.enabled {
        true => {
            // A worker that shuts down returns the job, and the delivery is sent again.
            let sent = run.cancel().run_until_cancelled(attempt(&due, &services)).await;
            sent.ok_or_else(|| JobError::retry("the run was stopped while it sent"))?
        }
        false => Outcome::Held,
    };
    end(&run, &services, &due, &outcome).await
}

async fn attempt(due: &DueDelivery, services: &Services) -> Outcome {
    let message = match due.message(services.clock.now()) {
        Ok(message) => message,
        Err(error) => return Outcome::Missed(FailedAttempt::unanswered(error.to_string())),
    };
    services.webhooks.send(due, message).await
}

async fn end(
    run: &Run,
    services: &Services,
    due: &DueDelivery,
    outcome: &Outcome,
) -> HandlerResult {
    let (config, now) = (services.webhooks.config(), services.clock.now());
    let mut tx = begin(run.pool()).await.map_err(JobError::retry)?;
    let next = webhooks::record(&mut tx, config, due, run.job_id(), outcome, now);
    let next = next.await.map_err(JobError::retry)?;
    metrics::count(outcome, next);
    if let Outcome::Missed(missed) = outcome {
        let (id, error) = (due.id, &missed.error);
        tracing::info!(delivery.id = %id, webhook.id = %due.webhook_id, error, "cannot deliver a webhook");
    }
    match (next, outcome) {
        (Next::Again(wait), Outcome::Missed(missed)) => {
            let error = &missed.error;
            Ok(run.commit_retry(tx, Backoff::default(), Some(wait), error).await?)
        }
        // A failed delivery has its own state. A dead letter beside it could be retried to no effect.
        _ => Ok(run.commit(tx).await?),
    }
}
