//! Anthropic's Messages API over HTTP: the whole conversation in every request, the answer as a stream of events.
//!
//! - Prompt cache: `cache_control` marks the end of the system text, of the call and of the calls and turns before it, so that the next call
//!   reads all earlier messages from the cache. Calls for summaries and facts are not marked: nothing reads them again.
//! - Thinking: blocks are signed. They are kept with the calls of tools that followed them, and sent back as long as nothing before them has
//!   changed: newer models refuse a block of another model or after another prefix. Thinking before an answer without calls is not sent
//!   back: the API does not need it.
//! - Batches: a call may be sent as a batch of one request (`batches`).
//! - Models differ in the thinking and the sampling that they accept. The server's list of models says which, else their names.

mod batches;
mod messages;
mod reply;
#[cfg(test)]
mod sample;
mod schema;
mod thinking;
mod wire;

use std::time::Duration;

use serde::Deserialize;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub use self::wire::Envelope;
use self::{messages::Prompt, reply::Reply};
use super::{
    Batches, CallTexts, Capabilities, EventSink, Outcome, Provider, ProviderFuture, Request,
    SentRequest, TurnFuture, Usage,
    deadline::CallDeadline,
    endpoint::{Call, Endpoint, Error, Plan, ThinkingModes},
    http::Activity,
    media,
};
use crate::context::AttachmentRules;

/// One endpoint with the Messages API.
#[derive(Debug)]
pub struct Anthropic {
    endpoint: Endpoint,
}

/// The server's count of a prompt.
#[derive(Debug, Deserialize)]
struct TokenCount {
    input_tokens: u64,
}

/// Path of a conversation below the base URL.
const MESSAGES: &str = "messages";
/// Path of the count of a prompt below the base URL.
const COUNT: &str = "messages/count_tokens";
/// Timeout of a count. A turn goes on without it.
const COUNT_TIMEOUT: Duration = Duration::from_secs(10);

impl Anthropic {
    pub fn new(endpoint: Endpoint) -> Self {
        Self { endpoint }
    }

    async fn call(
        &self,
        request: &Request,
        events: &mut EventSink,
        cancel: &CancellationToken,
        counted: &mut Usage,
    ) -> Result<Outcome, Error> {
        let total = request.timeouts.total.unwrap_or(self.endpoint.config().total_timeout());
        let deadline = CallDeadline::starting_now(total, cancel);
        // Asked also for a model whose window is configured: the call depends on the thinking that the model accepts.
        self.endpoint.facts(&request.model, &deadline).await?;
        let plan = Plan {
            request,
            window_tokens: self.endpoint.window_tokens(&request.model, &deadline).await?,
            server: self.endpoint.server(),
        };
        plan.check()?;
        let envelope = self.envelope_of(request)?;
        let body = envelope.body(&CallTexts::of(request)).map_err(Error::Unwritable)?;
        events.send_request(SentRequest::new(super::Envelope::Anthropic(envelope), &body));
        let started = Instant::now();
        events.send_started(&request.model);
        let stream =
            self.endpoint.stream::<Reply>(MESSAGES, &plan, body, events, &deadline, counted);
        let (reply, first_byte) = stream.await?;
        let prefix = || Prompt::of(&request.model, &CallTexts::of(request)).digest(&request.model);
        plan.outcome(reply.into_whole(request, prefix), started.elapsed(), first_byte)
    }

    async fn count(&self, request: &Request, cancel: &CancellationToken) -> Result<u64, Error> {
        let deadline = CallDeadline::starting_now(COUNT_TIMEOUT, cancel);
        self.endpoint.facts(&request.model, &deadline).await?;
        let body = self.envelope_of(request)?.count_body(&CallTexts::of(request));
        let body = body.map_err(Error::Unwritable)?;
        let (call, doing) = (Call::default(), Activity::CountingTokens);
        let counted = self.endpoint.post_and_read(COUNT, body, call, doing, &deadline).await;
        counted.map(|TokenCount { input_tokens }| input_tokens)
    }

    fn envelope_of(&self, request: &Request) -> Result<Envelope, Error> {
        let url = self.endpoint.url(MESSAGES)?;
        let known = self.endpoint.known_facts(&request.model).and_then(|facts| facts.thinking);
        let modes = known.unwrap_or_else(|| ThinkingModes::of_name(&request.model));
        Ok(Envelope::new(request, modes, url, self.endpoint.has_key()))
    }
}

impl Provider for Anthropic {
    fn run(
        &self,
        request: Request,
        mut events: EventSink,
        cancel: CancellationToken,
    ) -> TurnFuture<'_> {
        Box::pin(async move {
            let mut counted = Usage::default();
            let call = self.call(&request, &mut events, &cancel, &mut counted);
            let answered = self.endpoint.guard(call).await;
            answered.map_err(|error| error.into_error_of_call(counted))
        })
    }

    fn window_tokens<'a>(
        &'a self,
        model: &'a str,
        cancel: &'a CancellationToken,
    ) -> ProviderFuture<'a, u32> {
        Box::pin(self.endpoint.planned_window_tokens(model, cancel))
    }

    fn count_tokens<'a>(
        &'a self,
        request: &'a Request,
        cancel: &'a CancellationToken,
    ) -> ProviderFuture<'a, Option<u64>> {
        Box::pin(async move {
            let counted = self.count(request, cancel).await;
            let log = |error: &Error| {
                tracing::debug!(code = error.code(), "cannot count a prompt: {error}");
            };
            // A compatible server may not count.
            counted.inspect_err(log).ok().filter(|tokens| *tokens > 0)
        })
    }

    fn envelope(&self, request: &Request) -> Result<Option<super::Envelope>, super::Error> {
        Ok(Some(super::Envelope::Anthropic(self.envelope_of(request)?)))
    }

    fn batches(&self) -> Option<&dyn Batches> {
        Some(self)
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::OF_HTTP
    }

    fn attachment_rules(&self, _: &str, _: bool) -> AttachmentRules {
        let config = self.endpoint.config();
        let images = config.images.accepts(true).then_some(media::ANTHROPIC_IMAGES);
        media::rules(images, config.pdf.accepts(true).then_some(media::ANTHROPIC_PDF))
    }

    fn credential_name(&self) -> Option<&str> {
        self.endpoint.config().credential_name()
    }

    fn limits_count_cached_tokens(&self) -> bool {
        false
    }

    fn telemetry_name(&self) -> &'static str {
        "anthropic"
    }

    fn prompt_cache(&self) -> Option<Duration> {
        self.endpoint.config().prompt_cache()
    }
}
