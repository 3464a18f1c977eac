//! Traces of turns, sent as OTLP over HTTP.
//!
//! A conversation lasts for days, so each turn is a trace of its own. Its root span links to the request that asked for
//! it and to the previous turn. The ids of a turn's spans are derived from its session and number, so the links need no
//! stored ids.
//!
//! Invariants: recording never waits and never fails a turn. Spans that exceed the buffer are counted and dropped.
//! Spans contain no text of a conversation.

mod context;
mod encode;
mod send;
mod span;

use std::sync::Arc;

use metrics::counter;
use reqwest::Url;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use tokio::sync::mpsc;

pub use self::{
    context::Context,
    span::{Kind, Span, Value},
};
use self::{
    encode::Resource,
    send::{Order, Sender},
};
use crate::{metric::Metric, settings::Checks};

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    pub endpoint: String,
    pub authorization: SecretString,
    pub service_name: String,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot set up the traces: {0}")]
    SetUp(String),
}

/// The buffer that spans are recorded into. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Traces {
    /// `None`: no collector is configured.
    orders: Option<Arc<mpsc::Sender<Order>>>,
}

/// Capacity of the buffer, in spans. A turn has three.
const N_WAITING: usize = 8192;
const SPANS: Metric = Metric::counter(
    "dalsegno_trace_spans_total",
    &["outcome"],
    "Spans of traces in this process: sent, refused (by the answer of the collector), dropped (the collector could not be reached, \
     or too many spans waited).",
);

/// All metrics of traces.
pub const METRICS: [Metric; 1] = [SPANS];

impl Traces {
    /// Starts the sender, if `traces.endpoint` is set. Must be called in a Tokio runtime.
    pub fn start(config: &Config) -> Result<Self, Error> {
        if config.endpoint.is_empty() {
            return Ok(Self::default());
        }
        SPANS.describe();
        ["sent", "refused", "dropped"].into_iter().for_each(|outcome| count(outcome, 0));
        let url = config.url().map_err(Error::SetUp)?;
        let resource = Resource { service_name: config.service_name.clone() };
        let sender = Sender::new(url, &config.authorization, resource)?;
        let (orders, coming) = mpsc::channel(N_WAITING);
        tokio::spawn(sender.run(coming));
        Ok(Self { orders: Some(Arc::new(orders)) })
    }

    /// Returns true if a collector is configured. Callers skip making spans otherwise.
    pub fn is_enabled(&self) -> bool {
        self.orders.is_some()
    }

    pub fn record(&self, span: Span) {
        let Some(orders) = &self.orders else { return };
        if orders.try_send(Order::Send(Box::new(span))).is_err() {
            count("dropped", 1);
        }
    }

    /// Sends the buffered spans, for a few seconds at most. Called last, when the process ends.
    pub async fn flush(&self) {
        let Some(orders) = &self.orders else { return };
        let (done, is_done) = tokio::sync::oneshot::channel();
        let flushed = async {
            if orders.send(Order::Flush(done)).await.is_ok() {
                let _ = is_done.await;
            }
        };
        let _ = tokio::time::timeout(send::FLUSH_LIMIT, flushed).await;
    }
}

impl Config {
    pub fn check(&self, checks: &mut Checks<'_>) {
        if self.endpoint.is_empty() {
            return;
        }
        if let Err(problem) = self.url() {
            checks.fail("traces.endpoint", problem, "http://127.0.0.1:4318");
        }
        let authorization = self.authorization.expose_secret();
        if reqwest::header::HeaderValue::from_str(authorization).is_err() {
            let fix = "one line of visible characters, such as \"Bearer ...\"";
            checks.fail(
                "traces.authorization",
                "contains characters that a header cannot contain",
                fix,
            );
        }
    }

    fn url(&self) -> Result<Url, String> {
        let url: Url =
            self.endpoint.parse().map_err(|error| format!("is not a valid URL: {error}"))?;
        if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
            return Err("is not an HTTP or HTTPS URL".to_owned());
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("contains a user or a password: use traces.authorization".to_owned());
        }
        let base = url.as_str().trim_end_matches('/');
        let whole = if base.ends_with("/v1/traces") {
            base.to_owned()
        } else {
            format!("{base}/v1/traces")
        };
        whole.parse().map_err(|error| format!("is not a valid URL: {error}"))
    }
}

fn count(outcome: &'static str, n_spans: u64) {
    counter!(SPANS.name, "outcome" => outcome).increment(n_spans);
}
