//! Endpoints: servers that the configuration defines by name, `[providers.NAME]`. All kinds of API share this module: address, key, timeouts,
//! breaker, list of models, and the errors.
//!
//! A key is read once, when the process starts. It goes into a header that is marked as secret, and nowhere else.

mod config;
mod error;
mod models;
mod refusal;
mod stream;
mod thinking_modes;
mod verdict;

use std::{error::Error as _, time::Duration};

use reqwest::{
    RequestBuilder, Response,
    header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue},
};
use secrecy::{ExposeSecret as _, SecretString};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use self::models::Models;
pub use self::{
    config::{Config, Kind, ModelConfig},
    error::{Error, Server},
    models::{ModelFacts, Window},
    thinking_modes::ThinkingModes,
};
pub(super) use self::{
    refusal::{Call, error_of_event, error_of_refusal},
    stream::{Delta, StreamedReply},
    verdict::{Counts, Plan, ReplyEnd, WholeReply},
};
use super::{
    Variables,
    breaker::Breaker,
    deadline::CallDeadline,
    http::{Activity, Client, Failure, Settings, Step},
};

/// One endpoint.
#[derive(Debug)]
pub struct Endpoint {
    config: Config,
    server: Server,
    client: Client,
    breaker: Breaker,
    models: Models,
    has_key: bool,
}

/// Timeout of the question for a model's window. The configured one is good enough to plan with.
const WINDOW_TIMEOUT: Duration = Duration::from_secs(5);
/// Version of Anthropic's API that this service speaks.
const ANTHROPIC_VERSION: &str = "2023-06-01";

impl Endpoint {
    /// Builds the client, with the key of the endpoint. No connection is opened yet.
    pub fn new(config: Config, variables: &Variables<'_>) -> Result<Self, Error> {
        let mut server = Server { name: config.name.clone(), host: String::new() };
        let base_url = config.parse_base_url().map_err(|problem| Error::SetUp {
            server: server.clone(),
            reason: format!("base_url {}", problem.message),
        })?;
        let key = read_key(&config, &server, variables)?;
        let settings = Settings {
            base_url,
            connect_timeout: config.connect_timeout(),
            idle_timeout: config.idle_timeout(),
            headers: headers(config.kind, key.as_ref(), &server)?,
        };
        let client = Client::new(settings);
        let client = client.map_err(|failure| error_of(&server, failure, Call::default()))?;
        client.host().clone_into(&mut server.host);
        Ok(Self {
            server,
            client,
            breaker: Breaker::new(config.breaker_failures, config.breaker_open()),
            models: Models::default(),
            has_key: key.is_some(),
            config,
        })
    }

    /// Lists the models of the server with what it tells about them. Fails if the server does not answer or refuses the key.
    pub async fn list_models(&self, cancel: &CancellationToken) -> Result<Vec<ModelFacts>, Error> {
        let deadline = CallDeadline::starting_now(self.config.request_timeout(), cancel);
        self.models.fetch(self, &deadline).await
    }

    pub fn config(&self) -> &Config {
        &self.config
    }

    pub(super) fn server(&self) -> Server {
        self.server.clone()
    }

    /// Returns true if calls carry a key.
    pub(super) fn has_key(&self) -> bool {
        self.has_key
    }

    /// Returns the window of a model: the configured one, else the server's, else the configured default.
    pub(super) async fn window_tokens(
        &self,
        model: &str,
        deadline: &CallDeadline<'_>,
    ) -> Result<u32, Error> {
        if let Some(configured) = self.config.window_tokens_of(model) {
            return Ok(configured);
        }
        let facts = self.facts(model, deadline).await?;
        let default = self.config.window_tokens();
        Ok(facts.map_or(default, |facts| facts.window_tokens(default)))
    }

    /// Returns the window to plan a call with. A server that cannot be reached fails again when it is called, and then the task shows its
    /// error.
    pub(super) async fn planned_window_tokens(
        &self,
        model: &str,
        cancel: &CancellationToken,
    ) -> u32 {
        let deadline = CallDeadline::starting_now(WINDOW_TIMEOUT, cancel);
        match timeout(WINDOW_TIMEOUT, self.window_tokens(model, &deadline)).await {
            Ok(Ok(window_tokens)) => window_tokens,
            _ => self.config.window_tokens(),
        }
    }

    /// Returns the facts about a model. `None`: the server has no list of models, or does not name this one.
    pub(super) async fn facts(
        &self,
        model: &str,
        deadline: &CallDeadline<'_>,
    ) -> Result<Option<ModelFacts>, Error> {
        self.models.find(self, model, deadline).await
    }

    /// Returns the facts about a model that were asked already.
    pub(super) fn known_facts(&self, model: &str) -> Option<ModelFacts> {
        self.models.find_known(model)
    }

    /// Makes a call, unless the server did not answer the last ones.
    pub(super) async fn guard<T>(
        &self,
        call: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let permit = self.breaker.admit(Instant::now());
        let permit = permit.map_err(|after| Error::BreakerOpen { server: self.server(), after })?;
        let result = call.await;
        match &result {
            Err(error) if error.is_silent_about_host() => drop(permit),
            Err(error) if error.is_of_transport() => permit.record_failure(Instant::now()),
            _ => permit.record_success(),
        }
        result
    }

