//! Scripted servers of providers, on loopback. Each answers with the facts that the messages of a call contain, so a fact that is lost on
//! the way is missing in the answer.
//!
//! They write to the socket themselves: some failures are none that an HTTP library sends.

use std::{
    io,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

use super::{
    dialects::Dialect,
    script::{ModelScript, PREFIX},
};
use crate::providers::sim::words_with_prefix;

/// Longest request that is read.
const MAX_REQUEST_BYTES: usize = 16 << 20;
const HTML: &str = "<!DOCTYPE html>\n<html><body>Bad gateway</body></html>\n";

/// A server of one provider.
#[derive(Debug)]
#[must_use]
pub(super) struct ScriptedServer {
    pub(super) model: ModelScript,
    pub(super) base_url: String,
    state: Arc<State>,
    task: JoinHandle<()>,
}

#[derive(Debug)]
struct State {
    dialect: Dialect,
    model: &'static str,
    /// Facts, each of which fails the next call that contains it.
    failing: Mutex<Vec<String>>,
    n_answered: AtomicUsize,
    n_failed: AtomicUsize,
}

/// Calls that a server has received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CallCounts {
    pub(super) answered: usize,
    pub(super) failed: usize,
}

/// Failure of a call.
#[derive(Debug, Clone, Copy)]
pub(super) enum Failure {
    Status,
    HangsUp,
    Html,
    BreaksOff,
}

struct Request {
    /// `POST /api/chat`, without the query.
    name: String,
    body: Value,
}

impl ScriptedServer {
    /// Serves a model on a free port of loopback.
    pub(super) async fn start(model: ModelScript, dialect: Dialect) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let base_url = format!("http://{}", listener.local_addr()?);
        let state = Arc::new(State {
            dialect,
            model: model.model,
            failing: Mutex::default(),
            n_answered: AtomicUsize::default(),
            n_failed: AtomicUsize::default(),
        });
        let task = tokio::spawn(serve(listener, Arc::clone(&state)));
        Ok(Self { model, base_url, state, task })
    }

    /// Fails the next call that contains a fact.
    pub(super) fn fail_call_with(&self, fact: String) {
        self.state.failing.lock().unwrap_or_else(PoisonError::into_inner).push(fact);
    }

    pub(super) fn counts(&self) -> CallCounts {
        CallCounts {
            answered: self.state.n_answered.load(Ordering::Relaxed),
            failed: self.state.n_failed.load(Ordering::Relaxed),
        }
    }
}

impl Drop for ScriptedServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl State {
    /// Returns true for the one call that has to fail because of a fact in it.
    fn has_to_fail(&self, messages: &str) -> bool {
        let mut failing = self.failing.lock().unwrap_or_else(PoisonError::into_inner);
        let found = failing.iter().position(|fact| messages.contains(fact.as_str()));
        found.map(|at| failing.swap_remove(at)).is_some()
    }
}

async fn serve(listener: TcpListener, state: Arc<State>) {
    while let Ok((socket, _)) = listener.accept().await {
        let state = Arc::clone(&state);
        // A client that disconnects is not an error of the server.
        tokio::spawn(async move { answer(socket, &state).await.ok() });
    }
}

async fn answer(mut socket: TcpStream, state: &State) -> io::Result<()> {
    let request = read_request(&mut socket).await?;
    if request.name.starts_with("HEAD ") {
        return send(&mut socket, 200, "text/plain", "").await;
    }
    if request.name != state.dialect.call() {
        let (status, body) = state.dialect.answer_side_request(&request.name, state.model);
        return send(&mut socket, status, "application/json", &body.to_string()).await;
    }
    let messages = request.body["messages"].to_string();
    if state.has_to_fail(&messages) {
        state.n_failed.fetch_add(1, Ordering::Relaxed);
        return fail(&mut socket, state.dialect).await;
    }
    state.n_answered.fetch_add(1, Ordering::Relaxed);
    let mut texts = Vec::new();
    collect_texts(&request.body["messages"], &mut texts);
    let facts = words_with_prefix(texts.into_iter(), PREFIX);
    let text = format!("My log has {}: {}.", facts.len(), facts.join(", "));
    // About four bytes a token, as the estimates of calls assume.
    let n_tokens = request.body.to_string().len() / 4;
    let (kind, body) = state.dialect.reply(&request.body, &text, n_tokens);
    send(&mut socket, 200, kind, &body).await
}

/// Collects the texts of a JSON value, in order.
fn collect_texts<'a>(value: &'a Value, texts: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => texts.push(text),
        Value::Array(items) => items.iter().for_each(|item| collect_texts(item, texts)),
        Value::Object(fields) => fields.values().for_each(|field| collect_texts(field, texts)),
        _ => {}
    }
}

async fn fail(socket: &mut TcpStream, dialect: Dialect) -> io::Result<()> {
    match dialect.failure() {
        Failure::Status => {
            let error = json!({ "type": "api_error", "message": "the script says so" });
            let body = json!({ "type": "error", "error": error }).to_string();
            send(socket, 500, "application/json", &body).await
        }
        Failure::HangsUp => Ok(()),
        Failure::Html => send(socket, 502, "text/html", HTML).await,
        Failure::BreaksOff => {
            send(socket, 200, "text/event-stream", &dialect.beginning_of_reply()).await
        }
    }
}

/// Sends a response whose end is the end of the connection.
async fn send(socket: &mut TcpStream, status: u16, kind: &str, body: &str) -> io::Result<()> {
    let head =
        format!("HTTP/1.1 {status} Scripted\r\nconnection: close\r\ncontent-type: {kind}\r\n\r\n");
    socket.write_all(head.as_bytes()).await?;
    socket.write_all(body.as_bytes()).await?;
    socket.shutdown().await
}

async fn read_request(socket: &mut TcpStream) -> io::Result<Request> {
    let mut bytes = Vec::new();
    let head_end = loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        read_more(socket, &mut bytes).await?;
    };
    let head = String::from_utf8_lossy(&bytes[..head_end]).into_owned();
    let name = head.split([' ', '?']).take(2).collect::<Vec<_>>().join(" ");
    let headers = head.lines().filter_map(|line| line.split_once(": "));
    let length = headers
        .filter(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .find_map(|(_, length)| length.parse::<usize>().ok())
        .unwrap_or(0);
    while bytes.len() < head_end + length {
        read_more(socket, &mut bytes).await?;
    }
    let body = serde_json::from_slice(&bytes[head_end..]).unwrap_or_default();
    Ok(Request { name, body })
}

async fn read_more(socket: &mut TcpStream, bytes: &mut Vec<u8>) -> io::Result<()> {
    match bytes.len() > MAX_REQUEST_BYTES || socket.read_buf(bytes).await? == 0 {
        true => Err(io::ErrorKind::UnexpectedEof.into()),
        false => Ok(()),
    }
}
