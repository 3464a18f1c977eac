//! Asks the provider about the batch of an open turn.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use super::{
    send::{self, SentBatch},
    wait::{self, LookRecord},
};
use crate::{
    causes::causes,
    domain::{
        Amount,
        batches::{self, Batch},
        tasks::{self, Task},
        turns,
    },
    jobs::{
        Services,
        run_turn::{
            begin::stored_turn::{StoredTurn, UnreadableTurn},
            error::Error,
        },
    },
    providers::{
        self, BatchAnswer, BatchSearch, BatchState, Batches, Class, FoundBatch, SendError,
    },
    queue::{End, HoldUntil, Run},
};

/// The state of the run after a look.
pub enum Look {
    /// The job waits, or has ended.
    Ends(End),
    Answered(Box<AnsweredBatch>),
}

/// A batch with its answer, and the turn that waits for it.
pub struct AnsweredBatch {
    pub batch: Batch,
    pub turn: StoredTurn,
    pub answer: BatchAnswer,
    /// True if the provider may still have the batch.
    pub is_given_up: bool,
}

/// Reason of the job's next run.
const GIVEN_UP: &str = "its batch was given up, and another turn begins";
/// Time after the end of the wait at which the turn ends, if the provider has not ended the batch by then or cannot be asked.
const GIVES_UP_AFTER: TimeDelta = TimeDelta::days(1);

/// Looks at the batch of a task.
pub async fn look(run: &Run, services: &Services, task: &Task) -> Result<Look, Error> {
    let Some(batch) = batches::of_task(run.pool(), task.id).await? else {
        let tx = run.pool().begin().await.map_err(Error::undone)?;
        let until = HoldUntil::After(Duration::ZERO);
        return Ok(Look::Ends(run.commit_snooze(tx, until, None, GIVEN_UP).await?));
    };
    let turn = turns::find(run.pool(), batch.session_id, batch.turn).await?;
    let is_running = turn.is_some_and(|turn| turn.state == turns::State::Running);
    let provider = services.providers.find(&batch.provider);
    let api = provider.and_then(providers::Provider::batches);
    let is_late = services.clock.now() - batch.answer_by > GIVES_UP_AFTER;
    let stored = batches::open_turn(run.pool(), batch.call_id).await?;
    let stored = stored.as_deref().map(StoredTurn::read).transpose();
    if let Err(error @ UnreadableTurn::Newer { .. }) = &stored
        && is_running
        && !is_late
    {
        let cancelled_at = match api {
            Some(api) => cancel_late(run, services, api, &batch).await,
            None => None,
        };
        let record = LookRecord { cancelled_at, problem: Some(error.to_string()) };
        return wait::put_off(run, services, task, &batch, record).await.map(Look::Ends);
    }
    let (api, turn) = match (api, stored, is_running) {
        (Some(api), Ok(Some(turn)), true) => (api, turn),
        (api, stored, _) => {
            let reason = match (api, stored) {
                (None, _) => "its provider has no batch API any more".to_owned(),
                (_, Err(error)) => causes(&error),
                (_, Ok(_)) => "its turn has ended".to_owned(),
            };
            tracing::warn!(task.id = %task.id, "gave up the batch of a turn: {reason}");
            return give_up(run, services, task, &batch).await.map(Look::Ends);
        }
    };
    let result = BatchLook { run, services, api, turn: &turn }.at(batch).await?;
    let (batch, record) = match result {
        LookResult::Ended(batch, answer) => {
            let is_given_up = batch.batch_id.is_none();
            let answered = AnsweredBatch { batch, turn, answer, is_given_up };
            return Ok(Look::Answered(Box::new(answered)));
        }
        LookResult::Open(batch, record) => (batch, record),
    };
    // A batch that was cancelled with this look may end by the next one.
    if is_late && record.cancelled_at.is_none() && !run.cancel().is_cancelled() {
        let problem = record.problem.as_deref();
        let problem = problem.unwrap_or("the provider has not ended it in time");
        let why = format!("the batch of the call has no answer: {problem}");
        let error = providers::Error::new("batch.lost", Class::Retry { after: None }, why);
        let answer = BatchAnswer::Failed(error);
        let answered = AnsweredBatch { batch, turn, answer, is_given_up: true };
        return Ok(Look::Answered(Box::new(answered)));
    }
    wait::put_off(run, services, task, &batch, record).await.map(Look::Ends)
}

/// Cancels a batch at the end of the wait without its turn, and returns when. `None`: it is not the time, or it failed; the next look tries
/// again.
async fn cancel_late(
    run: &Run,
    services: &Services,
    api: &dyn Batches,
    batch: &Batch,
) -> Option<DateTime<Utc>> {
    let now = services.clock.now();
    let id = batch.batch_id.as_deref()?;
    if now < batch.answer_by || batch.cancelled_at.is_some() {
        return None;
    }
    let cancelled = match api.look(id, run.cancel()).await {
        Ok(BatchState::InProgress) => api.cancel(id, run.cancel()).await,
        Ok(BatchState::Cancelling | BatchState::Ended | BatchState::Gone) => return None,
        Err(error) => Err(error),
    };
    match cancelled {
        Ok(()) => Some(now),
        Err(error) => {
            tracing::info!(code = error.code, error = causes(&error), "cannot cancel a batch");
            None
        }
    }
}

