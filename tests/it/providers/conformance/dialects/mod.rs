//! The servers of the suite: each puts the same answers, refusals and faults into its own format.

mod anthropic;
mod ollama;
mod openai;

use dalsegno::providers::Provider;
use serde_json::Value;

pub use self::{
    anthropic::{Anthropic, COUNT, count_with_cache},
    ollama::Ollama,
    openai::OpenAi,
};

/// The format of a server.
pub trait Dialect: Sync {
    /// Name of the provider in the document.
    fn name(&self) -> &'static str;

    /// First part of the codes of errors.
    fn codes(&self) -> &'static str;

    /// The request that is a call, such as `POST /api/chat`.
    fn chat(&self) -> &'static str;

    /// The request for facts about models, such as `POST /api/show`.
    fn description(&self) -> &'static str;

    /// Builds a provider with a window of 4096 tokens that calls this address.
    fn provider(&self, base_url: &str) -> Box<dyn Provider>;

    /// Returns status and body for a request other than a call. `sent` is the body of the request.
    fn side(&self, request: &str, sent: &[u8]) -> (u16, Value);

    /// Returns the events of an answer, in order.
    fn events(&self, answer: &Answer) -> Vec<Vec<u8>>;

    /// Returns an error in the middle of a stream.
    fn error_event(&self, message: &str) -> Vec<u8>;

    /// Returns an event that cannot be parsed.
    fn malformed_event(&self, data: &[u8]) -> Vec<u8>;

    /// Returns the body of a refusal.
    fn refusal(&self, message: &str) -> String;

    /// Returns the words of servers for a prompt that is too long: status and body.
    fn overflows(&self) -> Vec<(u16, String)>;

    fn missing_model(&self) -> (u16, String);

    fn no_tools(&self) -> (u16, String);

    /// Returns an answer that ends because a filter refused it.
    fn filter(&self, events: &str) -> String {
        events.replace("\"stop\"", "\"content_filter\"")
    }

    /// Returns the counts of an honest server for the last of these calls, in neutral fields.
    fn count(&self, calls: &[Value]) -> Value {
        let last = calls.last().expect("a call");
        serde_json::json!({ "prompt": crate::providers::fake_ollama::count_prompt(last) })
    }

    /// Returns the header with the key, in small letters.
    fn key_header(&self) -> &'static str {
        "authorization: bearer sk-secret-of-test"
    }

    /// Returns the tokens that a server takes out of its cache.
    fn caches(&self, answer: Answer, cached: u64) -> Answer;

    /// Reads the messages of a request.
    fn messages(&self, body: &Value) -> Vec<SentMessage>;

    /// Reads the options of a request: temperature, top_p, seed, stop, schema, limit.
    fn options(&self, body: &Value) -> Value;

    /// Lists the behaviours that its servers cannot show, with the reason.
    fn lacks(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }
}

/// A message of a request, without the format of its server.
#[derive(Debug, Clone, PartialEq)]
pub struct SentMessage {
    pub role: String,
    pub content: String,
    /// Id, tool and arguments.
    pub calls: Vec<(String, String, Value)>,
    /// Id of the call whose result it is.
    pub result_of: Option<String>,
}

/// An answer of a model.
#[derive(Debug, Clone, Default)]
pub struct Answer {
    pub thinking: Vec<String>,
    pub pieces: Vec<String>,
    pub calls: Vec<Call>,
    pub is_cut: bool,
    /// Fields of the counts; null leaves them out.
    pub counts: Value,
}

#[derive(Debug, Clone)]
pub struct Call {
    pub id: Option<String>,
    pub name: String,
    pub arguments: Value,
}

impl Answer {
    pub fn of(pieces: &[&str]) -> Self {
        let pieces = pieces.iter().map(|piece| (*piece).to_owned()).collect();
        Self { pieces, counts: counts(20, 3), ..Self::default() }
    }

    pub fn thinks(mut self, thinking: &[&str]) -> Self {
        self.thinking = thinking.iter().map(|piece| (*piece).to_owned()).collect();
        self
    }

    pub fn calls(mut self, id: Option<&str>, name: &str, arguments: Value) -> Self {
        let id = id.map(str::to_owned);
        self.calls.push(Call { id, name: name.to_owned(), arguments });
        self
    }

    pub fn counts(mut self, prompt: impl Into<Value>, answer: impl Into<Value>) -> Self {
        self.counts = counts(prompt, answer);
        self
    }

    pub fn uncounted(mut self) -> Self {
        self.counts = Value::Null;
        self
    }

    pub fn cut(mut self) -> Self {
        self.is_cut = true;
        self
    }
}

/// Returns counts in neutral fields.
fn counts(prompt: impl Into<Value>, answer: impl Into<Value>) -> Value {
    serde_json::json!({ "prompt": prompt.into(), "answer": answer.into() })
}
