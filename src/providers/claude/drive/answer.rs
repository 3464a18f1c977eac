//! The answer, assembled from the lines of its blocks. The result line itself holds the last block only.
//!
//! All blocks of one reply form one message. A reply that continues one which was cut at the output limit belongs to the same message: the
//! CLI asks the model to continue in the middle of the word.

use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

use crate::{
    providers::{
        claude::secrets::Secrets,
        stream_json::{AssistantLine, Block, Exchange},
    },
    transcript::{Message, Role, ToolCall},
};

#[derive(Debug, Default)]
pub(in crate::providers::claude) struct Answer {
    messages: Vec<Message>,
    /// The API's ids of the replies, each at the index of its message in `messages`.
    ids: Vec<Option<String>>,
    thinking: String,
    /// Id of the assistant's last line, after which the next turn continues.
    pub head: Option<Uuid>,
    is_cut: bool,
    is_stopped: bool,
}

/// Separator between texts of different blocks and replies.
const BETWEEN: &str = "\n\n";

impl Answer {
    pub(super) fn add_reply(&mut self, said: &AssistantLine<'_>) {
        if let Some(uuid) = said.uuid.as_deref().and_then(|uuid| uuid.parse().ok()) {
            self.head = Some(uuid);
        }
        let at = self.place(said.message.id.as_deref());
        for block in &said.message.content {
            self.block(at, block);
        }
    }

    /// Adds the results of tools. Text that the CLI adds in the user's name is left out: the CLI adds it again when it has to.
    pub(super) fn add_results(&mut self, exchange: &Exchange<'_>) {
        if self.is_stopped {
            return;
        }
        let blocks: Vec<Block<'_>> =
            serde_json::from_str(exchange.message.content.get()).unwrap_or_default();
        for block in blocks.iter().filter(|block| &*block.kind == "tool_result") {
            let id = block.tool_use_id.as_deref().unwrap_or_default();
            let calls = self.messages.iter().flat_map(|message| &message.tool_calls);
            let tool_name =
                calls.filter(|call| call.id == id).map(|call| call.name.clone()).next_back();
            self.messages.push(Message {
                role: Role::Tool,
                text: block.content.map(|content| text_of(content.get())).unwrap_or_default(),
                tool_calls: Vec::new(),
                tool_call_id: Some(id.to_owned()),
                tool_name,
                media: Vec::new(),
            });
            self.ids.push(None);
        }
    }

    /// Ignores further results. A turn that is told to stop says of its open calls that the user rejected them, which is not their result.
    pub(super) fn stop_taking_results(&mut self) {
        self.is_stopped = true;
    }

    pub(super) fn set_stop_reason(&mut self, reason: &str) {
        self.is_cut = reason == "max_tokens";
    }

    /// Returns true if the model used any tool.
    pub(in crate::providers::claude) fn has_acted(&self) -> bool {
        self.messages.iter().any(|message| !message.tool_calls.is_empty())
    }

    /// Removes secrets from everything that was said.
    pub(super) fn clean(&mut self, secrets: &Secrets) {
        self.thinking = secrets.clean_text(&self.thinking);
        for message in &mut self.messages {
            message.text = secrets.clean_text(&message.text);
            for call in &mut message.tool_calls {
                call.name = secrets.cleaned_name(&call.name);
                secrets.clean_value(&mut call.arguments);
            }
        }
        self.ids.iter_mut().flatten().for_each(|id| *id = secrets.cleaned_name(id));
    }

    /// Returns the text after the last tool result, or all text if there is none after it.
    pub(in crate::providers::claude) fn text(&self) -> String {
        let last_tool = self.messages.iter().rposition(|message| message.role == Role::Tool);
        let after = &self.messages[last_tool.map_or(0, |at| at + 1)..];
        match texts(after) {
            text if text.trim().is_empty() => texts(&self.messages),
            text => text,
        }
    }

    pub(in crate::providers::claude) fn thinking(&self) -> Option<String> {
        (!self.thinking.is_empty()).then(|| self.thinking.clone())
    }

    /// Returns calls, results and replies in order, in a form that every provider accepts.
    pub(in crate::providers::claude) fn messages(&self) -> Vec<Message> {
        let is_something = |m: &&Message| {
            m.role == Role::Tool || !m.text.trim().is_empty() || !m.tool_calls.is_empty()
        };
        self.messages.iter().filter(is_something).cloned().collect()
    }

    pub(in crate::providers::claude) fn last_message_id(&self) -> Option<&str> {
        self.ids.iter().rev().flatten().next().map(String::as_str)
    }

    /// Returns the index of the message that a reply belongs to. Results of its first calls may come before its last call.
    fn place(&mut self, id: Option<&str>) -> usize {
        let known = self.ids.iter().rposition(|known| id.is_some() && known.as_deref() == id);
        if let Some(at) = known {
            return at;
        }
        if std::mem::take(&mut self.is_cut)
            && let (Some(Some(last)), Some(id)) = (self.ids.last_mut(), id)
        {
            id.clone_into(last);
            return self.ids.len() - 1;
        }
        self.messages.push(Message::new(Role::Assistant, String::new()));
        self.ids.push(id.map(str::to_owned));
        self.messages.len() - 1
    }

    fn block(&mut self, at: usize, block: &Block<'_>) {
        let message = &mut self.messages[at];
        match &*block.kind {
            "text" => message.text.push_str(block.text.as_deref().unwrap_or_default()),
            "thinking" => {
                if !self.thinking.is_empty() {
                    self.thinking.push_str(BETWEEN);
                }
                self.thinking.push_str(block.thinking.as_deref().unwrap_or_default());
            }
            "tool_use" => message.tool_calls.push(to_tool_call(block)),
            _ => {}
        }
    }
}

