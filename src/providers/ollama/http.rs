//! Requests to one Ollama server, and the errors of those that fail.

use std::time::Duration;

use reqwest::{RequestBuilder, Response, header::HeaderMap};
use serde::de::DeserializeOwned;

use super::{
    config::Config,
    error::{Activity, Error},
    refusal::{self, Call},
    verdict::Plan,
};
use crate::providers::{
    deadline::CallDeadline,
    http::{Client, Failure, Settings, Step},
};

#[derive(Debug)]
pub(super) struct Http {
    client: Client,
    first_byte_timeout: Duration,
    idle_timeout: Duration,
}

/// Path of a conversation below the base URL.
const CHAT: &str = "api/chat";

impl Http {
    pub(super) fn new(config: &Config) -> Result<Self, Error> {
        let base_url = config.base_url().map_err(|problem| Error::SetUp(problem.message))?;
        let settings = Settings {
            base_url,
            connect_timeout: config.connect_timeout(),
            idle_timeout: config.idle_timeout(),
            headers: HeaderMap::new(),
        };
        Ok(Self {
            client: Client::new(settings)
                .map_err(|failure| error_of("", failure, Call::default()))?,
            first_byte_timeout: config.first_byte_timeout(),
            idle_timeout: config.idle_timeout(),
        })
    }

    pub(super) fn breaker_open(&self, after: Duration) -> Error {
        Error::BreakerOpen { host: self.client.host().to_owned(), after }
    }

    pub(super) fn no_facts(&self, model: &str) -> Error {
        Error::NoFacts { host: self.client.host().to_owned(), model: model.to_owned() }
    }

    pub(super) fn chat_url(&self) -> Result<String, Error> {
        let url = self.client.url(CHAT);
        Ok(url.map_err(|failure| self.error(failure, Call::default()))?.into())
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
        let sent = async { self.client.send(self.client.post(CHAT, body)?, step, patience).await };
        sent.await.map_err(|failure| self.error(failure, call))
    }

    /// Returns the next bytes of an answer; `None` at its end.
    pub(super) async fn chunk(
        &self,
        response: &mut Response,
        step: Step,
        patience: &CallDeadline<'_>,
    ) -> Result<Option<Vec<u8>>, Error> {
        let chunk = self.client.chunk(response, step, patience).await;
        chunk.map_err(|failure| self.error(failure, Call::default()))
    }

    pub(super) async fn model<T: DeserializeOwned>(
        &self,
        model: &str,
        patience: &CallDeadline<'_>,
    ) -> Result<T, Error> {
        let body = serde_json::json!({ "model": model }).to_string();
        let request = self.client.post("api/show", body.into_bytes());
        let step = Step::begin(Activity::AskingForModel, self.idle_timeout);
        self.fetch(request, Call { model, ..Call::default() }, step, patience).await
    }

    /// Requests embeddings of texts. The model may have to be loaded first, and the server answers when all of them are made.
    pub(super) async fn embed<T: DeserializeOwned>(
        &self,
        model: &str,
        body: Vec<u8>,
        patience: &CallDeadline<'_>,
    ) -> Result<T, Error> {
        let request = self.client.post("api/embed", body);
        let step = Step::begin(Activity::MakingVectors, self.first_byte_timeout);
        self.fetch(request, Call { model, ..Call::default() }, step, patience).await
    }

    pub(super) async fn version<T: DeserializeOwned>(
        &self,
        patience: &CallDeadline<'_>,
    ) -> Result<T, Error> {
        let request = self.client.get("api/version");
        let step = Step::begin(Activity::AskingForVersion, self.idle_timeout);
        self.fetch(request, Call::default(), step, patience).await
    }

    async fn fetch<T: DeserializeOwned>(
        &self,
        request: Result<RequestBuilder, Failure>,
        call: Call<'_>,
        step: Step,
        patience: &CallDeadline<'_>,
    ) -> Result<T, Error> {
        let fetched = async { self.client.fetch(request?, step, patience).await };
        fetched.await.map_err(|failure| self.error(failure, call))
    }

    fn error(&self, failure: Failure, call: Call<'_>) -> Error {
        error_of(self.client.host(), failure, call)
    }
}

fn error_of(host: &str, failure: Failure, call: Call<'_>) -> Error {
    let host = host.to_owned();
    match failure {
        Failure::SetUp(reason) => Error::SetUp(reason),
        Failure::Cancelled => Error::Cancelled,
        Failure::TooLong { after } => Error::TooLong { after },
        Failure::Silent { doing, after } => {
            Error::Silent { host, doing, after, key: doing.timeout_key() }
        }
        Failure::Connect(source) => Error::Connect { host, source },
        Failure::Broken { doing, source } => Error::Broken { host, doing, source },
        Failure::Refused(refusal) => refusal::error_of_refusal(&host, &refusal, call),
        Failure::Malformed(error) => Error::Malformed(error),
    }
}
