//! HTTP client of one server: every wait is bounded, and every refusal is read.
//!
//! A provider turns a [`Failure`] into its own error, with the name of its server and its settings.

mod base_url;
mod event_stream;
mod failure;
mod refusal;

use std::time::Duration;

use reqwest::{
    RequestBuilder, Response, Url,
    header::{self, HeaderMap},
};
use serde::de::DeserializeOwned;
use tokio::time::Instant;

pub use self::failure::Activity;
pub(super) use self::{
    base_url::parse_base_url,
    event_stream::event_data,
    failure::Failure,
    refusal::{Refusal, error_text, excerpt},
};
use super::{ToldLimits, deadline::CallDeadline};
use crate::outbound;

#[derive(Debug)]
pub(super) struct Client {
    client: reqwest::Client,
    base_url: Url,
    /// Name of the server in errors.
    host: String,
    idle_timeout: Duration,
}

/// Settings of a client.
#[derive(Debug)]
pub(super) struct Settings {
    /// Address with a slash at its end: paths of calls are added to it.
    pub(super) base_url: Url,
    pub(super) connect_timeout: Duration,
    pub(super) idle_timeout: Duration,
    /// Headers of every call. Secrets among them have to be marked as such.
    pub(super) headers: HeaderMap,
}

/// Step of a call, with its time limit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    doing: Activity,
    limit: Duration,
    until: Instant,
}

/// Bytes that are read of an error's body.
const MAX_REFUSAL_BYTES: usize = 64 << 10;
/// Bytes that are read of other answers: facts about a model may repeat its licence and its template. Vectors of a batch of texts fit, too.
const MAX_FACTS_BYTES: usize = 8 << 20;
/// Pooled connections are closed before a proxy in between forgets them.
const POOL_IDLE: Duration = Duration::from_secs(30);

impl Client {
    /// Builds the client. No connection is opened yet.
    pub(super) fn new(settings: Settings) -> Result<Self, Failure> {
        let Settings { base_url, connect_timeout, idle_timeout, headers } = settings;
        let builder = outbound::client(Some(&base_url))
            .connect_timeout(connect_timeout)
            .pool_idle_timeout(POOL_IDLE)
            .tcp_keepalive(POOL_IDLE)
            .default_headers(headers)
            // The configuration alone says where a conversation goes: no proxy out of the environment.
            .no_proxy();
        let host = base_url.host_str().unwrap_or_default();
        Ok(Self {
            client: builder.build().map_err(|error| Failure::SetUp(error.to_string()))?,
            host: match base_url.port() {
                Some(port) => format!("{host}:{port}"),
                None => host.to_owned(),
            },
            idle_timeout,
            base_url,
        })
    }

    /// Returns host and port, as errors name them.
    pub(super) fn host(&self) -> &str {
        &self.host
    }

    /// Returns the address of a path below the base URL.
    pub(super) fn url(&self, path: &str) -> Result<Url, Failure> {
        self.base_url.join(path).map_err(|error| Failure::SetUp(error.to_string()))
    }

    pub(super) fn get(&self, path: &str) -> Result<RequestBuilder, Failure> {
        Ok(self.client.get(self.url(path)?))
    }

    /// Builds a request with a JSON body.
    pub(super) fn post(&self, path: &str, body: Vec<u8>) -> Result<RequestBuilder, Failure> {
        let request = self.client.post(self.url(path)?);
        Ok(request.header(header::CONTENT_TYPE, "application/json").body(body))
    }

    /// Sends a request, and returns when the server has accepted it.
    pub(super) async fn send(
        &self,
        request: RequestBuilder,
        step: Step,
        deadline: &CallDeadline<'_>,
    ) -> Result<Response, Failure> {
        let response = deadline.wait(step.until, request.send()).await;
        let response = response.map_err(|why| step.failure(why))?;
        let mut response = response.map_err(|source| Failure::of_transport(step.doing, source))?;
        if response.status().is_success() {
            return Ok(response);
        }
        let retry_after = outbound::retry_after(response.headers());
        let told = ToldLimits::of(response.headers());
        let status = response.status().as_u16();
        let body = self.body(&mut response, MAX_REFUSAL_BYTES, deadline).await;
        // The status alone is enough if the explanation does not arrive. A cancellation stays one.
        let body = match body {
            Err(Failure::Cancelled) => return Err(Failure::Cancelled),
            body => body.unwrap_or_default(),
        };
        Err(Failure::Refused(Refusal { status, retry_after, told, body }))
    }

    /// Returns the next bytes of an answer; `None` at its end.
    pub(super) async fn chunk(
        &self,
        response: &mut Response,
        step: Step,
        deadline: &CallDeadline<'_>,
    ) -> Result<Option<Vec<u8>>, Failure> {
        let chunk = deadline.wait(step.until, response.chunk()).await;
        let chunk = chunk.map_err(|why| step.failure(why))?;
        let chunk = chunk.map_err(|source| Failure::of_transport(step.doing, source))?;
        Ok(chunk.map(Vec::from))
    }

    /// Sends a request, and reads its answer as one JSON value.
    pub(super) async fn fetch<T: DeserializeOwned>(
        &self,
        request: RequestBuilder,
        step: Step,
        deadline: &CallDeadline<'_>,
    ) -> Result<T, Failure> {
        let mut response = self.send(request, step, deadline).await?;
        let body = self.body(&mut response, MAX_FACTS_BYTES, deadline).await?;
        serde_json::from_slice(&body).map_err(Failure::Malformed)
    }

    /// Reads a whole body, cut at `max_bytes`.
    async fn body(
        &self,
        response: &mut Response,
        max_bytes: usize,
        deadline: &CallDeadline<'_>,
    ) -> Result<Vec<u8>, Failure> {
        let mut body = Vec::new();
        let step = || Step::begin(Activity::ReadingAnswer, self.idle_timeout);
        while body.len() < max_bytes
            && let Some(chunk) = self.chunk(response, step(), deadline).await?
        {
            body.extend_from_slice(&chunk);
        }
        body.truncate(max_bytes);
        Ok(body)
    }
}

impl Step {
    pub(super) fn begin(doing: Activity, limit: Duration) -> Self {
        Self { doing, limit, until: Instant::now() + limit }
    }
}
