//! Handler of the cancellation of a batch whose turn has ended without it.

use std::{sync::Arc, time::Duration};

use chrono::TimeDelta;

use super::Services;
use crate::{
    domain::batches::{self, CancelBatch},
    providers::{BatchSearch, BatchState, FoundBatch, Provider},
    queue::{End, HandlerResult, HoldUntil, JobError, Run},
};

/// Time until the next look for a batch whose id is unknown.
const AGAIN_AFTER: Duration = Duration::from_secs(600);
/// Time after the last sending at which the search ends. Batches end by themselves within a day, and tell their calls then.
const GIVES_UP_AFTER: TimeDelta = TimeDelta::days(2);

pub(super) async fn run(job: CancelBatch, run: Run, services: Arc<Services>) -> HandlerResult {
    let CancelBatch { provider, call_id, batch_id, sent_at, last_sent_at } = job;
    let Some(api) = services.providers.find(&provider).and_then(Provider::batches) else {
        tracing::warn!(batch.call = %call_id, provider, "cannot cancel a batch: the provider is no longer configured");
        return Ok(End::Done);
    };
    let id = match batch_id {
        Some(id) => id,
        None => {
            let known = batches::known_ids(run.pool(), &provider).await.map_err(JobError::retry)?;
            let until = last_sent_at + batches::UNLISTED;
            let search = BatchSearch { call_id, sent_at, until, known: &known };
            let since_sent = services.clock.now() - last_sent_at;
            match api.find(search, run.cancel()).await.map_err(JobError::retry)? {
                // It tells its call, so it has ended.
                FoundBatch::Found(_) => return Ok(End::Done),
                FoundBatch::NotSent if since_sent >= batches::UNLISTED => return Ok(End::Done),
                FoundBatch::Unsure if since_sent >= GIVES_UP_AFTER => {
                    tracing::warn!(batch.call = %call_id, provider, "gave up the search for a batch to cancel: its list has batches that may be the one");
                    return Ok(End::Done);
                }
                FoundBatch::NotSent | FoundBatch::Unsure => {
                    let reason = "the provider may still have the batch to cancel, and tells the call of a batch when it has ended";
                    let until = HoldUntil::After(AGAIN_AFTER);
                    return Ok(End::Snooze { until, reason: reason.to_owned() });
                }
            }
        }
    };
    // A batch that has ended cannot be cancelled.
    if api.look(&id, run.cancel()).await.map_err(JobError::retry)? == BatchState::InProgress {
        api.cancel(&id, run.cancel()).await.map_err(JobError::retry)?;
        tracing::info!(batch.id = id, batch.call = %call_id, "cancelled a batch");
    }
    Ok(End::Done)
}
