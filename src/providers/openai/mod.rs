//! Chat completions over HTTP, as OpenAI defined them and many servers offer them: the whole conversation in every request, the answer as a
//! stream of events.
//!
//! Servers differ in names of fields, in the words of their errors, and in how they end a stream. `dialect` has the fields,
//! [`endpoint`](super::endpoint) the words. An answer counts only if the server said that it is whole: with a `finish_reason` or `[DONE]`.

mod dialect;
mod messages;
mod reply;
mod tool_calls;
mod verdict;
mod wire;

use std::time::Duration;

use reqwest::Response;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use self::{dialect::Dialect, reply::Reply, verdict::Plan};
pub use self::{dialect::DialectName, wire::Envelope};
use super::{
    CallTexts, Capabilities, EventSink, Outcome, Provider, ProviderFuture, Request, SentRequest,
    Status, ToldLimits, TurnFuture,
    deadline::CallDeadline,
    endpoint::{Endpoint, Error, WINDOW_TIMEOUT},
    http::{Activity, Step},
    limits,
    line_splitter::Lines,
};

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
        let dialect = config.dialect.dialect(&config.base_url);
        Self { endpoint, dialect }
    }

    async fn call(
        &self,
        request: &Request,
        events: &mut EventSink,
        cancel: &CancellationToken,
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
        let (reply, first_byte) = self.stream(&plan, body, events, &deadline).await?;
        plan.outcome(reply, started.elapsed(), first_byte)
    }

    fn envelope_of(&self, request: &Request) -> Result<Envelope, Error> {
        let url = self.endpoint.url(CHAT)?;
        Ok(Envelope::new(request, self.dialect, url, self.endpoint.has_key()))
    }

    /// Sends the body and reads events until the last one, or an error of any kind.
    async fn stream(
        &self,
        plan: &Plan<'_>,
        body: Vec<u8>,
        events: &mut EventSink,
        deadline: &CallDeadline<'_>,
    ) -> Result<(Reply, Duration), Error> {
        let started = Instant::now();
        let (config, timeouts) = (self.endpoint.config(), &plan.request.timeouts);
        let first_byte = timeouts.first_byte.unwrap_or(config.first_byte_timeout());
        let idle = timeouts.idle.unwrap_or(config.idle_timeout());
        // The HTTP head may come long before the body: one step lasts until the first byte of the answer itself.
        let mut step = Step::begin(Activity::WaitingForAnswer, first_byte);
        let mut response = self.endpoint.post(CHAT, body, plan.call(), step, deadline).await?;
        events.send_limits(ToldLimits::of(response.headers()));
        let mut lines = Lines::within(limits::of_answer(plan.request.reserve_tokens));
        let mut reply = Reply::default();
        let mut first_byte_took = None;
        loop {
            let chunk = self.next_chunk(&mut response, &reply, step, deadline).await?;
            let took = *first_byte_took.get_or_insert_with(|| started.elapsed());
            let Some(chunk) = chunk else {
                show(&reply.end_of_stream(lines.rest(), plan)?, events);
                return Ok((reply, took));
            };
            step = Step::begin(Activity::ReadingAnswer, idle);
            let too_much = |source| Error::TooMuch { server: plan.server.clone(), source };
            lines.push(&chunk).map_err(too_much)?;
            while let Some(line) = lines.next_line().map_err(too_much)? {
                show(&reply.accept(line, plan)?, events);
                if reply.is_done() {
                    return Ok((reply, took));
                }
            }
        }
    }

    /// Returns the next bytes of the answer. A connection that breaks after a whole answer is its end: only token counts may be missing.
    async fn next_chunk(
        &self,
        response: &mut Response,
        reply: &Reply,
        step: Step,
        deadline: &CallDeadline<'_>,
    ) -> Result<Option<Vec<u8>>, Error> {
        match self.endpoint.chunk(response, step, deadline).await {
            Err(error) if error.is_of_transport() && reply.is_whole() => Ok(None),
            chunk => chunk,
        }
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
            let call = self.call(&request, &mut events, &cancel);
            self.endpoint.guard(call).await.map_err(super::Error::from)
        })
    }

    fn window_tokens<'a>(
        &'a self,
        model: &'a str,
        cancel: &'a CancellationToken,
    ) -> ProviderFuture<'a, u32> {
        Box::pin(async move {
            // A server that cannot be reached fails again when it is called, and then the task shows its error.
            let deadline = CallDeadline::starting_now(WINDOW_TIMEOUT, cancel);
            match timeout(WINDOW_TIMEOUT, self.endpoint.window_tokens(model, &deadline)).await {
                Ok(Ok(window_tokens)) => window_tokens,
                _ => self.endpoint.config().window_tokens,
            }
        })
    }

    fn envelope(&self, request: &Request) -> Result<Option<super::Envelope>, super::Error> {
        Ok(Some(super::Envelope::OpenAi(self.envelope_of(request)?)))
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::OF_HTTP
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
        let lifetime = Duration::from_secs(self.endpoint.config().prompt_cache_secs);
        (!lifetime.is_zero()).then_some(lifetime)
    }
}

fn show(delta: &reply::Delta, events: &mut EventSink) {
    if delta.began_thinking {
        events.send_status(Status::Thinking);
    }
    if delta.began_answering {
        events.send_status(Status::Answering);
    }
    events.send_text(&delta.text);
}
