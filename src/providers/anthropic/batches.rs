//! The batches of the Messages API.
//!
//! The API has no idempotency keys, and its list tells neither the ids of calls nor anything else of ours. The id of a call is in the
//! results of its batch. So a lost batch is found, when it has ended, among those of one request that were created at the time of its
//! sending.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use serde::Deserialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{
    Anthropic,
    messages::Prompt,
    reply::{Reply, WholeMessage},
};
use crate::providers::{
    self, CallTexts, Outcome, ProviderFuture, Request, SentRequest, ToldLimits,
    batches::{BatchAnswer, BatchSearch, BatchState, Batches, FoundBatch, SendError},
    deadline::CallDeadline,
    endpoint::{Call, Error, Plan, error_of_refusal},
    http::{Activity, Refusal},
};

/// Path of batches below the base URL.
pub(super) const BATCHES: &str = "messages/batches";
/// Timeout of each request about a batch.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Batches of one page of the list.
const PAGE: usize = 100;
const MAX_PAGES: usize = 50;
/// Largest difference between the clocks of this service and the provider.
const CLOCK_DIFFERENCE: TimeDelta = TimeDelta::minutes(10);

#[derive(Debug, Deserialize)]
struct Batch {
    id: String,
    #[serde(default)]
    processing_status: String,
    #[serde(default)]
    request_counts: Counts,
    created_at: DateTime<Utc>,
    /// Set once the answers are removed.
    #[serde(default)]
    archived_at: Option<Value>,
}

/// Requests of a batch by their state.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Counts {
    processing: u64,
    succeeded: u64,
    errored: u64,
    canceled: u64,
    expired: u64,
}

#[derive(Debug, Deserialize)]
struct Page {
    data: Vec<Batch>,
    #[serde(default)]
    has_more: bool,
}

/// A line of the results of a batch.
#[derive(Debug, Deserialize)]
struct ResultLine {
    custom_id: String,
    result: ResultOfCall,
}

