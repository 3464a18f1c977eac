//! Interface between a turn and its provider: one request in, one outcome or one classified error out.
//!
//! A provider keeps no state between calls that matters: it may rely on the request only. So any worker can repeat a call that was cut off.
//! A provider whose program keeps the conversation itself gets its state in [`Conversation`], and returns what to store in [`ConversationUpdate`].
//! The caller retries, waits and rebuilds. A provider makes one attempt, and says by [`Class`] what a failure requires.
//!
//! Every implementation ends within the request's total timeout, and at once when the token is cancelled. It uses a bounded amount of
//! memory for any input from the other side, and never waits for the reader of its events.

pub mod anthropic;
pub mod claude;
pub mod endpoint;
pub mod ollama;
pub mod openai;
pub mod sim;
pub mod stream_json;

mod available;
mod batches;
mod breaker;
mod call_ids;
mod capabilities;
mod conversation;
mod deadline;
mod envelope;
mod error;
mod events;
mod history;
mod http;
mod limits;
mod line_splitter;
mod media;
mod outcome;
mod output_files;
mod problem;
mod request;
mod sections;
mod thinking;
mod told_limits;
mod transcript_chain;
mod truncation;

use std::{pin::Pin, time::Duration};

use tokio_util::sync::CancellationToken;

use crate::context::{AttachmentRules, manifest::PartReason};

pub use self::{
    available::Available,
    batches::{BatchAnswer, BatchSearch, BatchState, Batches, FoundBatch, SendError},
    capabilities::{Capabilities, CapabilityLookup, Prestart},
    conversation::{
        Call, Conversation, ConversationUpdate, FileGrowth, Flag, Grants, Meter, MeterReading,
        ModelSpend, PermissionMode, TranscriptFile, TurnStart,
    },
    envelope::{CallTexts, Envelope, SentRequest},
    error::{Class, Error, Origin, Rebuild, Scope},
    events::{Event, EventSink, Status, UsageSoFar},
    outcome::{Durations, Outcome, StopReason, Usage},
    output_files::{
        MAX_SKIPPED, OutputFile, OutputFiles, OutputLimits, OutputSpace, SkipReason, SkippedFile,
    },
    problem::Problem,
    request::{Options, Purpose, Request, Think, Timeouts},
    sections::{RESERVED_NAMES, Sections},
    told_limits::{ToldLimit, ToldLimits},
    transcript_chain::{TranscriptChain, TranscriptEntry, TranscriptGrowth},
};

/// A provider of answers. The defaults fit one that is sent the whole conversation with each call.
pub trait Provider: std::fmt::Debug + Send + Sync {
    /// Makes one attempt. No database transaction may be open while it runs.
    fn run(&self, request: Request, events: EventSink, cancel: CancellationToken)
    -> TurnFuture<'_>;

