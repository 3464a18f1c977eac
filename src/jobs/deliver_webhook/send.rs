//! The HTTP client of deliveries. Receivers are untrusted: every wait has a timeout, answers are read up to a limit,
//! and redirects are not followed.

use std::{error::Error, time::Duration};

use reqwest::{Client, Response, StatusCode, header};

use super::{
    metrics,
    resolve::{Private, Resolver},
};
use crate::{
    domain::webhooks::{Config, DueDelivery, FailedAttempt, Message, Outcome, check_url},
    outbound,
};

/// Sends deliveries; one per process.
#[derive(Debug)]
pub struct Sender {
    /// The client, or its error, for example missing certificates. The service starts without it.
    client: Result<Client, String>,
    config: Config,
}

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Bytes of an answer that are read, so that the receiver can finish writing it.
const MAX_ANSWER_BYTES: usize = 64 << 10;

impl Sender {
    pub fn new(config: &Config) -> Self {
        metrics::describe();
        Self { client: client(config).map_err(|error| error.to_string()), config: config.clone() }
    }

    pub(in crate::jobs) fn config(&self) -> &Config {
        &self.config
    }

    pub(super) async fn send(&self, due: &DueDelivery, message: Message) -> Outcome {
        match self.post(due, message).await {
            Ok((status, _)) if status.is_success() => {
                Outcome::Delivered { status: status.as_u16() }
            }
            Ok((status, retry_after)) => Outcome::Missed(FailedAttempt {
                status: Some(status.as_u16()),
                error: words_of(status),
                retry_after,
            }),
            Err(error) => Outcome::Missed(FailedAttempt::unanswered(error)),
        }
    }

    /// Returns the status, and the wait that the receiver asks for.
    async fn post(
        &self,
        due: &DueDelivery,
        message: Message,
    ) -> Result<(StatusCode, Option<Duration>), String> {
        let client =
            self.client.as_ref().map_err(|error| format!("cannot set up HTTPS: {error}"))?;
        // The address may have become forbidden since the webhook was added.
        let url = check_url(&due.url, self.config.allow_private).map_err(|e| e.to_string())?;
        let mut request = client.post(url).header(header::CONTENT_TYPE, "application/json");
        for (name, value) in message.headers {
            request = request.header(name, value);
        }
        let response =
            request.body(message.body).send().await.map_err(|error| self.describe_error(&error))?;
        let (status, retry_after) = (response.status(), outbound::retry_after(response.headers()));
        read_some(response).await;
        Ok((status, retry_after))
    }

    /// Describes an error without the address.
    fn describe_error(&self, error: &reqwest::Error) -> String {
        let mut cause: &dyn Error = error;
        while let Some(deeper) = cause.source() {
            if deeper.is::<Private>() {
                return deeper.to_string();
            }
            cause = deeper;
        }
        match error.is_timeout() {
            true => format!("it did not answer within {} s", self.config.timeout_secs),
            false if error.is_connect() => format!("it could not be reached: {cause}"),
            false => format!("it did not answer: {cause}"),
        }
    }
}

/// Reads the start of an answer. Errors do not matter: the status is known.
async fn read_some(mut response: Response) {
    let mut n_read = 0;
    while n_read < MAX_ANSWER_BYTES
        && let Ok(Some(chunk)) = response.chunk().await
    {
        n_read += chunk.len();
    }
}

fn words_of(status: StatusCode) -> String {
    let answered = format!("it answered {status}");
    match status.is_redirection() {
        true => format!("{answered}; redirects are not followed"),
        false => answered,
    }
}

fn client(config: &Config) -> Result<Client, reqwest::Error> {
    outbound::client(None)
        .timeout(config.timeout())
        .connect_timeout(CONNECT_TIMEOUT)
        .dns_resolver(Resolver { allow_private: config.allow_private })
        .https_only(!config.allow_private)
        // A proxy would resolve the name itself.
        .no_proxy()
        .build()
}