/// The id of the call in a line of results. The rest of the line may have any form.
#[derive(Debug, Deserialize)]
struct ResultId {
    custom_id: String,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ResultOfCall {
    Succeeded { message: WholeMessage },
    Errored { error: Value },
    Canceled,
    Expired,
}

impl Counts {
    fn total(&self) -> u64 {
        let Self { processing, succeeded, errored, canceled, expired } = self;
        processing + succeeded + errored + canceled + expired
    }
}

impl Batch {
    fn state(&self) -> BatchState {
        match self.processing_status.as_str() {
            "ended" if self.archived_at.as_ref().is_some_and(|at| !at.is_null()) => {
                BatchState::Gone
            }
            "ended" => BatchState::Ended,
            "canceling" => BatchState::Cancelling,
            _ => BatchState::InProgress,
        }
    }
}

impl Anthropic {
    async fn plan<'a>(
        &self,
        request: &'a Request,
        deadline: &CallDeadline<'_>,
    ) -> Result<Plan<'a>, Error> {
        self.endpoint.facts(&request.model, deadline).await?;
        let window_tokens = self.endpoint.window_tokens(&request.model, deadline).await?;
        Ok(Plan { request, window_tokens, server: self.endpoint.server() })
    }

    async fn send_batch(
        &self,
        request: &Request,
        call_id: Uuid,
        cancel: &CancellationToken,
    ) -> Result<String, SendError> {
        let not_sent = |error: Error| SendError::NotSent(error.into());
        let deadline = CallDeadline::starting_now(TIMEOUT, cancel);
        let plan = self.plan(request, &deadline).await.map_err(not_sent)?;
        plan.check().map_err(not_sent)?;
        let (_, body) = self.batch_request(request, call_id).map_err(not_sent)?;
        let sending = self.endpoint.post_and_read(
            BATCHES,
            body,
            plan.call(),
            Activity::SendingBatch,
            &deadline,
        );
        let sent: Result<Batch, Error> = self.endpoint.guard(sending).await;
        let sent = sent.map_err(|error| match &error {
            Error::NotTheApi { .. }
            | Error::ModelMissing { .. }
            | Error::Refused { status: 404 | 405, .. }
            | Error::Failed { status: 501, .. } => SendError::Unsupported(error.into()),
            Error::Cancelled
            | Error::Broken { .. }
            | Error::Silent { .. }
            | Error::TooLong { .. }
            | Error::Failed { .. }
            | Error::Malformed { .. } => SendError::Unknown(error.into()),
            _ => SendError::NotSent(error.into()),
        })?;
        Ok(sent.id)
    }

    /// Returns the request of a batch, and its body.
    fn batch_request(
        &self,
        request: &Request,
        call_id: Uuid,
    ) -> Result<(SentRequest, Vec<u8>), Error> {
        let url = self.endpoint.url(BATCHES)?;
        let envelope = self.envelope_of(request)?.into_batch(call_id, url);
        let body = envelope.body(&CallTexts::of(request)).map_err(Error::Unwritable)?;
        let sent = SentRequest::new(providers::Envelope::Anthropic(envelope), &body);
        Ok((sent, body))
    }

    async fn get<T: serde::de::DeserializeOwned>(
        &self,
        path: &str,
        deadline: &CallDeadline<'_>,
    ) -> Result<T, Error> {
        self.endpoint.get_and_read(path, Activity::AskingForBatch, deadline).await
    }

    async fn look_at(
        &self,
        batch_id: &str,
        cancel: &CancellationToken,
    ) -> Result<BatchState, Error> {
        let deadline = CallDeadline::starting_now(TIMEOUT, cancel);
        let path = format!("{BATCHES}/{batch_id}");
        match self.get::<Batch>(&path, &deadline).await {
            Ok(batch) => Ok(batch.state()),
            Err(error) if is_missing(&error) => Ok(BatchState::Gone),
            Err(error) => Err(error),
        }
    }

    /// Reads the results of a batch with one request, which have one line.
    async fn result_of<T: serde::de::DeserializeOwned>(
        &self,
        batch_id: &str,
        deadline: &CallDeadline<'_>,
    ) -> Result<T, Error> {
        self.get(&format!("{BATCHES}/{batch_id}/results"), deadline).await
    }

    /// Returns the id of the call of a batch that may be one of another program. `None`: its result is gone.
    async fn call_of(
        &self,
        batch_id: &str,
        deadline: &CallDeadline<'_>,
    ) -> Result<Option<String>, Error> {
        match self.result_of::<ResultId>(batch_id, deadline).await {
            Ok(line) => Ok(Some(line.custom_id)),
            Err(error) if is_missing(&error) => {
                tracing::debug!(
                    batch.id = batch_id,
                    "skipped a batch whose result is gone: {error}"
                );
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    async fn answer_of(
        &self,
        batch_id: &str,
        call_id: Uuid,
        request: &Request,
        cancel: &CancellationToken,
    ) -> Result<BatchAnswer, Error> {
        let deadline = CallDeadline::starting_now(TIMEOUT, cancel);
        let plan = self.plan(request, &deadline).await?;
        let ResultLine { custom_id, result } = self.result_of(batch_id, &deadline).await?;
        if custom_id != call_id.to_string() {
            let source = serde::de::Error::custom("the results are those of another call");
            return Err(Error::Malformed { server: self.endpoint.server(), source });
        }
        Ok(match result {
            ResultOfCall::Canceled => BatchAnswer::Cancelled,
            ResultOfCall::Expired => BatchAnswer::Expired,
            ResultOfCall::Errored { error } => {
                let refusal = refusal(&error);
                let error = error_of_refusal(plan.server.clone(), &refusal, plan.call());
                BatchAnswer::Failed(error.into())
            }
            ResultOfCall::Succeeded { message } => match outcome(&plan, message) {
                Ok(outcome) => BatchAnswer::Answered(Box::new(outcome)),
                Err(error) => BatchAnswer::Failed(error.into()),
            },
        })
    }

    async fn cancel_batch(&self, batch_id: &str, cancel: &CancellationToken) -> Result<(), Error> {
        let deadline = CallDeadline::starting_now(TIMEOUT, cancel);
        let path = format!("{BATCHES}/{batch_id}/cancel");
        let (doing, call) = (Activity::AskingForBatch, Call::default());
        let cancelled: Result<Batch, Error> =
            self.endpoint.post_and_read(&path, b"{}".to_vec(), call, doing, &deadline).await;
        match cancelled {
            Ok(_) => Ok(()),
            Err(error) if is_missing(&error) => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn find_batch(
        &self,
        BatchSearch { call_id, sent_at, until, known }: BatchSearch<'_>,
        cancel: &CancellationToken,
    ) -> Result<FoundBatch, Error> {
        let deadline = CallDeadline::starting_now(TIMEOUT, cancel);
        let (since, until) = (sent_at - CLOCK_DIFFERENCE, until + CLOCK_DIFFERENCE);
        let call_id = call_id.to_string();
        let (mut after, mut is_unsure) = (None::<String>, false);
        let mut is_complete = false;
        for _ in 0..MAX_PAGES {
            let after_id = after.iter().map(|id| format!("&after_id={id}")).collect::<String>();
            let page: Page =
                self.get(&format!("{BATCHES}?limit={PAGE}{after_id}"), &deadline).await?;
            // The newest first.
            let is_last = page.data.last().is_none_or(|batch| batch.created_at < since);
            after = page.data.last().map(|batch| batch.id.clone());
            let candidates = page.data.into_iter().filter(|batch| {
                let is_alone = batch.request_counts.total() == 1;
                let is_of_the_time = (since..=until).contains(&batch.created_at);
                is_alone && is_of_the_time && !known.contains(&batch.id)
            });
            for batch in candidates {
                match batch.state() {
                    BatchState::Gone => {}
                    BatchState::InProgress | BatchState::Cancelling => is_unsure = true,
                    BatchState::Ended => match self.call_of(&batch.id, &deadline).await {
                        Ok(Some(id)) if id == call_id => return Ok(FoundBatch::Found(batch.id)),
                        Ok(_) => {}
                        // It may be the one: sending the call again could pay for it twice.
                        Err(error @ Error::Malformed { .. }) => {
                            tracing::debug!(
                                batch.id = batch.id,
                                "cannot read the result of a batch: {error}"
                            );
                            is_unsure = true;
                        }
                        Err(error) => return Err(error),
                    },
                }
            }
            if is_last || !page.has_more {
                is_complete = true;
                break;
            }
        }
        // Further pages may have it.
        Ok(if is_unsure || !is_complete { FoundBatch::Unsure } else { FoundBatch::NotSent })
    }
}

/// Returns the refusal that an ordinary call would have been answered with.
fn refusal(error: &Value) -> Refusal {
    let kind = error.pointer("/error/type").or_else(|| error.get("type")).and_then(Value::as_str);
    let status = match kind {
        Some("invalid_request_error") => 400,
        Some("authentication_error") => 401,
        Some("billing_error") => 402,
        Some("permission_error") => 403,
        Some("not_found_error") => 404,
        Some("request_too_large") => 413,
        Some("rate_limit_error") => 429,
        Some("overloaded_error") => 529,
        _ => 500,
    };
    Refusal {
        status,
        retry_after: None,
        told: ToldLimits::default(),
        body: error.to_string().into_bytes(),
    }
}

/// Returns true if the server does not have the batch.
fn is_missing(error: &Error) -> bool {
    matches!(
        error,
        Error::ModelMissing { .. }
            | Error::NotTheApi { status: 404, .. }
            | Error::Refused { status: 404, .. }
    )
}

fn outcome(plan: &Plan<'_>, message: WholeMessage) -> Result<Outcome, Error> {
    let request = plan.request;
    let prefix = || Prompt::of(&request.model, &CallTexts::of(request)).digest(&request.model);
    let whole = Reply::of_message(message).into_whole(request, prefix);
    let mut outcome = plan.outcome(whole, Duration::ZERO, Duration::ZERO)?;
    // Its time is that of the batch, which says nothing about the model.
    outcome.durations.first_byte = None;
    Ok(outcome)
}

impl Batches for Anthropic {
    fn send<'a>(
        &'a self,
        request: &'a Request,
        call_id: Uuid,
        cancel: &'a CancellationToken,
    ) -> ProviderFuture<'a, Result<String, SendError>> {
        Box::pin(self.send_batch(request, call_id, cancel))
    }

    fn sent_request(
        &self,
        request: &Request,
        call_id: Uuid,
    ) -> Result<SentRequest, providers::Error> {
        Ok(self.batch_request(request, call_id)?.0)
    }

    fn look<'a>(
        &'a self,
        batch_id: &'a str,
        cancel: &'a CancellationToken,
    ) -> ProviderFuture<'a, Result<BatchState, providers::Error>> {
        Box::pin(async move { Ok(self.look_at(batch_id, cancel).await?) })
    }

    fn read_answer<'a>(
        &'a self,
        batch_id: &'a str,
        call_id: Uuid,
        request: &'a Request,
        cancel: &'a CancellationToken,
    ) -> ProviderFuture<'a, Result<BatchAnswer, providers::Error>> {
        Box::pin(async move { Ok(self.answer_of(batch_id, call_id, request, cancel).await?) })
    }

    fn cancel<'a>(
        &'a self,
        batch_id: &'a str,
        cancel: &'a CancellationToken,
    ) -> ProviderFuture<'a, Result<(), providers::Error>> {
        Box::pin(async move { Ok(self.cancel_batch(batch_id, cancel).await?) })
    }

    fn find<'a>(
        &'a self,
        search: BatchSearch<'a>,
        cancel: &'a CancellationToken,
    ) -> ProviderFuture<'a, Result<FoundBatch, providers::Error>> {
        Box::pin(async move { Ok(self.find_batch(search, cancel).await?) })
    }
}