    /// Returns the window to plan a call of this model with. May ask the provider's server, once for each model, so no database transaction
    /// may be open.
    fn window_tokens<'a>(
        &'a self,
        model: &'a str,
        cancel: &'a CancellationToken,
    ) -> ProviderFuture<'a, u32>;

    /// Counts the prompt tokens of a request without making the call. `None`: the provider cannot count, or gives no answer now. No database
    /// transaction may be open.
    fn count_tokens<'a>(
        &'a self,
        _: &'a Request,
        _: &'a CancellationToken,
    ) -> ProviderFuture<'a, Option<u64>> {
        Box::pin(std::future::ready(None))
    }

    /// Returns the batch API, if calls can be answered later at a lower price.
    fn batches(&self) -> Option<&dyn Batches> {
        None
    }

    /// Builds the envelope of a request that is not sent, without asking the server. `None`: the provider sends no requests. Facts about
    /// the model are known from [`window_tokens`](Self::window_tokens).
    fn envelope(&self, _: &Request) -> Result<Option<Envelope>, Error> {
        Ok(None)
    }

    /// Returns the abilities of this provider.
    fn capabilities(&self) -> Capabilities;

    /// Returns the files that a model accepts beside the text of a message. Texts are part of the message for every model. Facts about the
    /// model are known from [`window_tokens`](Self::window_tokens). `can_read`: the agent has a tool that reads files in its folder.
    fn attachment_rules(&self, _model: &str, _can_read: bool) -> AttachmentRules {
        AttachmentRules::described(PartReason::FileNotAccepted)
    }

    /// Returns the name in OpenTelemetry's conventions, or our own name if they have none.
    fn telemetry_name(&self) -> &'static str;

    /// Returns the model for agents whose files name none.
    fn default_model(&self) -> Option<&'static str> {
        None
    }

    /// Returns true if the provider makes its answers up and calls no model.
    fn is_simulation(&self) -> bool {
        self.capabilities().is_simulation
    }

    /// Returns true if the provider keeps the conversation itself and continues it, with tools of its own or over MCP. Most of the methods
    /// below concern such a provider.
    fn holds_session(&self) -> bool {
        self.capabilities().holds_session
    }

    /// Returns the reason why the temperature of an answer cannot be set, if there is one.
    fn fixed_temperature_reason(&self) -> Option<&'static str> {
        None
    }

    /// Returns true if the provider refuses a prompt that is too long. Older servers of other providers cut it silently.
    fn refuses_too_long(&self) -> bool {
        true
    }

    /// Returns the percentage of the window at which the conversation continues in a new session. `None`: there is no such limit.
    fn rollover_percent(&self) -> Option<u64> {
        None
    }

    /// Returns the names of its credentials, in order of preference.
    fn credentials(&self) -> Vec<&str> {
        Vec::new()
    }

    /// Returns the name of its only credential, for rate limits. A provider with several of them names the one of each conversation.
    fn credential_name(&self) -> Option<&str> {
        None
    }

    /// Returns true if tokens that were read from a prompt cache count towards the provider's limits.
    fn limits_count_cached_tokens(&self) -> bool {
        true
    }

    /// Returns the reason why no turn can succeed, if there is one. `wants_everything` is true for an agent that bypasses permissions.
    fn unusable_reason(
        &self,
        _wants_everything: bool,
        _variables: &Variables<'_>,
    ) -> Option<&'static str> {
        None
    }

    /// Returns true if the provider reports the cost of a call, so that a model needs no configured price.
    fn reports_costs(&self) -> bool {
        false
    }

    /// Returns the time after its last call for which a conversation stays in a prompt cache whose reads are cheaper. `None`: the provider
    /// bills no such cache.
    fn prompt_cache(&self) -> Option<Duration> {
        None
    }

    /// Returns true if the name that was asked for and the one in the answer are of one model.
    fn is_same_model(&self, asked: &str, told: &str) -> bool {
        asked == told
    }

    /// Returns the maximum cost of a call of these sizes, if earlier calls have shown the price.
    fn ceiling_micros(
        &self,
        _model: &str,
        _prompt_tokens: u64,
        _answer_tokens: u64,
    ) -> Option<u64> {
        None
    }

    /// Fills in costs that the provider did not report, if earlier calls have shown the model's price.
    fn estimate_costs(&self, _spent: &mut [ModelSpend], _so_far: &Meter) {}

    /// Returns true if the request needs the transcript's bytes, because the files of this host are not enough. Asked before the bytes are
    /// fetched. Without them the call would end with the session lost.
    fn lacks_transcript<'a>(
        &'a self,
        _held: &'a Conversation,
    ) -> ProviderFuture<'a, Result<bool, Error>> {
        Box::pin(std::future::ready(Ok(false)))
    }

    /// Returns true to refuse an answer whose counts show that the model has not seen the history. Otherwise it is only flagged.
    fn refuses_unseen_history(&self) -> bool {
        false
    }
}

/// Lookup of environment variables.
pub type Variables<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// Future of a provider's work. Dropping an attempt ends it like a cancellation.
pub type ProviderFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
pub type TurnFuture<'a> = ProviderFuture<'a, Result<Outcome, Error>>;
