//! A server that plays answers and faults in the dialect of a provider.

use std::{
    collections::VecDeque,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use dalsegno::providers::Provider;
use serde_json::Value;
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

use super::{
    batches::{BatchList, BatchReply},
    dialects::{Answer, Dialect},
};
use crate::providers::{
    fake_ollama::http,
    summaries,
    transport::{Step, Transport},
};

#[must_use]
pub struct ScriptedServer {
    pub addr: SocketAddr,
    pub state: Arc<State>,
    server: JoinHandle<()>,
}

pub struct State {
    dialect: &'static dyn Dialect,
    plays: Mutex<VecDeque<Play>>,
    /// Bodies of calls, byte for byte.
    bodies: Mutex<Vec<Vec<u8>>>,
    /// All requests, such as `POST /api/chat`.
    requests: Mutex<Vec<String>>,
    /// Header lines of calls.
    heads: Mutex<Vec<String>>,
    /// Requests that this server does not know.
    missing: Mutex<Vec<String>>,
    pub batches: BatchList,
    pub transport: Transport,
}

/// The answer to one call.
pub enum Play {
    Answers(Answer),
    /// The same with the counts of an honest server.
    Counted(Answer),
    /// Status, headers and body.
    Status(u16, String, String),
    /// Closes the connection without a response.
    HangsUp,
    /// Accepts the call and sends no head.
    NeverBegins,
    /// Status 200, then these steps, each in a chunk of its own.
    Stream(Vec<Step>),
}

impl Play {
    /// Streams these bytes, each in a chunk of its own.
    pub fn chunks(chunks: impl IntoIterator<Item = Vec<u8>>) -> Self {
        Self::Stream(chunks.into_iter().map(Step::Bytes).chain([Step::End]).collect())
    }

    pub fn status(status: u16, body: impl Into<String>) -> Self {
        Self::Status(status, String::new(), body.into())
    }
}

impl ScriptedServer {
    pub async fn playing(
        dialect: &'static dyn Dialect,
        plays: impl IntoIterator<Item = Play>,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self::on(listener, dialect, plays)
    }

    pub fn on(
        listener: TcpListener,
        dialect: &'static dyn Dialect,
        plays: impl IntoIterator<Item = Play>,
    ) -> Self {
        let addr = listener.local_addr().unwrap();
        let state = Arc::new(State {
            dialect,
            plays: Mutex::new(plays.into_iter().collect()),
            bodies: Mutex::default(),
            requests: Mutex::default(),
            heads: Mutex::default(),
            missing: Mutex::default(),
            batches: BatchList::default(),
            transport: Transport::default(),
        });
        let server = tokio::spawn(serve(listener, Arc::clone(&state)));
        Self { addr, state, server }
    }

    pub fn provider(&self) -> Box<dyn Provider> {
        self.state.dialect.provider(&self.base_url())
    }

    /// Plays this at the next call.
    pub fn play(&self, play: Play) {
        self.state.plays.lock().unwrap().push_back(play);
    }

    /// Answers this request with status 404 from now on.
    pub fn lack(&self, request: &str) {
        self.state.missing.lock().unwrap().push(request.to_owned());
    }

    pub fn base_url(&self) -> String {
        format!("http://{}", self.addr)
    }

    pub fn bodies(&self) -> Vec<Vec<u8>> {
        self.state.bodies.lock().unwrap().clone()
    }

    /// Returns the calls as JSON.
    pub fn calls(&self) -> Vec<Value> {
        calls(&self.state)
    }

    pub fn heads(&self) -> Vec<String> {
        self.state.heads.lock().unwrap().clone()
    }

    pub fn requests(&self) -> Vec<String> {
        self.state.requests.lock().unwrap().clone()
    }

    /// Waits until `n` calls have arrived.
    pub async fn wait_for_calls(&self, n: usize) {
        let arrived = async {
            while self.state.bodies.lock().unwrap().len() < n {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(crate::app::SOON, arrived).await.expect("the call arrives");
    }
}

impl Drop for ScriptedServer {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn serve(listener: TcpListener, state: Arc<State>) {
    while let Ok((socket, _)) = listener.accept().await {
        socket.set_nodelay(true).unwrap();
        // Many tests are about clients that disconnect.
        let state = Arc::clone(&state);
        tokio::spawn(async move { _ = answer(socket, &state).await });
    }
}

async fn answer(mut socket: TcpStream, state: &State) -> std::io::Result<()> {
    let (named, head, body) = http::read_request_with_head(&mut socket).await?;
    state.requests.lock().unwrap().push(named.clone());
    if state.missing.lock().unwrap().contains(&named) {
        return http::send(&mut socket, 404, "", "not found").await;
    }
    if let Some(reply) = state.batches.answer(&named, &body) {
        return match reply {
            BatchReply::Json(status, answer) => http::send_json(&mut socket, status, &answer).await,
            BatchReply::Lost => Ok(()),
        };
    }
    if named != state.dialect.chat() {
        let (status, answer) = state.dialect.side(&named, &body);
        return http::send_json(&mut socket, status, &answer).await;
    }
    state.heads.lock().unwrap().push(head);
    state.bodies.lock().unwrap().push(body);
    let play = state.plays.lock().unwrap().pop_front();
    let play = play.unwrap_or_else(|| Play::Answers(usual(state)));
    match play {
        Play::Answers(answer) => send_answer(&mut socket, state, &answer).await,
        Play::Counted(mut answer) => {
            let n_tokens = answer.counts["answer"].take();
            answer.counts = state.dialect.count(&calls(state));
            answer.counts["answer"] = n_tokens;
            send_answer(&mut socket, state, &answer).await
        }
        Play::Status(status, headers, text) => {
            http::send(&mut socket, status, &headers, &text).await
        }
        Play::HangsUp => Ok(()),
        Play::NeverBegins => state.transport.stall(&mut socket).await,
        Play::Stream(steps) => state.transport.stream(&mut socket, steps).await,
    }
}

async fn send_answer(
    socket: &mut TcpStream,
    state: &State,
    answer: &Answer,
) -> std::io::Result<()> {
    let events = state.dialect.events(answer).into_iter().map(Step::Bytes);
    let steps = events.chain([Step::End]).collect();
    state.transport.stream(socket, steps).await
}

fn calls(state: &State) -> Vec<Value> {
    let bodies = state.bodies.lock().unwrap();
    bodies.iter().map(|body| serde_json::from_slice(body).unwrap()).collect()
}

/// Returns an honest answer with honest counts.
fn usual(state: &State) -> Answer {
    let calls = calls(state);
    let messages = state.dialect.messages(calls.last().expect("a call"));
    let prompt = messages.last().map(|message| message.content.as_str()).unwrap_or_default();
    let (mut answer, n_tokens) = match summaries::honest(prompt) {
        Some(summary) => (Answer::of(&[&summary]), 100),
        None => (Answer::of(&["A ", "good ", "answer."]), 4),
    };
    answer.counts = state.dialect.count(&calls);
    answer.counts["answer"] = n_tokens.into();
    answer
}