/// Ends the run and the turn of a batch whose answer the turn cannot use. A job cancels the batch, and the next run begins another turn.
pub async fn give_up(
    run: &Run,
    services: &Services,
    task: &Task,
    batch: &Batch,
) -> Result<End, Error> {
    let now = services.clock.now();
    let mut tx = run.pool().begin().await.map_err(Error::undone)?;
    if turns::interrupt_lost(&mut tx, task.without_turn(), now).await? {
        tasks::end(&mut tx, task.id, tasks::End::Queued, Amount::ZERO, now).await?;
    }
    // Of a turn that a worker of an older version has ended.
    batches::give_up(&mut tx, batch.session_id, batch.turn).await?;
    Ok(run.commit_snooze(tx, HoldUntil::After(Duration::ZERO), None, GIVEN_UP).await?)
}

/// The state of the batch after a look.
enum LookResult {
    Open(Batch, LookRecord),
    Ended(Batch, BatchAnswer),
}

/// A look at the batch of an open turn.
struct BatchLook<'a> {
    run: &'a Run,
    services: &'a Services,
    api: &'a dyn Batches,
    turn: &'a StoredTurn,
}

impl BatchLook<'_> {
    async fn at(&self, batch: Batch) -> Result<LookResult, Error> {
        match batch.batch_id.clone() {
            Some(id) => self.at_sent(batch, &id).await,
            None => self.for_lost(batch).await,
        }
    }

    async fn at_sent(&self, batch: Batch, id: &str) -> Result<LookResult, Error> {
        let Self { run, services, api, turn } = self;
        let state = match api.look(id, run.cancel()).await {
            Ok(state) => state,
            Err(error) => return Ok(self.problem(batch, &error)),
        };
        let now = services.clock.now();
        match state {
            BatchState::InProgress if now >= batch.answer_by && batch.cancelled_at.is_none() => {
                match api.cancel(id, run.cancel()).await {
                    Ok(()) => {
                        let record = LookRecord { cancelled_at: Some(now), problem: None };
                        Ok(LookResult::Open(batch, record))
                    }
                    Err(error) => Ok(self.problem(batch, &error)),
                }
            }
            BatchState::InProgress | BatchState::Cancelling => {
                Ok(LookResult::Open(batch, LookRecord::default()))
            }
            BatchState::Ended => {
                let request = turn.request();
                match api.read_answer(id, batch.call_id, &request, run.cancel()).await {
                    Ok(answer) => Ok(LookResult::Ended(batch, answer)),
                    Err(error) => Ok(self.problem(batch, &error)),
                }
            }
            BatchState::Gone => {
                let why = format!("the provider no longer has batch {id} or its answer");
                let error = providers::Error::new("batch.gone", Class::Retry { after: None }, why);
                Ok(LookResult::Ended(batch, BatchAnswer::Failed(error)))
            }
        }
    }

    /// Looks for a batch whose sending was not confirmed, and sends it again if the provider does not have it. If it is not found in the
    /// time that the task gives, the wait ends, and an ordinary call follows.
    async fn for_lost(&self, batch: Batch) -> Result<LookResult, Error> {
        let Self { run, services, api, turn } = self;
        let known = batches::known_ids(run.pool(), &batch.provider).await?;
        let search = BatchSearch {
            call_id: batch.call_id,
            sent_at: batch.sent_at,
            until: batch.last_sent_at + batches::UNLISTED,
            known: &known,
        };
        let is_late = services.clock.now() >= batch.answer_by;
        let found = match api.find(search, run.cancel()).await {
            Ok(found) => found,
            Err(error) if is_late && error.class != Class::Cancelled => {
                tracing::info!(
                    code = error.code,
                    error = causes(&error),
                    "cannot look for a batch"
                );
                FoundBatch::Unsure
            }
            Err(error) => return Ok(self.problem(batch, &error)),
        };
        match found {
            FoundBatch::Found(id) => {
                let batch = send::record_id(run, batch, id.clone()).await?;
                self.at_sent(batch, &id).await
            }
            FoundBatch::NotSent | FoundBatch::Unsure if is_late => {
                Ok(LookResult::Ended(batch, BatchAnswer::Cancelled))
            }
            FoundBatch::NotSent
                if services.clock.now() - batch.last_sent_at >= batches::UNLISTED =>
            {
                let request = turn.request();
                let again = batch.clone();
                match send::send_again(run, services, *api, &request, again).await? {
                    Ok(SentBatch { batch, problem }) => {
                        Ok(LookResult::Open(batch, LookRecord { problem, ..LookRecord::default() }))
                    }
                    Err(
                        SendError::NotSent(error)
                        | SendError::Unknown(error)
                        | SendError::Unsupported(error),
                    ) => Ok(LookResult::Ended(batch, BatchAnswer::Failed(error.before_call()))),
                }
            }
            FoundBatch::NotSent | FoundBatch::Unsure => {
                Ok(LookResult::Open(batch, LookRecord::default()))
            }
        }
    }

    /// Waits on after a look that failed. A worker that shuts down has no problem with the batch.
    fn problem(&self, batch: Batch, error: &providers::Error) -> LookResult {
        tracing::info!(code = error.code, error = causes(error), "cannot look at a batch");
        let problem = (error.class != Class::Cancelled).then(|| error.to_string());
        LookResult::Open(batch, LookRecord { cancelled_at: None, problem })
    }
}
