//! The batches of a scripted server with the Messages API.

use std::sync::Mutex;

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use crate::app::noon;

/// The batches of a server, in the order in which they were created.
#[derive(Default)]
pub struct BatchList {
    batches: Mutex<Vec<FakeBatch>>,
    /// Number of replies to sendings that are lost.
    n_lost: Mutex<usize>,
    /// Time of creation of the next batches. `None`: noon of the tests.
    created_at: Mutex<Option<DateTime<Utc>>>,
    /// True if the list always has another page.
    is_endless: Mutex<bool>,
}

#[derive(Debug, Clone)]
pub struct FakeBatch {
    pub id: String,
    pub call_id: String,
    /// The request of the call.
    pub call: Value,
    /// The request as it came, byte for byte.
    pub body: Vec<u8>,
    pub is_cancelled: bool,
    created_at: DateTime<Utc>,
    /// Set at its end.
    result: Option<Value>,
}

/// The reply to a request about batches.
pub enum BatchReply {
    Json(u16, Value),
    /// The connection is closed without a reply.
    Lost,
}

/// Result of a batch whose line has another form.
pub const UNREADABLE: &str = "unreadable";
const PATH: &str = "/v1/messages/batches";

impl BatchList {
    /// Answers a request about batches. `None`: it is about something else.
    pub fn answer(&self, request: &str, body: &[u8]) -> Option<BatchReply> {
        let (method, path) = request.split_once(' ')?;
        let rest = path.strip_prefix(PATH)?;
        let mut batches = self.batches.lock().unwrap();
        let find = |batches: &mut Vec<FakeBatch>, id: &str| {
            batches.iter().position(|batch| batch.id == id)
        };
        let missing = || {
            let error = json!({ "type": "not_found_error", "message": "Not Found" });
            BatchReply::Json(404, json!({ "type": "error", "error": error }))
        };
        let parts: Vec<&str> = rest.split('/').collect();
        Some(match (method, parts.as_slice()) {
            ("POST", [""]) => {
                let sent: Value = serde_json::from_slice(body).unwrap();
                let requests = sent["requests"].as_array().unwrap();
                assert_eq!(requests.len(), 1);
                assert_eq!(requests[0]["params"].get("stream"), None);
                let batch = FakeBatch {
                    id: format!("msgbatch_{}", batches.len() + 1),
                    call_id: requests[0]["custom_id"].as_str().unwrap().to_owned(),
                    call: requests[0]["params"].clone(),
                    body: body.to_vec(),
                    is_cancelled: false,
                    created_at: self.created_at.lock().unwrap().unwrap_or_else(noon),
                    result: None,
                };
                batches.push(batch.clone());
                let mut n_lost = self.n_lost.lock().unwrap();
                if *n_lost > 0 {
                    *n_lost -= 1;
                    return Some(BatchReply::Lost);
                }
                BatchReply::Json(200, batch.to_json())
            }
            ("GET", [query]) if query.starts_with('?') => {
                let all: Vec<Value> = batches.iter().rev().map(FakeBatch::to_json).collect();
                BatchReply::Json(
                    200,
                    json!({ "data": all, "has_more": *self.is_endless.lock().unwrap() }),
                )
            }
            ("GET", ["", id]) => match find(&mut batches, id) {
                Some(at) => BatchReply::Json(200, batches[at].to_json()),
                None => missing(),
            },
            ("GET", ["", id, "results"]) => match find(&mut batches, id) {
                Some(at) if batches[at].result == Some(Value::String(UNREADABLE.to_owned())) => {
                    BatchReply::Json(200, json!(UNREADABLE))
                }
                Some(at) => {
                    let FakeBatch { call_id, result, .. } = &batches[at];
                    let line = json!({ "custom_id": call_id, "result": result });
                    BatchReply::Json(200, line)
                }
                None => missing(),
            },
            ("POST", ["", id, "cancel"]) => match find(&mut batches, id) {
                Some(at) => {
                    batches[at].is_cancelled = true;
                    BatchReply::Json(200, batches[at].to_json())
                }
                None => missing(),
            },
            _ => missing(),
        })
    }

    pub fn all(&self) -> Vec<FakeBatch> {
        self.batches.lock().unwrap().clone()
    }

    /// Ends the batch at this place with a result.
    pub fn end(&self, at: usize, result: Value) {
        self.batches.lock().unwrap()[at].result = Some(result);
    }

    /// Sets the time of creation of all batches, and of the next ones.
    pub fn set_created_at(&self, at: DateTime<Utc>) {
        for batch in &mut *self.batches.lock().unwrap() {
            batch.created_at = at;
        }
        *self.created_at.lock().unwrap() = Some(at);
    }

    /// Answers each request for a page of the list with a page that is not the last one.
    pub fn hide_end_of_list(&self) {
        *self.is_endless.lock().unwrap() = true;
    }

    /// Stores the next batch and loses the reply.
    pub fn lose_next_reply(&self) {
        *self.n_lost.lock().unwrap() += 1;
    }
}

impl FakeBatch {
    fn to_json(&self) -> Value {
        let status = match (&self.result, self.is_cancelled) {
            (Some(_), _) => "ended",
            (None, true) => "canceling",
            (None, false) => "in_progress",
        };
        let n_open = usize::from(self.result.is_none());
        json!({
            "id": self.id, "type": "message_batch", "processing_status": status,
            "request_counts": { "processing": n_open, "succeeded": 1 - n_open, "errored": 0, "canceled": 0, "expired": 0 },
            "created_at": self.created_at, "archived_at": null,
        })
    }
}

/// Returns the result of a request that was answered with these blocks and counts.
pub fn succeeded(content: &[Value], usage: &Value) -> Value {
    let calls = content.iter().any(|block| block["type"] == "tool_use");
    let reason = if calls { "tool_use" } else { "end_turn" };
    let message = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": content,
        "stop_reason": reason, "stop_sequence": null, "usage": usage,
    });
    json!({ "type": "succeeded", "message": message })
}

/// Returns the result of a request that failed with this error.
pub fn errored(kind: &str, message: &str) -> Value {
    let error = json!({ "type": kind, "message": message });
    json!({ "type": "errored", "error": { "type": "error", "error": error } })
}
