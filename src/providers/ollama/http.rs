//! HTTP client of one server: every wait is bounded, every refusal is read and judged.

use std::time::Duration;

use reqwest::{Client, RequestBuilder, Response, Url, header};
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use super::{
    config::Config,
    error::{Activity, Error},
    refusal::{self, Call, Refusal},
    verdict::Plan,
};
use crate::{
    outbound,
    providers::deadline::{CallDeadline, GaveUp},
};

#[derive(Debug)]
pub(super) struct Http {
    client: Client,
    base_url: Url,
    /// Name of the server in errors.
    host: String,
    first_byte_timeout: Duration,
    idle_timeout: Duration,
}

/// Step of a call, with its time limit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    doing: Activity,
    limit: Duration,
    until: Instant,
}

/// Path of a conversation below the base URL.
const CHAT: &str = "api/chat";
/// Bytes that are read of an error's body.
const MAX_REFUSAL_BYTES: usize = 64 << 10;
/// Bytes that are read of other answers: `/api/show` repeats licence and template of the model. Vectors of a batch of texts fit, too.
const MAX_FACTS_BYTES: usize = 8 << 20;
/// Pooled connections are closed before a proxy in between forgets them.
const POOL_IDLE: Duration = Duration::from_secs(30);

impl Http {
    pub(super) fn new(config: &Config) -> Result<Self, Error> {
        let base_url = config.base_url();
        let base_url = base_url.map_err(|problem| Error::SetUp(problem.message))?;
        let host = base_url.host_str().unwrap_or_default();
        Ok(Self {
            client: client(config, &base_url)?,
            host: match base_url.port() {
                Some(port) => format!("{host}:{port}"),
                None => host.to_owned(),
            },
            first_byte_timeout: config.first_byte_timeout(),
            idle_timeout: config.idle_timeout(),
            base_url,
        })
    }

    pub(super) fn breaker_open(&self, after: Duration) -> Error {
        Error::BreakerOpen { host: self.host.clone(), after }
    }

    pub(super) fn no_facts(&self, model: &str) -> Error {
        Error::NoFacts { host: self.host.clone(), model: model.to_owned() }
    }

    pub(super) fn chat_url(&self) -> Result<String, Error> {
        Ok(self.url(CHAT)?.into())
    }

    /// Sends a conversation, and returns when the server has accepted it.
    pub(super) async fn chat(
        &self,
        plan: &Plan<'_>,
        body: Vec<u8>,
        step: Step,
        patience: &CallDeadline<'_>,
    ) -> Result<Response, Error> {
        let call = Call { model: &plan.request.model, num_ctx: plan.num_ctx };
        self.send(self.post(CHAT, body)?, call, step, patience).await
    }

    /// Returns the next bytes of an answer; `None` at its end.
    pub(super) async fn chunk(
        &self,
        response: &mut Response,
        step: Step,
        patience: &CallDeadline<'_>,
    ) -> Result<Option<Vec<u8>>, Error> {
        let chunk = patience.wait(step.until, response.chunk()).await;
        let chunk = chunk.map_err(|why| self.gave_up(why, step))?;
        let chunk = chunk.map_err(|source| self.transport_error(step.doing, source))?;
        Ok(chunk.map(Vec::from))
    }

    pub(super) async fn model<T: DeserializeOwned>(
        &self,
        model: &str,
        patience: &CallDeadline<'_>,
    ) -> Result<T, Error> {
        let body = serde_json::json!({ "model": model }).to_string();
        let call = Call { model, ..Call::default() };
        let request = self.post("api/show", body.into_bytes())?;
        let step = Step::begin(Activity::AskingForModel, self.idle_timeout);
        self.fetch(request, call, step, patience).await
    }

    /// Requests embeddings of texts. The model may have to be loaded first, and the server answers when all of them are made.
    pub(super) async fn embed<T: DeserializeOwned>(
        &self,
        model: &str,
        body: Vec<u8>,
        patience: &CallDeadline<'_>,
    ) -> Result<T, Error> {
        let call = Call { model, ..Call::default() };
        let request = self.post("api/embed", body)?;
        let step = Step::begin(Activity::MakingVectors, self.first_byte_timeout);
        self.fetch(request, call, step, patience).await
    }

