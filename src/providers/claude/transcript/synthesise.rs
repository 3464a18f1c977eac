//! Writes a transcript for the CLI from the stored messages.
//!
//! Measured: a line needs its type, a timestamp, and its place in the chain of uuids. An assistant line also needs a model, or the CLI
//! hangs at its start, and blocks for its content. Replies need ids of their own, or the CLI merges those on both sides of a result. The
//! CLI itself merges neighbours of one role and drops empty messages.

use std::{borrow::Borrow, collections::HashSet};

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use serde_json::{Value, json};
use uuid::Uuid;

use super::chain::chain_to_line;
use crate::{
    providers::history::{NO_RESULT, argument_object},
    transcript::{Message, Role, ToolCall},
};

/// A file that the CLI can resume, and the message to resume it at.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::providers::claude) struct SynthesisedTranscript {
    pub bytes: Vec<u8>,
    pub head: Uuid,
}

/// Writes the messages as a transcript. `None` if they hold nothing that can be resumed.
pub(in crate::providers::claude) fn synthesise<M: Borrow<Message>>(
    messages: &[M],
    model: &str,
    began: DateTime<Utc>,
) -> Option<SynthesisedTranscript> {
    let mut file = File { model, bytes: Vec::new(), head: None, at: began, n_replies: 0 };
    let mut rest = messages;
    while let Some((message, after)) = rest.split_first() {
        rest = after;
        let message: &Message = message.borrow();
        match message.role {
            // The file has no place for a second system message, so its text becomes the user's.
            Role::User | Role::Notice | Role::Posts | Role::System => {
                file.user(&json!(message.text), &message.text)
            }
            Role::Assistant => {
                let n_results =
                    after.iter().take_while(|next| (*next).borrow().role == Role::Tool).count();
                file.reply(message, &after[..n_results]);
                rest = &after[n_results..];
            }
            // A result without its call is left out: the API refuses half a pair in every later call.
            Role::Tool => {}
        }
    }
    Some(SynthesisedTranscript { head: file.head?, bytes: file.bytes })
}

/// Returns the messages of such a transcript, as they read there: without what the API does not accept.
pub(in crate::providers::claude) fn synthesised_messages<M: Borrow<Message>>(
    messages: &[M],
) -> Vec<Message> {
    let Some(file) = synthesise(messages, "", DateTime::UNIX_EPOCH) else { return Vec::new() };
    let chain = chain_to_line(&file.bytes, file.head);
    chain.entries.into_iter().map(|entry| entry.message).collect()
}

struct File<'a> {
    model: &'a str,
    bytes: Vec<u8>,
    head: Option<Uuid>,
    /// Time of the next line. Each line has its own, because a reader may sort by it.
    at: DateTime<Utc>,
    n_replies: usize,
}

impl File<'_> {
    /// Adds an assistant's message and the results that follow it, in the order of its calls.
    fn reply<M: Borrow<Message>>(&mut self, message: &Message, results: &[M]) {
        let calls = usable(&message.tool_calls);
        let text = Some(&message.text).filter(|text| !text.trim().is_empty());
        let text = text.map(|text| json!({"type": "text", "text": text}));
        let blocks: Vec<Value> =
            text.into_iter().chain(calls.iter().map(|call| tool_use(call))).collect();
        if blocks.is_empty() {
            return;
        }
        self.n_replies += 1;
        let id = format!("msg_restored_{}", self.n_replies);
        let reply = json!({
            "id": id, "type": "message", "role": "assistant", "model": self.model, "content": blocks,
            "stop_reason": if calls.is_empty() { "end_turn" } else { "tool_use" }, "stop_sequence": null,
            "usage": {"input_tokens": 0, "output_tokens": 0},
        });
        self.line("assistant", &reply);
        if !calls.is_empty() {
            let results: Vec<Value> = calls.iter().map(|call| tool_result(call, results)).collect();
            self.line("user", &json!({"role": "user", "content": results}));
        }
    }

    fn user(&mut self, content: &Value, text: &str) {
        if !text.trim().is_empty() {
            self.line("user", &json!({"role": "user", "content": content}));
        }
    }

    fn line(&mut self, kind: &str, message: &Value) {
        let uuid = Uuid::new_v4();
        let line = json!({
            "parentUuid": self.head, "isSidechain": false, "type": kind, "uuid": uuid,
            "timestamp": self.at.to_rfc3339_opts(SecondsFormat::Millis, true), "message": message,
        });
        self.bytes.extend_from_slice(line.to_string().as_bytes());
        self.bytes.push(b'\n');
        self.head = Some(uuid);
        self.at += TimeDelta::milliseconds(1);
    }
}

