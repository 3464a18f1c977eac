//! Lines that are sent to the CLI.

use serde_json::json;
use uuid::Uuid;

/// Id of the request for the servers, which its answer repeats.
pub(super) const SERVERS: &str = "servers";

/// Builds the line with the prompt. `name` has to be new: the CLI silently drops a message whose id it knows.
pub(super) fn prompt_line(prompt: &str, name: Uuid) -> Vec<u8> {
    line(&json!({
        "type": "user", "uuid": name, "message": {"role": "user", "content": prompt},
    }))
}

/// Asks which tool servers are connected. The CLI answers when it has connected to all of them, or given up.
pub(super) fn servers_request() -> Vec<u8> {
    line(&json!({
        "type": "control_request", "request_id": SERVERS, "request": {"subtype": "mcp_status"},
    }))
}

/// Asks the CLI to interrupt the turn.
pub(super) fn interrupt_request() -> Vec<u8> {
    line(&json!({
        "type": "control_request", "request_id": "interrupt", "request": {"subtype": "interrupt"},
    }))
}

fn line(value: &serde_json::Value) -> Vec<u8> {
    let mut line = value.to_string().into_bytes();
    line.push(b'\n');
    line
}
