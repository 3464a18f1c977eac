//! The messages of `/chat/completions`.

use std::{borrow::Cow, sync::Arc};

use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    providers::{
        history::{self, SentMessage},
        media,
    },
    transcript::{Message, Piece, ToolCall},
};

#[derive(Debug, PartialEq, Serialize)]
pub(super) struct WireMessage<'a> {
    role: &'static str,
    /// Null in a message that only calls tools.
    content: Option<Content<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<WireCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
}

/// A text, or its stretches and the files between them.
#[derive(Debug, PartialEq, Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<Value>),
}

#[derive(Debug, PartialEq, Serialize)]
struct WireCall<'a> {
    id: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    function: WireFunction<'a>,
}

#[derive(Debug, PartialEq, Serialize)]
struct WireFunction<'a> {
    name: &'a str,
    /// JSON as text.
    arguments: String,
}

pub(super) fn messages<'a>(
    system: &'a str,
    transcript: &'a [Arc<Message>],
) -> Vec<WireMessage<'a>> {
    history::messages(system, transcript).into_iter().map(wire_message).collect()
}

fn wire_message(message: SentMessage<'_>) -> WireMessage<'_> {
    let parts: Option<Vec<Value>> = (!message.media.is_empty())
        .then(|| message.pieces().into_iter().map(content_part).collect());
    let SentMessage { role, content, tool_calls, result_of, .. } = message;
    let only_calls = content.is_empty() && !tool_calls.is_empty();
    let content = parts.map_or_else(|| Content::Text(content), Content::Parts);
    WireMessage {
        role,
        content: (!only_calls).then_some(content),
        tool_calls: tool_calls.iter().map(wire_call).collect(),
        tool_call_id: result_of.map(|call| call.id.as_str()),
    }
}

fn content_part(piece: Piece<'_>) -> Value {
    match piece {
        Piece::Text(text) => json!({ "type": "text", "text": text }),
        Piece::File(file) if media::is_pdf(file) => {
            let content = media::data_url(file);
            json!({ "type": "file", "file": { "filename": file.name, "file_data": content } })
        }
        Piece::File(file) => {
            json!({ "type": "image_url", "image_url": { "url": media::data_url(file) } })
        }
    }
}

fn wire_call(call: &ToolCall) -> WireCall<'_> {
    let arguments = history::argument_object(call).to_string();
    WireCall {
        id: &call.id,
        kind: "function",
        function: WireFunction { name: &call.name, arguments },
    }
}
