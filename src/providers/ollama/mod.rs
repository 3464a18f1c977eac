//! Ollama over HTTP: the whole conversation in every request, the answer as a stream of JSON lines.
//!
//! The server is more forgiving than a durable conversation allows. It cuts a prompt that is too long and answers the rest with status 200.
//! It reports errors inside of a stream that began well, and may end a stream without a last line. So an answer counts only if the line
//! with `done` came, and if the server counted about as many prompt tokens as the caller sent.
//!
//! `num_ctx` and `shift` are options of loading: two callers that differ make the server load the model again and again. So the
//! configuration fixes both per model, regardless of the request.

mod config;
mod embedder;
mod error;
mod http;
mod messages;
mod model;
mod refusal;
mod reply;
mod verdict;
mod wire;

use std::time::Duration;

use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

pub use self::{
    config::{Config, ModelConfig},
    embedder::Embedder,
    error::{Activity, Error},
    wire::Envelope,
};
use self::{
    http::Http,
    model::{ModelFacts, Models},
    reply::Reply,
    verdict::Plan,
};
use super::{
    CallTexts, Capabilities, EventSink, Outcome, Provider, ProviderFuture, Request, SentRequest,
    Status, TurnFuture, breaker::Breaker, deadline::CallDeadline, http::Step, limits,
    line_splitter::Lines, media,
};
use crate::context::AttachmentRules;

/// Name of this provider in settings, files and sessions.
pub const NAME: &str = "ollama";
/// Timeout of the question for a model's window. The configured one is good enough to plan with.
const WINDOW_TIMEOUT: Duration = Duration::from_secs(5);

/// One Ollama server.
#[derive(Debug)]
pub struct Ollama {
    config: Config,
    http: Http,
    breaker: Breaker,
    models: Models,
}

/// Facts about a model that a diagnosis needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelSummary {
    /// Window of calls to it: as configured, capped at the window that the model was trained with.
    pub window_tokens: u32,
    /// True if the server says so. If it does not list capabilities, the model is assumed to have tools.
    pub has_no_tools: bool,
}

impl Ollama {
    /// Builds the provider. No connection is opened yet.
    pub fn new(config: Config) -> Result<Self, Error> {
        Ok(Self {
            http: Http::new(&config)?,
            breaker: Breaker::new(config.breaker_failures, config.breaker_open()),
            models: Models::default(),
            config,
        })
    }

    /// Returns the window of calls to this model: as configured, capped at the window that the model was trained with.
    pub async fn ask_window_tokens(
        &self,
        model: &str,
        cancel: &CancellationToken,
    ) -> Result<u32, Error> {
        let patience = CallDeadline::starting_now(self.config.request_timeout(), cancel);
        let facts = self.models.facts(&self.http, model, &patience).await?;
        Ok(facts.window_tokens(self.config.num_ctx_of(model)))
    }

    /// Returns the server's facts about a model.
    pub async fn model(
        &self,
        model: &str,
        cancel: &CancellationToken,
    ) -> Result<ModelSummary, Error> {
        let patience = CallDeadline::starting_now(self.config.request_timeout(), cancel);
        let facts = self.models.facts(&self.http, model, &patience).await?;
        let window_tokens = facts.window_tokens(self.config.num_ctx_of(model));
        Ok(ModelSummary { window_tokens, has_no_tools: facts.has_no_tools })
    }

    /// Returns the server's version, as the server spells it.
    pub async fn version(&self, cancel: &CancellationToken) -> Result<String, Error> {
        let patience = CallDeadline::starting_now(self.config.request_timeout(), cancel);
        let version = self.models.version(&self.http, &patience).await?;
        Ok(version.to_string())
    }

    async fn call(
        &self,
        request: &Request,
        events: &mut EventSink,
        cancel: &CancellationToken,
    ) -> Result<Outcome, Error> {
        let permit = self.breaker.admit(Instant::now());
        let permit = permit.map_err(|wait| self.http.breaker_open(wait))?;
        let result = self.call_host(request, events, cancel).await;
        match &result {
            Err(error) if error.is_silent_about_host() => drop(permit),
            Err(error) if error.is_of_transport() => permit.record_failure(Instant::now()),
            _ => permit.record_success(),
        }
        result
    }