    /// Returns the address of a path below the base URL.
    pub(super) fn url(&self, path: &str) -> Result<String, Error> {
        Ok(self.client.url(path).map_err(|failure| self.error(failure, Call::default()))?.into())
    }

    /// Sends a request body, and returns when the server has accepted it.
    pub(super) async fn post(
        &self,
        path: &str,
        body: Vec<u8>,
        call: Call<'_>,
        step: Step,
        deadline: &CallDeadline<'_>,
    ) -> Result<Response, Error> {
        let sent = async { self.client.send(self.client.post(path, body)?, step, deadline).await };
        sent.await.map_err(|failure| self.error(failure, call))
    }

    /// Sends a request body that needs no model, and reads the answer as one JSON value.
    pub(super) async fn post_and_read<T: serde::de::DeserializeOwned>(
        &self,
        path: &str,
        body: Vec<u8>,
        call: Call<'_>,
        doing: Activity,
        deadline: &CallDeadline<'_>,
    ) -> Result<T, Error> {
        let step = Step::begin(doing, self.config.idle_timeout());
        let read = async { self.client.fetch(self.client.post(path, body)?, step, deadline).await };
        read.await.map_err(|failure| self.error(failure, call))
    }

    /// Reads the answer to a request without a body as one JSON value.
    pub(super) async fn get_and_read<T: serde::de::DeserializeOwned>(
        &self,
        path: &str,
        doing: Activity,
        deadline: &CallDeadline<'_>,
    ) -> Result<T, Error> {
        let step = Step::begin(doing, self.config.idle_timeout());
        self.fetch(self.client.get(path), step, deadline).await
    }

    /// Returns the next bytes of an answer; `None` at its end.
    pub(super) async fn chunk(
        &self,
        response: &mut Response,
        step: Step,
        deadline: &CallDeadline<'_>,
    ) -> Result<Option<Vec<u8>>, Error> {
        let chunk = self.client.chunk(response, step, deadline).await;
        chunk.map_err(|failure| self.error(failure, Call::default()))
    }

    async fn fetch<T: serde::de::DeserializeOwned>(
        &self,
        request: Result<RequestBuilder, Failure>,
        step: Step,
        deadline: &CallDeadline<'_>,
    ) -> Result<T, Error> {
        let fetched = async { self.client.fetch(request?, step, deadline).await };
        fetched.await.map_err(|failure| self.error(failure, Call::default()))
    }

    fn error(&self, failure: Failure, call: Call<'_>) -> Error {
        error_of(&self.server, failure, call)
    }
}

fn error_of(server: &Server, failure: Failure, call: Call<'_>) -> Error {
    let server = server.clone();
    match failure {
        Failure::SetUp(reason) => Error::SetUp { server, reason },
        Failure::Cancelled => Error::Cancelled,
        Failure::TooLong { after } => Error::TooLong { server, after },
        Failure::Silent { doing, after } => Error::Silent { server, doing, after },
        Failure::Connect(source) if is_of_certificate(&source) => {
            Error::Certificate { server, source }
        }
        Failure::Connect(source) => Error::Connect { server, source },
        Failure::Broken { doing, source } => Error::Broken { server, doing, source },
        Failure::Refused(refusal) => error_of_refusal(server, &refusal, call),
        Failure::Malformed(source) => Error::Malformed { server, source },
    }
}

/// Returns true if TLS failed because of the server's certificate. The client's error has no type for it.
fn is_of_certificate(error: &reqwest::Error) -> bool {
    let mut source = error.source();
    while let Some(cause) = source {
        if cause.to_string().contains("certificate") {
            return true;
        }
        source = cause.source();
    }
    false
}

fn read_key(
    config: &Config,
    server: &Server,
    variables: &Variables<'_>,
) -> Result<Option<SecretString>, Error> {
    let variable = &config.credential_variable;
    let file = &config.credential_file;
    let key = if !variable.is_empty() {
        let missing = || Error::NoVariable { server: server.clone(), variable: variable.clone() };
        variables(variable).ok_or_else(missing)?
    } else if !file.as_os_str().is_empty() {
        std::fs::read_to_string(file).map_err(|source| Error::NoFile {
            server: server.clone(),
            file: file.clone(),
            source,
        })?
    } else {
        return Ok(None);
    };
    match key.trim() {
        "" => Err(Error::UnusableKey { server: server.clone() }),
        key => Ok(Some(key.into())),
    }
}

/// Returns the headers of every call.
fn headers(kind: Kind, key: Option<&SecretString>, server: &Server) -> Result<HeaderMap, Error> {
    let mut headers = HeaderMap::new();
    if kind == Kind::Anthropic {
        let version = HeaderValue::from_static(ANTHROPIC_VERSION);
        headers.insert(HeaderName::from_static("anthropic-version"), version);
    }
    let Some(key) = key else { return Ok(headers) };
    let (name, text) = match kind {
        Kind::OpenAi => (AUTHORIZATION, format!("Bearer {}", key.expose_secret())),
        Kind::Anthropic => (HeaderName::from_static("x-api-key"), key.expose_secret().to_owned()),
    };
    let value = HeaderValue::from_str(&text);
    let mut value = value.map_err(|_| Error::UnusableKey { server: server.clone() })?;
    value.set_sensitive(true);
    headers.insert(name, value);
    Ok(headers)
}
