//! A fake Ollama server whose model calls a tool for some rounds and then answers, without delay.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

use axum::{
    Json, Router,
    extract::State,
    routing::{get, post},
};
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinHandle};

pub struct Model {
    pub address: SocketAddr,
    shared: Arc<ServerState>,
    server: JoinHandle<()>,
}

#[derive(Default)]
struct ServerState {
    n_rounds: AtomicUsize,
    /// Duration of each call.
    millis: Mutex<Vec<f64>>,
}

impl Model {
    pub async fn start() -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let (address, shared) = (listener.local_addr()?, Arc::new(ServerState::default()));
        let shown = json!({
            "details": { "family": "qwen3" },
            "model_info": { "general.architecture": "qwen3", "qwen3.context_length": 40_960 },
            "capabilities": ["completion", "tools"],
        });
        let router = Router::new()
            .route("/api/version", get(async || Json(json!({ "version": "0.33.1" }))))
            .route("/api/show", post(async move || Json(shown)))
            .route("/api/chat", post(chat))
            .with_state(Arc::clone(&shared));
        let server = tokio::spawn(async move { drop(axum::serve(listener, router).await) });
        Ok(Self { address, shared, server })
    }

    /// Sets the number of tool calls before the answer.
    pub fn rounds(&self, n_rounds: usize) {
        self.shared.n_rounds.store(n_rounds, Ordering::Relaxed);
    }

    /// Returns the number of calls since the last time, and their total duration.
    pub fn take_millis(&self) -> (usize, f64) {
        let millis =
            std::mem::take(&mut *self.shared.millis.lock().unwrap_or_else(PoisonError::into_inner));
        (millis.len(), millis.iter().sum())
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn chat(State(shared): State<Arc<ServerState>>, Json(body): Json<Value>) -> String {
    let began = Instant::now();
    let messages = body["messages"].as_array().map_or(&[][..], Vec::as_slice);
    let n_results = messages.iter().filter(|message| message["role"] == "tool").count();
    let message = match n_results < shared.n_rounds.load(Ordering::Relaxed) {
        true => {
            let arguments = json!({ "text": format!("Part {n_results} is done.") });
            let function = json!({ "name": "board_post", "arguments": arguments });
            let id = format!("call_{n_results}");
            json!({ "role": "assistant", "content": "", "tool_calls": [{ "id": id, "function": function }] })
        }
        false => json!({ "role": "assistant", "content": "All parts are done." }),
    };
    // As many tokens as an English text of this length has, so that the prompt does not look truncated.
    let n_prompt = (body["messages"].to_string().len() + body["tools"].to_string().len()) / 4;
    let said = json!({ "model": body["model"], "message": message, "done": false });
    let end = json!({
        "model": body["model"], "message": { "role": "assistant", "content": "" }, "done": true, "done_reason": "stop",
        "prompt_eval_count": n_prompt, "eval_count": 20,
    });
    let answer = format!("{said}\n{end}\n");
    let took = began.elapsed().as_secs_f64() * 1e3;
    shared.millis.lock().unwrap_or_else(PoisonError::into_inner).push(took);
    answer
}
