//! Goes on with a turn whose batch has ended.

use std::time::Duration;

use super::look::AnsweredBatch;
use crate::{
    domain::{
        batches::{self, Batch},
        tasks,
        turns::{self, HistoryCheck},
    },
    jobs::{
        Services,
        run_turn::{
            begin::{
                open_turn::{BatchCall, OpenTurn},
                permit,
            },
            call::{report::CallReport, rounds::record::Rounds},
            error::Error,
            load::assignment::Assignment,
        },
    },
    providers::{self, BatchAnswer, Class, Origin, Outcome, Request, Scope, StopReason},
    queue::Run,
};

/// Takes the turn over, and returns it with its first request and the report of the call.
pub async fn take_over(
    run: &Run,
    services: &Services,
    assignment: &Assignment<'_>,
    AnsweredBatch { batch, turn, answer, is_given_up }: AnsweredBatch,
) -> Result<(OpenTurn, Request, CallReport), Error> {
    let is_late = services.clock.now() >= batch.answer_by;
    let result = result_of(&batch, answer, is_late);
    let runs_tools = result.as_ref().is_ok_and(|outcome| outcome.stop == StopReason::ToolCalls);
    let mut tx = run.pool().begin().await.map_err(Error::undone)?;
    if !turns::take_over(&mut tx, batch.session_id, batch.turn, run.lease()).await? {
        return Err(Error::Overtaken);
    }
    if runs_tools {
        // Tools have effects: a run that dies after them must not run them again.
        batches::remove(&mut *tx, batch.call_id).await?;
        tasks::go_on(&mut tx, batch.task_id).await?;
    }
    tx.commit().await.map_err(Error::undone)?;
    let request = turn.request();
    let mut opened = turn.into_open(run.lease());
    opened.batch_call = (!runs_tools).then_some(BatchCall { id: batch.call_id, is_given_up });
    if runs_tools {
        // A turn that has begun does not wait for rate limits. Later turns do.
        let admitted = permit::admit(services, assignment, None, opened.estimated_tokens);
        opened.permit = admitted.unwrap_or_default();
    }
    let api = assignment.route.provider.batches();
    let sent = api.and_then(|api| api.sent_request(&request, batch.call_id).ok());
    let called = CallReport {
        result,
        arrived: String::new(),
        sent: sent.map(Box::new),
        called_at: batch.sent_at,
        took: Duration::ZERO,
        history_check: HistoryCheck::NotProvable,
        is_stopped: false,
        batch_call: Some(batch.call_id.to_string()),
        told_limits: None,
        rounds: Rounds::default(),
    };
    Ok((opened, request, called))
}

/// Returns the result of the call. Requests that were cancelled or have expired are not billed.
fn result_of(
    batch: &Batch,
    answer: BatchAnswer,
    is_late: bool,
) -> Result<Outcome, providers::Error> {
    let id = batch.batch_id.as_deref().unwrap_or("(unknown)");
    let again = Class::Retry { after: None };
    match answer {
        BatchAnswer::Answered(outcome) => Ok(*outcome),
        BatchAnswer::Failed(error) => Err(error),
        BatchAnswer::Expired => {
            let why = format!("batch {id} expired before the provider answered it");
            Err(providers::Error::new("batch.expired", again, why).before_call())
        }
        // A worker that has cancelled the batch may have died before it recorded that.
        BatchAnswer::Cancelled if batch.cancelled_at.is_some() || is_late => {
            let why = format!(
                "batch {id} had no answer in the time that the task gives, so the next call is an ordinary one"
            );
            let at_once = Class::Snooze { after: Duration::ZERO, scope: Scope::Host };
            let error = providers::Error::new("batch.late", at_once, why);
            Err(error.of(Origin::Host).before_call())
        }
        BatchAnswer::Cancelled => {
            let why = format!("batch {id} was cancelled at the provider");
            Err(providers::Error::new("batch.cancelled", again, why).before_call())
        }
    }
}
