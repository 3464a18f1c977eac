//! Calls that a provider answers later, at a lower price: batches of one request each.
//!
//! A batch is one request, so that its answer is read as soon as it is there, and a task that is cancelled cancels nothing else.

use chrono::{DateTime, Utc};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{Error, Outcome, ProviderFuture, Request, SentRequest};

/// The batch API of a provider. No database transaction may be open during its calls.
pub trait Batches: Send + Sync {
    /// Sends a request as a batch, and returns the provider's id of it. `call_id` is our id of the call, by which the batch can be found
    /// later.
    fn send<'a>(
        &'a self,
        request: &'a Request,
        call_id: Uuid,
        cancel: &'a CancellationToken,
    ) -> ProviderFuture<'a, Result<String, SendError>>;

    /// Returns the request of a batch as it was sent, from the facts about the model that are known.
    fn sent_request(&self, request: &Request, call_id: Uuid) -> Result<SentRequest, Error>;

    /// Asks if a batch has ended.
    fn look<'a>(
        &'a self,
        batch_id: &'a str,
        cancel: &'a CancellationToken,
    ) -> ProviderFuture<'a, Result<BatchState, Error>>;

    /// Reads the answer of a batch that has ended. The outer error says that it cannot be read now.
    fn read_answer<'a>(
        &'a self,
        batch_id: &'a str,
        call_id: Uuid,
        request: &'a Request,
        cancel: &'a CancellationToken,
    ) -> ProviderFuture<'a, Result<BatchAnswer, Error>>;

    /// Asks the provider to end a batch. An answer that comes first counts.
    fn cancel<'a>(
        &'a self,
        batch_id: &'a str,
        cancel: &'a CancellationToken,
    ) -> ProviderFuture<'a, Result<(), Error>>;

    /// Looks for the batch of a call whose sending was not confirmed.
    fn find<'a>(
        &'a self,
        search: BatchSearch<'a>,
        cancel: &'a CancellationToken,
    ) -> ProviderFuture<'a, Result<FoundBatch, Error>>;
}

/// The reason why a batch was not confirmed.
#[derive(Debug)]
pub enum SendError {
    /// The provider has not accepted it.
    NotSent(Error),
    /// The provider may have accepted it.
    Unknown(Error),
    /// The server has no batch API: the call can be made as an ordinary one.
    Unsupported(Error),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchState {
    InProgress,
    /// The provider still ends its request after a cancellation.
    Cancelling,
    Ended,
    /// The provider does not have it, or no longer has its answer.
    Gone,
}

/// The end of the request of a batch.
#[derive(Debug)]
pub enum BatchAnswer {
    Answered(Box<Outcome>),
    Failed(Error),
    Cancelled,
    /// The provider did not answer it in time.
    Expired,
}

/// A search for the batch of a call.
#[derive(Debug, Clone, Copy)]
pub struct BatchSearch<'a> {
    pub call_id: Uuid,
    /// The time before the first sending.
    pub sent_at: DateTime<Utc>,
    /// The latest time at which the provider may have received it.
    pub until: DateTime<Utc>,
    /// Batches of other calls.
    pub known: &'a [String],
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FoundBatch {
    Found(String),
    /// A batch that has not ended may be the one, or the list is too long to be read to its end. Batches tell their calls when they have
    /// ended.
    Unsure,
    NotSent,
}
