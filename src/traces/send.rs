//! The sender of spans, in batches.
//!
//! The collector may be slow, unreachable, or refuse. A batch is retried a few times and then dropped; further spans
//! wait in a bounded buffer. One log line reports the first failure, and one the next success.

use std::time::Duration;

use reqwest::{
    Client, StatusCode, Url,
    header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue},
};
use secrecy::{ExposeSecret as _, SecretString};
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, sleep, timeout_at},
};

use super::{
    Error, count,
    encode::{Resource, request},
    span::Span,
};
use crate::outbound;

#[derive(Debug)]
pub(super) enum Order {
    Send(Box<Span>),
    /// Answered when all earlier spans were sent or dropped.
    Flush(oneshot::Sender<()>),
}

/// A batch that was not taken.
#[derive(Debug)]
struct Failure {
    words: String,
    may_pass: bool,
    /// Of its spans, if it was the last try.
    result: &'static str,
}

#[derive(Debug)]
pub(super) struct Sender {
    client: Client,
    url: Url,
    resource: Resource,
    is_failing: bool,
}

/// Longest time that an ending process waits for the flush.
pub(super) const FLUSH_LIMIT: Duration = Duration::from_secs(3);
const BATCH_SPANS: usize = 512;
/// Time that the first span of a batch waits for others.
const LINGER: Duration = Duration::from_secs(2);
const TIMEOUT: Duration = Duration::from_secs(10);
const N_TRIES: u32 = 3;
const FIRST_PAUSE: Duration = Duration::from_secs(1);

impl Sender {
    pub(super) fn new(
        url: Url,
        authorization: &SecretString,
        resource: Resource,
    ) -> Result<Self, Error> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let secret = authorization.expose_secret();
        if !secret.is_empty() {
            let value = HeaderValue::from_str(secret);
            let mut value = value.map_err(|error| Error::SetUp(error.to_string()))?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        let builder =
            outbound::client(Some(&url)).timeout(TIMEOUT).default_headers(headers).no_proxy();
        let client = builder.build().map_err(|error| Error::SetUp(error.to_string()))?;
        Ok(Self { client, url, resource, is_failing: false })
    }

    /// Sends batches until every `Traces` is dropped.
    pub(super) async fn run(mut self, mut coming: mpsc::Receiver<Order>) {
        let mut batch = Vec::new();
        while let Some(order) = coming.recv().await {
            let mut asked = None;
            apply_order(order, &mut batch, &mut asked);
            let until = Instant::now() + LINGER;
            while batch.len() < BATCH_SPANS && asked.is_none() {
                match timeout_at(until, coming.recv()).await {
                    Ok(Some(order)) => apply_order(order, &mut batch, &mut asked),
                    Ok(None) | Err(_) => break,
                }
            }
            if !batch.is_empty() {
                self.send(&batch).await;
                batch.clear();
            }
            if let Some(done) = asked {
                let _ = done.send(());
            }
        }
    }

    async fn send(&mut self, spans: &[Span]) {
        let body = request(&self.resource, spans).to_string();
        let (n_spans, mut pause) = (spans.len() as u64, FIRST_PAUSE);
        for n_tries in 1..=N_TRIES {
            match self.try_send(body.clone()).await {
                Ok(()) => {
                    if std::mem::take(&mut self.is_failing) {
                        tracing::info!("traces are accepted again");
                    }
                    return count("sent", n_spans);
                }
                Err(Failure { words, may_pass, result }) => {
                    if !std::mem::replace(&mut self.is_failing, true) {
                        tracing::warn!(error = words, "cannot send traces");
                    }
                    if !may_pass || n_tries == N_TRIES {
                        return count(result, n_spans);
                    }
                }
            }
            sleep(pause).await;
            pause *= 4;
        }
    }

    async fn try_send(&self, body: String) -> Result<(), Failure> {
        let sent = self.client.post(self.url.clone()).body(body).send().await;
        let status = match sent {
            Ok(answer) => answer.status(),
            Err(error) => {
                let words = error.without_url().to_string();
                return Err(Failure { words, may_pass: true, result: "dropped" });
            }
        };
        if status.is_success() {
            return Ok(());
        }
        // As OTLP has it: these and no others may be tried again.
        let may_pass = matches!(
            status,
            StatusCode::TOO_MANY_REQUESTS
                | StatusCode::BAD_GATEWAY
                | StatusCode::SERVICE_UNAVAILABLE
                | StatusCode::GATEWAY_TIMEOUT
        );
        Err(Failure { words: status.to_string(), may_pass, result: "refused" })
    }
}

fn apply_order(order: Order, batch: &mut Vec<Span>, asked: &mut Option<oneshot::Sender<()>>) {
    match order {
        Order::Send(span) => batch.push(*span),
        Order::Flush(done) => *asked = Some(done),
    }
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpListener,
    };

    use super::*;

    #[tokio::test]
    async fn spans_that_a_collector_rejects_or_never_receives_are_dropped() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1/traces", listener.local_addr().unwrap());
        let resource = Resource { service_name: "dalsegno".to_owned() };
        let sender = Sender::new(url.parse().unwrap(), &String::new().into(), resource).unwrap();
        let answers = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            assert_ne!(stream.read(&mut [0; 4096]).await.unwrap(), 0);
            let answer =
                b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            stream.write_all(answer).await.unwrap();
        };
        let (sent, ()) = tokio::join!(sender.try_send("{}".to_owned()), answers);
        let refused = sent.unwrap_err();
        assert_eq!((refused.result, refused.may_pass), ("refused", false), "{refused:?}");
        drop(listener);
        let dropped = sender.try_send("{}".to_owned()).await.unwrap_err();
        assert_eq!((dropped.result, dropped.may_pass), ("dropped", true), "{dropped:?}");
    }
}
