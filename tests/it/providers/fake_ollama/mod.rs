//! A fake Ollama server, with faults on demand.
//!
//! By default it answers like Ollama. It counts tokens with its own tokeniser, refuses or cuts long prompts according
//! to `truncate`, reloads a model when `num_ctx` or `shift` differ, and streams JSON lines. A [`Play`] replaces the
//! next answer. It writes raw bytes to the socket, so that it can break the protocol in ways that HTTP libraries do not
//! allow.

pub mod http;
pub mod meaning;
mod model;

use std::{
    collections::VecDeque,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use dalsegno::providers::ollama::{Config, Ollama};
use serde_json::{Value, json};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Notify,
    task::JoinHandle,
};

use self::meaning::Embeds;
pub use self::model::{count_prompt, line};
pub use super::transport::Step;
use super::{summaries, transport::Transport};

/// Deadline of each wait.
const DEADLINE: Duration = crate::app::SOON;

#[must_use]
pub struct FakeOllama {
    pub addr: SocketAddr,
    pub state: Arc<State>,
    server: JoinHandle<()>,
}

pub struct State {
    pub version: Mutex<String>,
    /// Answer of `/api/show`.
    pub shown: Mutex<Value>,
    pub plays: Mutex<VecDeque<Play>>,
    /// Bodies of `/api/chat`, in order.
    pub chats: Mutex<Vec<Value>>,
    /// The same, byte for byte.
    pub bodies: Mutex<Vec<Vec<u8>>>,
    /// Behaviour of the next calls of `/api/embed`.
    pub embeds: Mutex<Embeds>,
    /// Loads a cold model for one waiting call.
    pub load: Notify,
    /// Bodies of `/api/embed`, in order.
    pub embedded: Mutex<Vec<Value>>,
    /// All requests, such as `POST /api/chat`.
    pub requests: Mutex<Vec<String>>,
    pub n_loads: AtomicUsize,
    summarises: AtomicBool,
    loaded: Mutex<Option<(Value, Value)>>,
    pub transport: Transport,
}

