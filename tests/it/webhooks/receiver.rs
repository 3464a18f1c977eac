//! A receiver of webhooks that keeps the requests, and answers as a test wants.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse as _, Response},
};
use serde_json::Value;
use tokio::{net::TcpListener, task::JoinHandle};

use crate::{app::eventually, control::feed_kinds::assert_message_described};

pub struct Receiver {
    pub address: SocketAddr,
    shared: Arc<ReceiverState>,
    server: JoinHandle<()>,
}

/// One request as it arrived.
#[derive(Debug, Clone)]
pub struct ReceivedRequest {
    pub headers: HeaderMap,
    pub body: String,
}

#[derive(Debug, Clone)]
pub enum Answer {
    Status(u16),
    /// Busy for this many seconds.
    Busy(u16),
    Redirect(String),
    /// Answers after this time.
    Slow(Duration),
    /// Never ends its answer.
    Endless,
}

struct ReceiverState {
    received: Mutex<Vec<ReceivedRequest>>,
    answer: Mutex<Answer>,
}

impl Receiver {
    pub async fn start() -> Self {
        Self::start_at(SocketAddr::from(([127, 0, 0, 1], 0))).await
    }

    pub async fn start_at(address: SocketAddr) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let shared = Arc::new(ReceiverState {
            received: Mutex::default(),
            answer: Mutex::new(Answer::Status(204)),
        });
        let router = Router::new().fallback(take).with_state(shared.clone());
        let address = listener.local_addr().unwrap();
        let server = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { address, shared, server }
    }

    pub fn url(&self) -> String {
        format!("http://{}/hooks", self.address)
    }

    pub fn answer(&self, answer: Answer) {
        *self.shared.answer.lock().unwrap() = answer;
    }

    pub fn received(&self) -> Vec<ReceivedRequest> {
        self.shared.received.lock().unwrap().clone()
    }

    pub async fn has_received(&self, n: usize) -> Vec<ReceivedRequest> {
        eventually("the receiver gets a delivery", async || {
            let received = self.received();
            (received.len() >= n).then_some(received)
        })
        .await
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl ReceivedRequest {
    pub fn header(&self, name: &str) -> &str {
        self.headers[name].to_str().unwrap()
    }

    pub fn json(&self) -> Value {
        let body = serde_json::from_str(&self.body).unwrap();
        assert_message_described(&body);
        body
    }

    /// Returns whether the specification's own library accepts the signature.
    pub fn is_signed_with(&self, secret: &str) -> bool {
        let webhook = standardwebhooks::Webhook::new(secret).unwrap();
        webhook.verify(self.body.as_bytes(), &self.headers).is_ok()
    }
}

async fn take(
    State(shared): State<Arc<ReceiverState>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let body = String::from_utf8(body.to_vec()).unwrap();
    shared.received.lock().unwrap().push(ReceivedRequest { headers, body });
    let answer = shared.answer.lock().unwrap().clone();
    match answer {
        Answer::Status(status) => StatusCode::from_u16(status).unwrap().into_response(),
        Answer::Busy(secs) => {
            (StatusCode::TOO_MANY_REQUESTS, [("retry-after", secs.to_string())]).into_response()
        }
        Answer::Redirect(to) => (StatusCode::FOUND, [("location", to)]).into_response(),
        Answer::Slow(wait) => {
            tokio::time::sleep(wait).await;
            StatusCode::OK.into_response()
        }
        Answer::Endless => {
            let piece = || Some((Ok::<_, std::io::Error>(Bytes::from(vec![b'x'; 16 << 10])), ()));
            let pieces = futures_util::stream::unfold((), move |()| async move { piece() });
            axum::body::Body::from_stream(pieces).into_response()
        }
    }
}
