//! The lines that the CLI is sent.

use serde_json::json;
use uuid::Uuid;

/// What the answer about servers is known by.
pub(super) const SERVERS: &str = "servers";

/// The prompt. The name has to be new: the CLI drops a message whose name it knows, without a word and for ever.
pub(super) fn user(prompt: &str, name: Uuid) -> Vec<u8> {
    line(&json!({
        "type": "user", "uuid": name, "message": {"role": "user", "content": prompt},
    }))
}

/// Asks which servers of tools are there. The CLI answers when it has connected to all, or given up.
pub(super) fn servers() -> Vec<u8> {
    line(&json!({
        "type": "control_request", "request_id": SERVERS, "request": {"subtype": "mcp_status"},
    }))
}

/// Asks for the end of the turn.
pub(super) fn interrupt() -> Vec<u8> {
    line(&json!({
        "type": "control_request", "request_id": "interrupt", "request": {"subtype": "interrupt"},
    }))
}

fn line(value: &serde_json::Value) -> Vec<u8> {
    let mut line = value.to_string().into_bytes();
    line.push(b'\n');
    line
}