/// Reads the call of a `tool_use`.
pub(in crate::providers::claude) fn to_tool_call(block: &Block<'_>) -> ToolCall {
    let input = block.input.and_then(|input| serde_json::from_str(input.get()).ok());
    ToolCall {
        id: block.id.as_deref().unwrap_or_default().to_owned(),
        name: block.name.as_deref().unwrap_or_default().to_owned(),
        arguments: input.unwrap_or(Value::Null),
        thinking: None,
    }
}

fn texts(messages: &[Message]) -> String {
    let said = messages.iter().filter(|m| m.role == Role::Assistant && !m.text.trim().is_empty());
    said.map(|message| message.text.as_str()).collect::<Vec<_>>().join(BETWEEN)
}

/// Returns the text of a tool result, which is a string or a list of blocks. Blocks other than text become `[kind]`.
pub(in crate::providers::claude) fn text_of(content: &str) -> String {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Content {
        Text(String),
        Blocks(Vec<Piece>),
    }
    #[derive(Deserialize)]
    struct Piece {
        #[serde(rename = "type")]
        kind: String,
        #[serde(default)]
        text: String,
    }
    match serde_json::from_str(content) {
        Ok(Content::Text(text)) => text,
        Ok(Content::Blocks(pieces)) => {
            let text = |piece: Piece| match piece.kind.as_str() {
                "text" => piece.text,
                kind => format!("[{kind}]"),
            };
            pieces.into_iter().map(text).collect::<Vec<_>>().join("\n")
        }
        Err(_) => content.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokio::time::Instant;

    use super::*;
    use crate::providers::{
        claude::drive::TurnOutput,
        stream_json::{Decoder, Limits},
    };

    fn heard(lines: &[Value]) -> TurnOutput {
        let limits = Limits { line_bytes: 1 << 20, total_bytes: 1 << 20 };
        let (mut decoder, mut heard) = (Decoder::within(limits), TurnOutput::default());
        for line in lines {
            decoder.push(format!("{line}\n").as_bytes()).unwrap();
            while let Some(event) = decoder.next_event().unwrap() {
                heard.apply_event(event, Instant::now());
            }
        }
        heard
    }

    fn assistant_line(id: &str, block: &Value) -> Value {
        json!({"type": "assistant", "uuid": Uuid::new_v4(), "message": {"id": id, "content": [block]}})
    }

    fn text(id: &str, text: &str) -> Value {
        assistant_line(id, &json!({"type": "text", "text": text}))
    }

    fn call(id: &str, call: &str) -> Value {
        assistant_line(
            id,
            &json!({"type": "tool_use", "id": call, "name": "look", "input": {"at": 1}}),
        )
    }

    fn result(call: &str, content: &Value) -> Value {
        json!({"type": "user", "message": {"content":
            [{"type": "tool_result", "tool_use_id": call, "content": content}]}})
    }

    fn stop(reason: &str) -> Value {
        json!({"type": "stream_event", "event": {"type": "message_delta", "delta": {"stop_reason": reason}}})
    }

    #[test]
    fn blocks_of_one_reply_are_one_text() {
        let heard = heard(&[text("1", "From the "), text("1", "sign.")]);
        assert_eq!(heard.answer.text(), "From the sign.");
        assert_eq!(heard.answer.messages().len(), 1);
    }

    #[test]
    fn a_truncated_reply_continues_in_the_next() {
        let lines = [
            text("1", "From the si"),
            stop("max_tokens"),
            text("2", "gn."),
            stop("end_turn"),
            text("3", "More."),
        ];
        let heard = heard(&lines);
        assert_eq!(heard.answer.text(), "From the sign.\n\nMore.");
    }

    #[test]
    fn results_follow_all_calls_of_their_reply() {
        let lines = [
            text("1", "I look."),
            call("1", "a"),
            result("a", &json!("one")),
            call("1", "b"),
            result("b", &json!([{"type": "text", "text": "two"}, {"type": "image"}])),
            text("2", "Found."),
        ];
        let messages = heard(&lines).answer.messages();
        let ids: Vec<_> = messages[0].tool_calls.iter().map(|call| call.id.as_str()).collect();
        assert_eq!((ids, messages[0].text.as_str()), (vec!["a", "b"], "I look."));
        assert_eq!(
            (messages[1].text.as_str(), messages[1].tool_name.as_deref()),
            ("one", Some("look"))
        );
        assert_eq!(messages[2].text, "two\n[image]");
        assert_eq!(heard(&lines).answer.text(), "Found.");
        assert_eq!(heard(&lines[..5]).answer.text(), "I look.");
    }

    #[test]
    fn messages_of_subagents_and_the_cli_are_not_the_answer() {
        let mut sub = text("9", "from below");
        sub["parent_tool_use_id"] = json!("a");
        let mut synthetic = text("8", "API Error: 500");
        synthetic["error"] = json!("server_error");
        let heard = heard(&[text("1", "Mine."), sub, synthetic]);
        assert_eq!(heard.answer.text(), "Mine.");
        assert_eq!(heard.api_error.as_deref(), Some("server_error"));
        assert_eq!(
            heard.calls.iter().map(|call| call.is_subagent).collect::<Vec<_>>(),
            [false, true]
        );
    }
}