/// The answer to one chat.
pub enum Play {
    /// A whole answer, one line per piece.
    Says(&'static [&'static str]),
    /// Calls of these tools, by name and arguments, offered or not.
    Calls(Vec<(&'static str, Value)>),
    /// Cuts the prompt despite `truncate`.
    IgnoresTruncate,
    /// Status, headers and body.
    Status(u16, &'static str, &'static str),
    /// Closes the connection without a response.
    HangsUp,
    /// Accepts the call and sends no head.
    NeverBegins,
    /// Status 200, then these steps, each in a chunk of its own.
    Stream(Vec<Step>),
}

impl Play {
    /// Builds an answer whose end waits until the test opens the gate.
    pub fn gated(begins: &str, ends: &str) -> Self {
        let piece = |text: &str| {
            let message = json!({ "role": "assistant", "content": text });
            Step::Bytes(line(&json!({ "model": "qwen3:8b", "message": message, "done": false })))
        };
        let last = json!({ "model": "qwen3:8b", "message": { "role": "assistant", "content": "" }, "done": true,
                           "done_reason": "stop" });
        let last = Step::Bytes(line(&last));
        Self::Stream(vec![piece(begins), Step::Gate, piece(ends), last, Step::End])
    }
}

impl FakeOllama {
    pub async fn start() -> Self {
        Self::start_on(TcpListener::bind("127.0.0.1:0").await.unwrap())
    }

    /// Answers requests for summaries from now on.
    pub fn summarises(&self) {
        self.state.summarises.store(true, Ordering::Relaxed);
    }

    pub fn start_on(listener: TcpListener) -> Self {
        let addr = listener.local_addr().unwrap();
        let state = Arc::new(State::default());
        let server = tokio::spawn(serve(listener, Arc::clone(&state)));
        Self { addr, state, server }
    }

    pub async fn playing(plays: impl IntoIterator<Item = Play>) -> Self {
        let fake = Self::start().await;
        fake.state.plays.lock().unwrap().extend(plays);
        fake
    }

    /// Plays this at the next call.
    pub fn play(&self, play: Play) {
        self.state.plays.lock().unwrap().push_back(play);
    }

    /// Drops the plays that are left: the next calls get the usual answer.
    pub fn stop_playing(&self) {
        self.state.plays.lock().unwrap().clear();
    }

    /// Releases all answers that wait at a gate.
    pub fn open(&self) {
        self.state.transport.open();
    }

    pub fn client(&self) -> Ollama {
        Ollama::new(config(&format!("http://{}", self.addr))).unwrap()
    }

    pub fn chats(&self) -> Vec<Value> {
        self.state.chats.lock().unwrap().clone()
    }

    pub fn n_requests(&self, named: &str) -> usize {
        let requests = self.state.requests.lock().unwrap();
        requests.iter().filter(|request| *request == named).count()
    }

    /// Waits until `n` clients have disconnected.
    pub async fn wait_for_disconnects(&self, n: usize) {
        self.state.transport.wait_for_disconnects(n).await;
    }

    pub fn bodies(&self) -> Vec<Vec<u8>> {
        self.state.bodies.lock().unwrap().clone()
    }

    /// Waits until `n` chats have arrived.
    pub async fn wait_for_chats(&self, n: usize) {
        let asked = async {
            while self.state.chats.lock().unwrap().len() < n {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(DEADLINE, asked).await.expect("the chat arrives");
    }
}

impl Drop for FakeOllama {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Default for State {
    fn default() -> Self {
        Self {
            version: Mutex::new("0.33.1".to_owned()),
            shown: Mutex::new(json!({
                "details": { "family": "qwen3" },
                "model_info": { "general.architecture": "qwen3", "qwen3.context_length": 40_960 },
                "capabilities": ["completion", "tools", "thinking"],
            })),
            plays: Mutex::default(),
            chats: Mutex::default(),
            bodies: Mutex::default(),
            embeds: Mutex::default(),
            load: Notify::new(),
            embedded: Mutex::default(),
            requests: Mutex::default(),
            n_loads: AtomicUsize::default(),
            loaded: Mutex::default(),
            transport: Transport::default(),
            summarises: AtomicBool::default(),
        }
    }
}

pub fn config(base_url: &str) -> Config {
    serde_json::from_value(json!({
        "base_url": base_url,
        "num_ctx": 4096,
        "keep_alive_secs": 300,
        "connect_timeout_secs": 60,
        "first_byte_timeout_secs": 600,
        "idle_timeout_secs": 600,
        "total_timeout_secs": 900,
        "breaker_failures": 5,
        "breaker_open_secs": 600,
        "models": [],
    }))
    .unwrap()
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
    let (named, body) = http::read_request(&mut socket).await?;
    state.requests.lock().unwrap().push(named.clone());
    match named.as_str() {
        "GET /api/version" => {
            let version = json!({ "version": *state.version.lock().unwrap() });
            http::send_json(&mut socket, 200, &version).await
        }
        "POST /api/show" => {
            let shown = state.shown.lock().unwrap().clone();
            let status = if shown.get("error").is_some() { 404 } else { 200 };
            http::send_json(&mut socket, status, &shown).await
        }
        "POST /api/chat" => {
            state.bodies.lock().unwrap().push(body.to_vec());
            let body: Value = serde_json::from_slice(&body).unwrap();
            state.chats.lock().unwrap().push(body.clone());
            let play = state.plays.lock().unwrap().pop_front();
            chat(&mut socket, state, &body, play).await
        }
        "POST /api/embed" => {
            let body: Value = serde_json::from_slice(&body).unwrap();
            state.embedded.lock().unwrap().push(body.clone());
            embed(&mut socket, state, &body).await
        }
        _ => http::send(&mut socket, 404, "", "404 page not found").await,
    }
}

async fn embed(socket: &mut TcpStream, state: &State, body: &Value) -> std::io::Result<()> {
    let how = *state.embeds.lock().unwrap();
    let n_texts = body["input"].as_array().unwrap().len();
    match how {
        Embeds::Hangs => return state.transport.stall(socket).await,
        Embeds::Slow(most) if n_texts > most => return state.transport.stall(socket).await,
        Embeds::Missing => {
            let missing = json!({ "error": format!("model {} not found", body["model"]) });
            return http::send_json(socket, 404, &missing).await;
        }
        Embeds::Breaks => {
            let broken = json!({ "error": "llama runner process has terminated" });
            return http::send_json(socket, 500, &broken).await;
        }
        Embeds::Cold => tokio::select! {
            gone = state.transport.stall(socket) => return gone,
            () = state.load.notified() => *state.embeds.lock().unwrap() = Embeds::Well,
        },
        Embeds::Well | Embeds::Slow(_) => {}
    }
    match meaning::embed(body) {
        Ok(answer) => http::send_json(socket, 200, &answer).await,
        Err((status, words)) => http::send_json(socket, status, &words).await,
    }
}

async fn chat(
    socket: &mut TcpStream,
    state: &State,
    body: &Value,
    play: Option<Play>,
) -> std::io::Result<()> {
    if state.summarises.load(Ordering::Relaxed)
        && let Some(prompt) = body["messages"].as_array().and_then(|messages| messages.last())
        && let Some(summary) = summaries::honest(prompt["content"].as_str().unwrap_or_default())
    {
        return answer_prompt(socket, state, body, &[&summary], false).await;
    }
    let play = play.unwrap_or(Play::Says(&["A ", "good ", "answer."]));
    match play {
        Play::Status(status, headers, text) => http::send(socket, status, headers, text).await,
        Play::HangsUp => Ok(()),
        Play::NeverBegins => state.transport.stall(socket).await,
        Play::Stream(steps) => state.transport.stream(socket, steps).await,
        Play::Calls(calls) => match model::calls(body, &calls) {
            Err(refusal) => http::send_json(socket, 400, &refusal).await,
            Ok(lines) => {
                let steps = lines.into_iter().map(Step::Bytes).chain([Step::End]).collect();
                state.transport.stream(socket, steps).await
            }
        },
        Play::Says(pieces) => answer_prompt(socket, state, body, pieces, false).await,
        Play::IgnoresTruncate => answer_prompt(socket, state, body, &["Invented."], true).await,
    }
}

async fn answer_prompt(
    socket: &mut TcpStream,
    state: &State,
    body: &Value,
    pieces: &[&str],
    ignores_truncate: bool,
) -> std::io::Result<()> {
    let load = (body["options"]["num_ctx"].clone(), body["shift"].clone());
    if state.loaded.lock().unwrap().replace(load.clone()) != Some(load) {
        state.n_loads.fetch_add(1, Ordering::Relaxed);
    }
    match model::lines(body, pieces, ignores_truncate) {
        Err(refusal) => http::send_json(socket, 400, &refusal).await,
        Ok(lines) => {
            let mut steps: Vec<Step> = lines.into_iter().map(Step::Bytes).collect();
            steps.push(Step::End);
            state.transport.stream(socket, steps).await
        }
    }
}
