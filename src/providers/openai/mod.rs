//! Chat completions over HTTP, as OpenAI defined them and many servers offer them: the whole conversation in every request, the answer as a
//! stream of events.
//!
//! Servers differ in names of fields, in the words of their errors, and in how they end a stream. `dialect` has the fields,
//! [`endpoint`](super::endpoint) the words. An answer counts only if the server said that it is whole: with a `finish_reason` or `[DONE]`.

mod dialect;
mod messages;
mod reply;
mod tool_calls;
mod wire;

use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::{dialect::Dialect, reply::Reply};
pub use self::{dialect::DialectName, wire::Envelope};
use super::{
    CallTexts, Capabilities, EventSink, Outcome, Provider, ProviderFuture, Request, SentRequest,
    TurnFuture, Usage,
    deadline::CallDeadline,
    endpoint::{Endpoint, Error, Plan},
    media,
};
use crate::context::AttachmentRules;

/// One endpoint with chat completions.
#[derive(Debug)]
pub struct OpenAi {
    endpoint: Endpoint,
    dialect: Dialect,
}

/// Path of a conversation below the base URL.
const CHAT: &str = "chat/completions";

impl OpenAi {
    pub fn new(endpoint: Endpoint) -> Self {
        let config = endpoint.config();
        let dialect = config.dialect.dialect(config.base_url());
        Self { endpoint, dialect }
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
        let plan = Plan {
            request,
            window_tokens: self.endpoint.window_tokens(&request.model, &deadline).await?,
            server: self.endpoint.server(),
        };
        plan.check()?;
        let envelope = self.envelope_of(request)?;
        let body = envelope.body(&CallTexts::of(request)).map_err(Error::Unwritable)?;
        events.send_request(SentRequest::new(super::Envelope::OpenAi(envelope), &body));
        let started = Instant::now();
        events.send_started(&request.model);
        let stream = self.endpoint.stream::<Reply>(CHAT, &plan, body, events, &deadline, counted);
        let (reply, first_byte) = stream.await?;
        plan.outcome(reply.into_whole(request), started.elapsed(), first_byte)
    }

    fn envelope_of(&self, request: &Request) -> Result<Envelope, Error> {
        let url = self.endpoint.url(CHAT)?;
        Ok(Envelope::new(request, self.dialect, url, self.endpoint.has_key()))
    }
}

impl Provider for OpenAi {
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

    fn envelope(&self, request: &Request) -> Result<Option<super::Envelope>, super::Error> {
        Ok(Some(super::Envelope::OpenAi(self.envelope_of(request)?)))
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::OF_HTTP
    }

    fn attachment_rules(&self, _: &str, _: bool) -> AttachmentRules {
        let (config, accepts) = (self.endpoint.config(), self.dialect.accepts_files);
        let images = config.images.accepts(accepts).then_some(media::OPENAI_IMAGES);
        media::rules(images, config.pdf.accepts(accepts).then_some(media::OPENAI_PDF))
    }

    fn credential_name(&self) -> Option<&str> {
        self.endpoint.config().credential_name()
    }

    fn telemetry_name(&self) -> &'static str {
        "openai"
    }

    fn refuses_too_long(&self) -> bool {
        false
    }

    fn prompt_cache(&self) -> Option<Duration> {
        self.endpoint.config().prompt_cache()
    }
}