    async fn call_host(
        &self,
        request: &Request,
        events: &mut EventSink,
        cancel: &CancellationToken,
    ) -> Result<Outcome, Error> {
        let total = request.timeouts.total.unwrap_or(self.config.total_timeout());
        let patience = CallDeadline::starting_now(total, cancel);
        let model = self.models.facts(&self.http, &request.model, &patience).await?;
        check_tools(request, model)?;
        let counts_all = self.models.counts_cached_tokens(&self.http, &patience).await?;
        let plan = self.plan(request, model, counts_all);
        plan.check()?;
        let envelope = self.envelope_of(&plan, model)?;
        let body = envelope.body(&CallTexts::of(request)).map_err(Error::Unwritable)?;
        events.send_request(SentRequest::new(super::Envelope::Ollama(envelope), &body));
        let started = Instant::now();
        events.send_started(&request.model);
        let (reply, first_byte) = self.stream(&plan, body, events, &patience).await?;
        plan.outcome(reply, started.elapsed(), first_byte)
    }

    fn plan<'a>(&self, request: &'a Request, model: ModelFacts, counts_all: bool) -> Plan<'a> {
        let num_ctx = model.window_tokens(self.config.num_ctx_of(&request.model));
        Plan { request, num_ctx, counts_all }
    }

    fn envelope_of(&self, plan: &Plan<'_>, model: ModelFacts) -> Result<Envelope, Error> {
        let (keep_alive, url) = (self.config.keep_alive_secs, self.http.chat_url()?);
        Ok(Envelope::new(plan, model.thinking, keep_alive, url))
    }

    /// Sends the body and reads lines until the one with `done`, or an error of any kind.
    async fn stream(
        &self,
        plan: &Plan<'_>,
        body: Vec<u8>,
        events: &mut EventSink,
        patience: &CallDeadline<'_>,
    ) -> Result<(Reply, Duration), Error> {
        let started = Instant::now();
        let timeouts = &plan.request.timeouts;
        let first_byte = timeouts.first_byte.unwrap_or(self.config.first_byte_timeout());
        let idle = timeouts.idle.unwrap_or(self.config.idle_timeout());
        // The HTTP head may come long before the body: one step lasts until the first byte of the answer itself.
        let mut step = Step::begin(Activity::WaitingForAnswer, first_byte);
        let mut response = self.http.chat(plan, body, step, patience).await?;
        let mut lines = Lines::within(limits::of_answer(plan.request.reserve_tokens));
        let mut reply = Reply::default();
        let mut first_byte_took = None;
        loop {
            let chunk = self.http.chunk(&mut response, step, patience).await?;
            let took = *first_byte_took.get_or_insert_with(|| started.elapsed());
            let Some(chunk) = chunk else {
                show(&reply.end_of_stream(lines.rest(), plan)?, events);
                return Ok((reply, took));
            };
            step = Step::begin(Activity::ReadingAnswer, idle);
            lines.push(&chunk)?;
            while let Some(line) = lines.next_line()? {
                show(&reply.accept(line, plan)?, events);
                if reply.is_done() {
                    return Ok((reply, took));
                }
            }
        }
    }
}

impl Provider for Ollama {
    fn run(
        &self,
        request: Request,
        mut events: EventSink,
        cancel: CancellationToken,
    ) -> TurnFuture<'_> {
        Box::pin(async move {
            let result = self.call(&request, &mut events, &cancel).await;
            result.map_err(super::Error::from)
        })
    }

    fn window_tokens<'a>(
        &'a self,
        model: &'a str,
        cancel: &'a CancellationToken,
    ) -> ProviderFuture<'a, u32> {
        Box::pin(async move {
            // A server that cannot be reached fails again when it is called, and then the task shows its error.
            match timeout(WINDOW_TIMEOUT, self.ask_window_tokens(model, cancel)).await {
                Ok(Ok(window_tokens)) => window_tokens,
                _ => self.config.num_ctx_of(model),
            }
        })
    }

    fn envelope(&self, request: &Request) -> Result<Option<super::Envelope>, super::Error> {
        let facts = self.models.known_facts(&request.model);
        let facts = facts.ok_or_else(|| self.http.no_facts(&request.model))?;
        check_tools(request, facts)?;
        let envelope = self.envelope_of(&self.plan(request, facts, true), facts)?;
        Ok(Some(super::Envelope::Ollama(envelope)))
    }

    fn attachment_rules(&self, model: &str, _: bool) -> AttachmentRules {
        let facts = self.models.known_facts(model);
        let images = facts.is_some_and(|facts| facts.has_vision).then_some(media::OLLAMA_IMAGES);
        media::rules(images, None)
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::OF_HTTP
    }

    fn telemetry_name(&self) -> &'static str {
        "ollama"
    }

    fn refuses_too_long(&self) -> bool {
        false
    }
}

fn check_tools(request: &Request, model: ModelFacts) -> Result<(), Error> {
    match model.has_no_tools && !request.tools.is_empty() {
        true => Err(Error::NoTools { model: request.model.clone() }),
        false => Ok(()),
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
