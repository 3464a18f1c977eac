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
    available::{Available, Sections},
    conversation::{
        Began, Call, Continued, Conversation, Flag, Grants, Grown, Meter, PermissionMode, Reading,
        Spent, TranscriptFile,
    },
    error::{Class, Error, Origin, Rebuild, Scope},
    events::{Event, EventSink, Status, Used},
    outcome::{Durations, Outcome, StopReason, Usage},
    problem::Problem,
    request::{Options, Purpose, Request, Think, Timeouts},
};

/// Something that answers. The defaults are those of a provider that is sent the whole conversation with each call.
pub trait Provider: std::fmt::Debug + Send + Sync {
    /// Makes one attempt. No database transaction may be open while it runs.
    fn run(&self, request: Request, events: EventSink, cancel: CancellationToken) -> Running<'_>;

    /// The window to plan a call of this model with. May ask the provider's server, once for each model, so no database transaction
    /// may be open.
    fn window_tokens<'a>(
        &'a self,
        model: &'a str,
        cancel: &'a CancellationToken,
    ) -> Pending<'a, u32>;

    /// As OpenTelemetry's conventions call it; ours where they have no name.
    fn telemetry_name(&self) -> &'static str;

    /// For agents whose files name none.
    fn default_model(&self) -> Option<&'static str> {
        None
    }

    /// It makes its answers up: no model is called.
    fn is_simulation(&self) -> bool {
        false
    }

    /// It keeps the conversation itself and goes on in it, with tools of its own or over MCP. All that follows is about such a
    /// provider.
    fn holds_session(&self) -> bool {
        false
    }

    /// It refuses a prompt that is too long. Older servers of others cut it without a word.
    fn refuses_too_long(&self) -> bool {
        true
    }

    /// How full the window may be, in percent, before the conversation goes on in a new session. `None`: there is no such limit.
    fn rollover_percent(&self) -> Option<u64> {
        None
    }

    /// The names of its logins, in order of preference.
    fn logins(&self) -> Vec<&str> {
        Vec::new()
    }

    /// Why no turn can succeed. `wants_everything`: of an agent that asks for no permission.
    fn hindrance(
        &self,
        _wants_everything: bool,
        _variables: &Variables<'_>,
    ) -> Option<&'static str> {
        None
    }

    /// It says what a call has cost, so a model needs no configured price.
    fn tells_costs(&self) -> bool {
        false
    }

    /// True if the name that was asked for and the one in the answer are of one model.
    fn is_same_model(&self, asked: &str, told: &str) -> bool {
        asked == told
    }

    /// The most that a call of these sizes costs, as far as earlier ones have told.
    fn ceiling_micros(
        &self,
        _model: &str,
        _prompt_tokens: u64,
        _answer_tokens: u64,
    ) -> Option<u64> {
        None
    }

    /// Puts a cost where the provider has not said one, as far as earlier calls have told what the model costs.
    fn estimate_costs(&self, _spent: &mut [Spent], _so_far: &Meter) {}

    /// True if the transcript's bytes have to be in the request, because the files of this host are not enough. To be asked before they
    /// are fetched; without them the call would end with the session lost.
    fn lacks_transcript<'a>(&'a self, _held: &'a Conversation) -> Pending<'a, Result<bool, Error>> {
        Box::pin(std::future::ready(Ok(false)))
    }

    /// An answer whose counts show that the model has not seen the history is refused, and not only flagged.
    fn refuses_unseen_history(&self) -> bool {
        false
    }
}

/// Looks a variable of the environment up.
pub type Variables<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// Something of a provider that takes a while. Dropping an attempt ends it as a cancellation does.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
pub type Running<'a> = Pending<'a, Result<Outcome, Error>>;