    pub(super) async fn version<T: DeserializeOwned>(
        &self,
        patience: &CallDeadline<'_>,
    ) -> Result<T, Error> {
        let request = self.client.get(self.url("api/version")?);
        let step = Step::begin(Activity::AskingForVersion, self.idle_timeout);
        self.fetch(request, Call::default(), step, patience).await
    }

    async fn fetch<T: DeserializeOwned>(
        &self,
        request: RequestBuilder,
        call: Call<'_>,
        step: Step,
        patience: &CallDeadline<'_>,
    ) -> Result<T, Error> {
        let mut response = self.send(request, call, step, patience).await?;
        let body = self.body(&mut response, MAX_FACTS_BYTES, patience).await?;
        serde_json::from_slice(&body).map_err(Error::Malformed)
    }

    async fn send(
        &self,
        request: RequestBuilder,
        call: Call<'_>,
        step: Step,
        patience: &CallDeadline<'_>,
    ) -> Result<Response, Error> {
        let response = patience.wait(step.until, request.send()).await;
        let response = response.map_err(|why| self.gave_up(why, step))?;
        let mut response = response.map_err(|source| self.transport_error(step.doing, source))?;
        if response.status().is_success() {
            return Ok(response);
        }
        let retry_after = outbound::retry_after(response.headers());
        let status = response.status().as_u16();
        let body = self.body(&mut response, MAX_REFUSAL_BYTES, patience).await;
        // The status alone is enough if the explanation does not arrive. A cancellation stays one.
        let body = match body {
            Err(Error::Cancelled) => return Err(Error::Cancelled),
            body => body.unwrap_or_default(),
        };
        let refusal = Refusal { host: &self.host, status, retry_after, body: &body };
        Err(refusal::error_of_refusal(&refusal, call))
    }

    /// Reads a whole body, cut at `max_bytes`.
    async fn body(
        &self,
        response: &mut Response,
        max_bytes: usize,
        patience: &CallDeadline<'_>,
    ) -> Result<Vec<u8>, Error> {
        let mut body = Vec::new();
        while body.len() < max_bytes
            && let Some(chunk) = self.chunk(response, self.reading(), patience).await?
        {
            body.extend_from_slice(&chunk);
        }
        body.truncate(max_bytes);
        Ok(body)
    }

    fn reading(&self) -> Step {
        Step::begin(Activity::ReadingAnswer, self.idle_timeout)
    }

    fn post(&self, path: &str, body: Vec<u8>) -> Result<RequestBuilder, Error> {
        let request = self.client.post(self.url(path)?);
        Ok(request.header(header::CONTENT_TYPE, "application/json").body(body))
    }

    fn url(&self, path: &str) -> Result<Url, Error> {
        self.base_url.join(path).map_err(|error| Error::SetUp(error.to_string()))
    }

    fn gave_up(&self, why: GaveUp, step: Step) -> Error {
        match why {
            GaveUp::Cancelled => Error::Cancelled,
            GaveUp::Total { after } => Error::TooLong { after },
            GaveUp::Step => Error::Silent {
                host: self.host.clone(),
                doing: step.doing,
                after: step.limit,
                key: match step.doing {
                    Activity::WaitingForAnswer | Activity::MakingVectors => {
                        "first_byte_timeout_secs"
                    }
                    _ => "idle_timeout_secs",
                },
            },
        }
    }

    fn transport_error(&self, doing: Activity, source: reqwest::Error) -> Error {
        // The message has the address already, in the short form.
        let source = source.without_url();
        let host = self.host.clone();
        match source.is_connect() {
            true => Error::Connect { host, source },
            false => Error::Broken { host, doing, source },
        }
    }
}

impl Step {
    pub(super) fn begin(doing: Activity, limit: Duration) -> Self {
        Self { doing, limit, until: Instant::now() + limit }
    }
}

fn client(config: &Config, base_url: &Url) -> Result<Client, Error> {
    let builder = outbound::client(Some(base_url))
        .connect_timeout(config.connect_timeout())
        .pool_idle_timeout(POOL_IDLE)
        .tcp_keepalive(POOL_IDLE)
        // The configuration alone says where a conversation goes: no proxy out of the environment.
        .no_proxy();
    builder.build().map_err(|error| Error::SetUp(error.to_string()))
}
