//! Sends the call of a turn as a batch, and puts its job off.

use chrono::TimeDelta;
use sqlx::{Postgres, Transaction};
use uuid::Uuid;

use super::wait::{self, LookRecord};
use crate::{
    domain::{
        batches::{self, Batch, NewBatch},
        ids, turns,
    },
    jobs::{
        Services,
        run_turn::{
            begin::open_turn::{BatchCall, OpenTurn},
            call::report::CallReport,
            crash_points::CrashPoint,
            error::Error,
            load::assignment::Assignment,
        },
    },
    providers::{Batches, Request, SendError},
    queue::{End, Run, Stop},
};

/// The result of sending.
pub enum SendResult {
    /// The job waits for the batch.
    Waits(End),
    /// The provider has refused the batch.
    Refused(Box<CallReport>),
    /// The call has to be made as an ordinary one.
    Ordinary,
}

/// Shortest time for a batch. With less, the call is an ordinary one.
const MIN_TIME: TimeDelta = TimeDelta::minutes(30);

/// Sends the call as a batch, if the task gives time for its answer and the provider has a batch API.
pub async fn send(
    run: &Run,
    services: &Services,
    assignment: &Assignment<'_>,
    opened: &mut OpenTurn,
    request: &Request,
) -> Result<SendResult, Error> {
    let now = services.clock.now();
    let answer_by = assignment.answer_by.filter(|by| *by - now >= MIN_TIME);
    let (Some(answer_by), Some(api)) = (answer_by, assignment.route.provider.batches()) else {
        return Ok(SendResult::Ordinary);
    };
    // A correction is short, and the task has waited already. Files are not stored with the turn.
    let has_files = request.messages.iter().any(|message| !message.media.is_empty());
    opened.has_unbatched_files = has_files;
    if assignment.prompt.is_correction || has_files {
        return Ok(SendResult::Ordinary);
    }
    let open_turn = opened.to_stored(request).map_err(Error::undone)?;
    let begun = &opened.begun;
    let new = NewBatch {
        session_id: begun.session_id,
        turn: begun.turn,
        task_id: begun.task_id,
        call_id: ids::new_at(now),
        provider: &assignment.route.provider_name,
        model: &assignment.route.model,
        answer_by,
        open_turn: &open_turn,
    };
    let mut tx = run.pool().begin().await.map_err(Error::undone)?;
    if !turns::hold_running(&mut *tx, begun.session_id, begun.turn, begun.lease).await? {
        return Err(Error::Overtaken);
    }
    batches::insert(&mut *tx, &new, now).await?;
    tx.commit().await.map_err(Error::undone)?;
    let batch = Batch {
        session_id: new.session_id,
        turn: new.turn,
        task_id: new.task_id,
        call_id: new.call_id,
        provider: new.provider.to_owned(),
        model: new.model.to_owned(),
        batch_id: None,
        sent_at: now,
        last_sent_at: now,
        answer_by,
        cancelled_at: None,
        n_looks: 0,
    };
    opened.batch_call = Some(BatchCall { id: batch.call_id, is_given_up: false });
    services.crash_points.pass(CrashPoint::BeforeBatch).map_err(Error::undone)?;
    match try_send(run, services, api, request, batch).await? {
        Ok(SentBatch { batch, problem }) => {
            let record = LookRecord { problem, ..LookRecord::default() };
            wait::put_off(run, services, &assignment.task, &batch, record)
                .await
                .map(SendResult::Waits)
        }
        // The turn ends with this error. A cancellation ends it, too.
        Err(_) if run.stop_reason() == Some(Stop::Cancelled) => {
            Err(Error::undone("the task was cancelled while its batch was sent"))
        }
        Err(SendError::Unsupported(error)) => {
            tracing::debug!(code = error.code, "the server has no batch API: {error}");
            let mut tx = begin_held(run, new.session_id, new.turn).await?;
            batches::remove(&mut *tx, new.call_id).await?;
            tx.commit().await.map_err(Error::undone)?;
            opened.batch_call = None;
            Ok(SendResult::Ordinary)
        }
        Err(SendError::NotSent(error) | SendError::Unknown(error)) => {
            Ok(SendResult::Refused(Box::new(CallReport::before_call(error, now))))
        }
    }
}

/// A batch that was sent, or may have been.
pub struct SentBatch {
    pub batch: Batch,
    /// Set if its sending was not confirmed.
    pub problem: Option<String>,
}

/// Sends a batch again that the provider does not have. A run that has lost its lease sends nothing.
pub async fn send_again(
    run: &Run,
    services: &Services,
    api: &dyn Batches,
    request: &Request,
    batch: Batch,
) -> Result<Result<SentBatch, SendError>, Error> {
    let now = services.clock.now();
    let mut tx = begin_held(run, batch.session_id, batch.turn).await?;
    // The list of the provider may lack this sending, too.
    batches::record_sending(&mut *tx, batch.call_id, now).await?;
    tx.commit().await.map_err(Error::undone)?;
    try_send(run, services, api, request, Batch { last_sent_at: now, ..batch }).await
}

/// Begins a transaction that holds the turn of a batch for this run. Fails if a later run has it, or it has ended.
async fn begin_held(
    run: &Run,
    session_id: Uuid,
    turn: i32,
) -> Result<Transaction<'static, Postgres>, Error> {
    let mut tx = run.pool().begin().await.map_err(Error::undone)?;
    if !turns::take_over(&mut tx, session_id, turn, run.lease()).await? {
        return Err(Error::Overtaken);
    }
    Ok(tx)
}

/// Stores the provider's id of a batch. A run that has lost its lease stores nothing: the later one finds the batch.
pub async fn record_id(run: &Run, batch: Batch, id: String) -> Result<Batch, Error> {
    let mut tx = begin_held(run, batch.session_id, batch.turn).await?;
    batches::record_id(&mut *tx, batch.call_id, &id).await?;
    tx.commit().await.map_err(Error::undone)?;
    Ok(Batch { batch_id: Some(id), ..batch })
}

/// Sends the request of a stored batch, and stores the provider's id. The inner error: it was surely not sent.
async fn try_send(
    run: &Run,
    services: &Services,
    api: &dyn Batches,
    request: &Request,
    batch: Batch,
) -> Result<Result<SentBatch, SendError>, Error> {
    let sent = api.send(request, batch.call_id, run.cancel()).await;
    services.crash_points.pass(CrashPoint::AfterBatch).map_err(Error::undone)?;
    Ok(match sent {
        Ok(id) => Ok(SentBatch { batch: record_id(run, batch, id).await?, problem: None }),
        Err(SendError::Unknown(error)) => {
            tracing::info!(code = error.code, "cannot tell if a batch was sent: {error}");
            Ok(SentBatch { batch, problem: Some(error.to_string()) })
        }
        Err(error) => Err(error),
    })
}
