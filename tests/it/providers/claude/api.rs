//! A Messages API on loopback, with a tool server beside it.
//!
//! By default it answers `You said: <prompt> [<n> messages]`, like the scripted CLI. A [`Play`] replaces the next
//! answer.

use std::{
    collections::VecDeque,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use serde_json::{Value, json};
use tokio::{
    io::AsyncWriteExt as _,
    net::{TcpListener, TcpStream},
    sync::Notify,
    task::JoinHandle,
};

use crate::providers::{fake_ollama::http, summaries};

#[must_use]
pub struct Api {
    pub address: SocketAddr,
    state: Arc<State>,
    server: JoinHandle<()>,
}

#[derive(Default)]
struct State {
    plays: Mutex<VecDeque<Play>>,
    requests: Mutex<Vec<Value>>,
    counts: AtomicBool,
    summarises: AtomicBool,
}

/// The answer to one call.
#[derive(Debug, Clone)]
pub enum Play {
    /// These texts, one block each, and the stop reason.
    Says(Vec<String>, &'static str),
    /// A thinking block, then the default answer.
    Thinks(&'static str),
    /// Calls a tool.
    Calls(&'static str, Value),
    /// Status, headers, type and message of the error.
    Fails(u16, &'static str, &'static str, &'static str),
    /// Some words, then a broken connection: after a whole block, or within one.
    Breaks {
        within: bool,
    },
    /// Some words, then silence.
    Hangs,
    SaysAndHangs(String),
    /// This text, when the test releases it.
    Waits(Arc<Notify>, String),
    /// The default answer, with token counts as if there were only the last message.
    Forgets,
}

impl Api {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State::default());
        let shared = state.clone();
        let server = tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let state = shared.clone();
                // Tests include clients that disconnect.
                tokio::spawn(async move { serve(socket, &state).await.ok() });
            }
        });
        Self { address, state, server }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn plays(&self, plays: impl IntoIterator<Item = Play>) {
        self.state.plays.lock().unwrap().extend(plays);
    }

    /// Returns to default answers.
    pub fn stop_playing(&self) {
        self.state.plays.lock().unwrap().clear();
    }

    /// Counts the tokens of requests from now on, with four bytes per token, instead of a constant.
    pub fn counts(&self) {
        self.state.counts.store(true, Ordering::Relaxed);
    }

    /// Answers requests for summaries from now on.
    pub fn summarises(&self) {
        self.state.summarises.store(true, Ordering::Relaxed);
    }

    /// Returns the bodies of the calls, in order.
    pub fn requests(&self) -> Vec<Value> {
        self.state.requests.lock().unwrap().clone()
    }

    /// Returns the messages of the last call as `role: text`, with other content described in words.
    pub fn last_messages(&self) -> Vec<String> {
        self.last_messages_without("")
    }

    /// Like `last_messages`, for the last call without these words: a summary may be requested beside a turn.
    pub fn last_messages_without(&self, words_of_others: &str) -> Vec<String> {
        let is_meant = |request: &&Value| {
            words_of_others.is_empty() || !request.to_string().contains(words_of_others)
        };
        let requests = self.requests();
        let last = requests.iter().rfind(is_meant).expect("no matching request");
        let messages = last["messages"].as_array().unwrap();
        messages.iter().map(|m| format!("{}: {}", m["role"].as_str().unwrap(), words(m))).collect()
    }
}

impl Drop for Api {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn serve(mut socket: TcpStream, state: &State) -> std::io::Result<()> {
    let (named, body) = http::read_request(&mut socket).await?;
    match named.as_str() {
        "POST /v1/messages?beta=true" => messages(&mut socket, state, &body).await,
        "POST /mcp" => tools(&mut socket, &body).await,
        _ if named.starts_with("HEAD ") => http::send(&mut socket, 200, "", "").await,
        _ => http::send(&mut socket, 405, "", "").await,
    }
}

async fn messages(socket: &mut TcpStream, state: &State, body: &[u8]) -> std::io::Result<()> {
    let request: Value = serde_json::from_slice(body).unwrap();
    let usual = format!("You said: {} [{} messages]", prompt(&request), n_messages(&request));
    let summarises = state.summarises.load(Ordering::Relaxed);
    let summary = summarises.then(|| summaries::honest(&prompt(&request))).flatten();
    let usual = summary.unwrap_or(usual);
    state.requests.lock().unwrap().push(request.clone());
    let play = state.plays.lock().unwrap().pop_front();
    let text = |text: &str| json!({"type": "text", "text": text});
    let counted = match (state.counts.load(Ordering::Relaxed), &play) {
        (_, Some(Play::Forgets)) => 25,
        (true, _) => request.to_string().len() / 4,
        (false, _) => 25,
    };
    if let Some(Play::Waits(until, _)) = &play {
        until.notified().await;
    }
    let (blocks, stop) = match play {
        None | Some(Play::Forgets) => (vec![text(&usual)], "end_turn"),
        Some(Play::Thinks(thought)) => {
            (vec![json!({"type": "thinking", "thinking": thought}), text(&usual)], "end_turn")
        }
        Some(Play::Waits(_, words)) => (vec![text(&words)], "end_turn"),
        Some(Play::Says(texts, stop)) => (texts.iter().map(|t| text(t)).collect(), stop),
        Some(Play::Calls(tool, input)) => {
            let id = format!("toolu_{}", n_messages(&request));
            let call = json!({"type": "tool_use", "id": id, "name": tool, "input": input});
            (vec![text("I look."), call], "tool_use")
        }
        Some(Play::Fails(status, headers, kind, message)) => {
            let body = json!({"type": "error", "error": {"type": kind, "message": message}});
            let headers = format!("content-type: application/json\r\n{headers}");
            return http::send(socket, status, &headers, &body.to_string()).await;
        }
        Some(Play::Breaks { within: true }) => {
            begin(socket, &request, counted).await?;
            return open_block(socket, 0, &text("Only a part")).await;
        }
        Some(play @ (Play::Breaks { .. } | Play::Hangs | Play::SaysAndHangs(_))) => {
            begin(socket, &request, counted).await?;
            let words = if let Play::SaysAndHangs(words) = &play { words } else { "Only a part" };
            block(socket, 0, &text(words)).await?;
            if !matches!(play, Play::Breaks { .. }) {
                http::closed_by_client(socket).await;
            }
            return Ok(());
        }
    };
    if request["stream"] != json!(true) {
        let whole = json!({"id": message_id(), "type": "message", "role": "assistant", "model": request["model"],
            "content": blocks, "stop_reason": stop, "stop_sequence": null, "usage": usage(counted, 11)});
        return http::send_json(socket, 200, &whole).await;
    }
    begin(socket, &request, counted).await?;
    for (at, one) in blocks.iter().enumerate() {
        block(socket, at, one).await?;
    }
    let delta = json!({"delta": {"stop_reason": stop, "stop_sequence": null}, "usage": {"output_tokens": 11}});
    event(socket, "message_delta", &delta).await?;
    event(socket, "message_stop", &json!({})).await
}

async fn begin(socket: &mut TcpStream, request: &Value, counted: usize) -> std::io::Result<()> {
    http::send_head(socket, 200, "content-type: text/event-stream\r\n").await?;
    let message = json!({"id": message_id(), "type": "message", "role": "assistant",
        "model": request["model"], "content": [], "stop_reason": null, "stop_sequence": null, "usage": usage(counted, 1)});
    event(socket, "message_start", &json!({ "message": message })).await
}

async fn block(socket: &mut TcpStream, index: usize, block: &Value) -> std::io::Result<()> {
    open_block(socket, index, block).await?;
    event(socket, "content_block_stop", &json!({ "index": index })).await
}

/// Sends a block without its end.
async fn open_block(socket: &mut TcpStream, index: usize, block: &Value) -> std::io::Result<()> {
    let (empty, delta) = match block["type"].as_str().unwrap() {
        "text" => (
            json!({"type": "text", "text": ""}),
            json!({"type": "text_delta", "text": block["text"]}),
        ),
        "thinking" => (
            json!({"type": "thinking", "thinking": "", "signature": ""}),
            json!({"type": "thinking_delta", "thinking": block["thinking"]}),
        ),
        _ => (
            json!({"type": "tool_use", "id": block["id"], "name": block["name"], "input": {}}),
            json!({"type": "input_json_delta", "partial_json": block["input"].to_string()}),
        ),
    };
    event(socket, "content_block_start", &json!({"index": index, "content_block": empty})).await?;
    event(socket, "content_block_delta", &json!({"index": index, "delta": delta})).await?;
    if block["type"] == "thinking" {
        let signature = json!({"type": "signature_delta", "signature": "c2lnbmVk"});
        event(socket, "content_block_delta", &json!({"index": index, "delta": signature})).await?;
    }
    Ok(())
}

async fn event(socket: &mut TcpStream, kind: &str, data: &Value) -> std::io::Result<()> {
    let mut data = data.clone();
    data["type"] = json!(kind);
    socket.write_all(format!("event: {kind}\ndata: {data}\n\n").as_bytes()).await
}

fn message_id() -> String {
    format!("msg_{}", uuid::Uuid::new_v4().simple())
}

fn usage(input: usize, output: u64) -> Value {
    json!({"input_tokens": input, "cache_creation_input_tokens": 3, "cache_read_input_tokens": 7, "output_tokens": output})
}

/// Returns the last user text, without the CLI's additions before it.
fn prompt(request: &Value) -> String {
    let last = request["messages"].as_array().and_then(|messages| messages.last());
    let blocks = last.map(|last| last["content"].clone()).unwrap_or_default();
    match &blocks {
        Value::String(text) => text.trim().to_owned(),
        blocks => {
            let last = blocks.as_array().and_then(|blocks| blocks.last());
            last.map(block_words).unwrap_or_default().trim().to_owned()
        }
    }
}

/// Counts the messages except those of the role `system`, which some models get between the others.
fn n_messages(request: &Value) -> usize {
    let messages = request["messages"].as_array().unwrap();
    messages.iter().filter(|message| message["role"] != "system").count()
}

fn words(message: &Value) -> String {
    match &message["content"] {
        Value::String(text) => text.clone(),
        blocks => {
            let words = blocks.as_array().unwrap().iter().map(block_words);
            let words = words.filter(|words| !words.starts_with("<system-reminder>"));
            words.collect::<Vec<_>>().join(" | ")
        }
    }
}

fn block_words(block: &Value) -> String {
    match block["type"].as_str() {
        Some("text") => block["text"].as_str().unwrap().to_owned(),
        Some("tool_use") => format!("call {} {}", block["name"].as_str().unwrap(), block["input"]),
        Some("tool_result") => match &block["content"] {
            Value::String(text) => format!("result {text}"),
            blocks => format!("result {}", blocks[0]["text"].as_str().unwrap_or_default()),
        },
        kind => kind.unwrap_or_default().to_owned(),
    }
}

/// Serves one tool, `add`, over MCP.
async fn tools(socket: &mut TcpStream, body: &[u8]) -> std::io::Result<()> {
    let call: Value = serde_json::from_slice(body).unwrap();
    let result = match call["method"].as_str().unwrap_or_default() {
        "initialize" => json!({"protocolVersion": call["params"]["protocolVersion"],
            "capabilities": {"tools": {}}, "serverInfo": {"name": "sums", "version": "1"}}),
        "tools/list" => json!({"tools": [{"name": "add", "description": "Adds.",
            "inputSchema": {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}}}]}),
        "tools/call" => {
            let of = |name: &str| call["params"]["arguments"][name].as_i64().unwrap_or_default();
            json!({"content": [{"type": "text", "text": format!("the sum is {}", of("a") + of("b"))}]})
        }
        _ if call["id"].is_null() => return http::send(socket, 202, "", "").await,
        _ => json!({}),
    };
    http::send_json(socket, 200, &json!({"jsonrpc": "2.0", "id": call["id"], "result": result}))
        .await
}
