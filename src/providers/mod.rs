//! The seam between a turn and whatever answers it: one request in, one outcome or one classified error out.
//!
//! Nothing that counts is kept by a provider between calls: what it is sent is all that it may rely on, so a call that
//! was cut off can be made again by any worker. A provider whose program keeps a conversation of its own is told by
//! [`Conversation`] how that stands, and gives back by [`Continued`] what to store. Retrying, waiting and rebuilding are
//! the caller's: a provider makes one attempt and says by [`Class`] what the failure calls for.
//!
//! Every implementation ends within the request's total timeout, ends at once when the token is cancelled, holds a
//! bounded amount of memory whatever the other side sends, and never waits for the reader of its events.

pub mod claude;
pub mod ollama;
pub mod sim;
pub mod stream_json;

mod available;
mod conversation;
mod error;
mod events;
mod lines;
mod outcome;
mod patience;
mod problem;
mod request;

use std::pin::Pin;

use tokio_util::sync::CancellationToken;

pub use self::{
    available::Available,
    conversation::{
        Began, Call, Continued, Conversation, Flag, Grants, Grown, Meter, PermissionMode, Reading,
        Spent, TranscriptFile,
    },
    error::{Class, Error, Rebuild, Scope},
    events::{Event, EventSink, Status, Used},
    outcome::{Durations, Outcome, StopReason, Usage},
    problem::Problem,
    request::{Options, Purpose, Request, Think, Timeouts},
};

/// Something that answers.
pub trait Provider: std::fmt::Debug + Send + Sync {
    /// Makes one attempt. No database transaction may be open while it runs.
    fn run(&self, request: Request, events: EventSink, cancel: CancellationToken) -> Running<'_>;
}

/// An attempt under way. Dropping it ends it as a cancellation does.
pub type Running<'a> = Pin<Box<dyn Future<Output = Result<Outcome, Error>> + Send + 'a>>;