/// Returns the calls with an id of their own: the API refuses the same id twice.
fn usable(calls: &[ToolCall]) -> Vec<&ToolCall> {
    let mut seen = HashSet::new();
    calls.iter().filter(|call| !call.id.is_empty() && seen.insert(call.id.as_str())).collect()
}

fn tool_use(call: &ToolCall) -> Value {
    let input = argument_object(call);
    json!({"type": "tool_use", "id": safe_id(&call.id), "name": safe_name(&call.name), "input": input})
}

fn tool_result<M: Borrow<Message>>(call: &ToolCall, results: &[M]) -> Value {
    let mut results = results.iter().map(|result| -> &Message { result.borrow() });
    let result = results.find(|r| r.tool_call_id.as_deref() == Some(call.id.as_str()));
    let text = result.map_or(NO_RESULT, |result| &result.text);
    json!({"type": "tool_result", "tool_use_id": safe_id(&call.id), "content": text})
}

/// Returns an id that the API accepts: letters, digits, `_` and `-`. Ids of other providers may have any characters.
fn safe_id(id: &str) -> String {
    id.chars().map(|c| if is_safe(c) { c } else { '_' }).collect()
}

/// Returns a name that the API accepts. Names also have a maximum length.
fn safe_name(name: &str) -> String {
    const MAX: usize = 128;
    let name: String = name.chars().take(MAX).map(|c| if is_safe(c) { c } else { '_' }).collect();
    if name.is_empty() { "tool".to_owned() } else { name }
}

fn is_safe(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(ids: &[&str]) -> Message {
        let call = |id: &&str| ToolCall {
            id: (*id).to_owned(),
            name: "look up".to_owned(),
            arguments: Value::Null,
            thinking: None,
        };
        Message { tool_calls: ids.iter().map(call).collect(), ..Message::new(Role::Assistant, "") }
    }

    fn result(id: &str) -> Message {
        let text = format!("result of {id}");
        Message { tool_call_id: Some(id.to_owned()), ..Message::new(Role::Tool, &text) }
    }

    fn lines(messages: &[Message]) -> Vec<Value> {
        let Some(file) = synthesise(messages, "claude-sonnet-5", DateTime::UNIX_EPOCH) else {
            return Vec::new();
        };
        let text = String::from_utf8(file.bytes).unwrap();
        let lines: Vec<Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let mut parent = Value::Null;
        for line in &lines {
            assert_eq!(line["parentUuid"], parent, "the chain is broken");
            parent = line["uuid"].clone();
        }
        assert_eq!(parent, json!(file.head));
        lines
    }

    #[test]
    fn whole_tool_pairs_stay_and_halves_are_removed() {
        let lines = lines(&[
            result("0"),
            Message::new(Role::User, "u"),
            calls(&["1:a", "2", "2"]),
            result("2"),
            result("3"),
            Message::new(Role::Assistant, " "),
            Message::new(Role::Assistant, "done"),
        ]);
        let kinds: Vec<_> = lines.iter().map(|line| line["type"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["user", "assistant", "user", "assistant"]);
        let uses = lines[1]["message"]["content"].as_array().unwrap();
        let ids: Vec<_> = uses.iter().map(|block| block["id"].as_str().unwrap()).collect();
        assert_eq!(ids, ["1_a", "2"]);
        assert_eq!(uses[0]["name"], "look_up");
        let results = lines[2]["message"]["content"].as_array().unwrap();
        assert_eq!(results[0]["content"], NO_RESULT);
        assert_eq!(
            (&results[1]["tool_use_id"], &results[1]["content"]),
            (&json!("2"), &json!("result of 2"))
        );
        assert_ne!(lines[1]["message"]["id"], lines[3]["message"]["id"]);
    }

    #[test]
    fn an_empty_history_gives_nothing_to_resume() {
        assert!(lines(&[]).is_empty());
        assert!(lines(&[Message::new(Role::User, " \n"), result("1")]).is_empty());
    }

    #[test]
    fn every_assistant_line_has_a_model() {
        let lines = lines(&[
            Message::new(Role::Assistant, "hello"),
            Message::new(Role::User, "u\u{2028}\0"),
        ]);
        assert_eq!(lines[0]["message"]["model"], "claude-sonnet-5");
        assert_eq!(lines[1]["message"]["content"], "u\u{2028}\0");
        assert_eq!(lines[0]["timestamp"], "1970-01-01T00:00:00.000Z");
    }
}
