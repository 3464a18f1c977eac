//! The messages of `/api/chat`.

use std::{borrow::Cow, sync::Arc};

use serde::Serialize;
use serde_json::Value;

use crate::{
    providers::{
        history::{self, SentMessage},
        media::base64,
    },
    transcript::{Message, ToolCall},
};

#[derive(Debug, PartialEq, Serialize)]
pub(super) struct WireMessage<'a> {
    role: &'static str,
    content: Cow<'a, str>,
    /// Contents in Base64, in the order in which the text names them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    images: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<WireCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
}

#[derive(Debug, PartialEq, Serialize)]
struct WireCall<'a> {
    id: &'a str,
    function: WireFunction<'a>,
}

#[derive(Debug, PartialEq, Serialize)]
struct WireFunction<'a> {
    index: usize,
    name: &'a str,
    arguments: Cow<'a, Value>,
}

pub(super) fn messages<'a>(
    system: &'a str,
    transcript: &'a [Arc<Message>],
) -> Vec<WireMessage<'a>> {
    history::messages(system, transcript).into_iter().map(wire_message).collect()
}

fn wire_message(message: SentMessage<'_>) -> WireMessage<'_> {
    let SentMessage { role, content, tool_calls, result_of, media } = message;
    WireMessage {
        role,
        content,
        images: media.iter().map(|file| base64(&file.attachment)).collect(),
        tool_calls: tool_calls.iter().enumerate().map(wire_call).collect(),
        tool_name: result_of.map(|call| call.name.as_str()),
        tool_call_id: result_of.map(|call| call.id.as_str()),
    }
}

fn wire_call((index, call): (usize, &ToolCall)) -> WireCall<'_> {
    let arguments = history::argument_object(call);
    WireCall { id: &call.id, function: WireFunction { index, name: &call.name, arguments } }
}
