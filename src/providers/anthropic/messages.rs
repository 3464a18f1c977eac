//! The system text, tools and messages of a call.
//!
//! The API's rules beyond those of [`history`]: results of tools are blocks in a message of the user; ids and names have few characters; no
//! text is blank; the first message is the user's; calls in the history need the definitions of their tools.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::thinking::SignedThinking;
use crate::{
    providers::{
        CallTexts,
        history::{self, SentMessage},
        media,
    },
    transcript::{Piece, ToolCall, ToolSpec},
};

/// The prompt of a call. Its blocks are JSON, because signed ones are sent back as they came.
#[derive(Debug, PartialEq)]
pub(super) struct Prompt {
    pub(super) system: Vec<Value>,
    pub(super) tools: Vec<Value>,
    pub(super) messages: Vec<WireMessage>,
    /// False if the tools are there only because the history has calls of them.
    pub(super) offers_tools: bool,
}

#[derive(Debug, PartialEq, Serialize)]
pub(super) struct WireMessage {
    role: &'static str,
    content: Vec<Value>,
}

/// SHA-256 of the beginning of a prompt.
#[derive(Debug, Clone)]
struct PrefixHash {
    hasher: Sha256,
    n_messages: usize,
}

const USER: &str = "user";
const ASSISTANT: &str = "assistant";
/// Text in front of a history that begins with the assistant.
const CONTINUED: &str = "The conversation continues here.";
/// Description of a tool that is called in the history and is not offered now.
const NOT_OFFERED: &str = "Not available now.";
/// Messages that end a cached prefix. With the system text they use up the 4 marks of a request.
const N_MARKED: usize = 3;
const MAX_NAME_CHARS: usize = 128;

impl Prompt {
    /// Builds the prompt of a call of this model, with the signed thinking that the model accepts back.
    pub(super) fn of(model: &str, call: &CallTexts<'_>) -> Self {
        let sent = history::messages(call.system, call.messages);
        let offers_tools = !call.tools.is_empty();
        let tools = match offers_tools {
            true => call.tools.iter().map(|tool| wire_tool(tool)).collect(),
            false => tools_of_history(&sent),
        };
        let system = sent.iter().filter(|message| message.role == "system");
        let system: Vec<_> = system.filter_map(|message| text_block(&message.content)).collect();
        let mut calls = sent.iter().flat_map(|message| message.tool_calls);
        let has_thinking = calls.any(|call| call.thinking.is_some());
        let mut hash = has_thinking.then(|| PrefixHash::of(model, &system, &tools));
        let messages = Vec::with_capacity(sent.len());
        let mut prompt = Self { system, tools, messages, offers_tools };
        for message in &sent {
            prompt.add(message, hash.as_mut());
        }
        prompt
    }

    /// Returns the digest of the whole prompt.
    pub(super) fn digest(&self, model: &str) -> String {
        let mut hash = PrefixHash::of(model, &self.system, &self.tools);
        hash.up_to(&self.messages)
    }

    /// Returns true if the prompt ends with results of calls without the thinking before them. Models that think within a budget refuse to
    /// think about such a prompt.
    pub(super) fn lacks_thinking(&self) -> bool {
        let last = self.messages.iter().rfind(|message| message.role == ASSISTANT);
        last.is_some_and(|message| {
            let is_thinking = |block: &Value| {
                matches!(block["type"].as_str(), Some("thinking" | "redacted_thinking"))
            };
            let has_calls = message.content.iter().any(|block| block["type"] == "tool_use");
            has_calls && !message.content.first().is_some_and(is_thinking)
        })
    }

    /// Marks the ends of the prefixes that later calls read from the cache.
    pub(super) fn mark_for_cache(&mut self) {
        // Tools come first, so the mark of the system text covers them.
        if let Some(last) = self.system.last_mut().or(self.tools.last_mut()) {
            mark(last);
        }
        for at in self.marked_messages() {
            if let Some(last) = self.messages[at].content.last_mut() {
                mark(last);
            }
        }
    }

    /// Returns the positions of the messages to mark.
    ///
    /// The server writes at a mark, and reads at a mark or a few blocks before it. So a call marks its end, and exactly the places that earlier
    /// calls have marked: within a turn the end of the call before; and the ends of the last two turns. The message that begins a turn has
    /// parts that later turns do not repeat (parameters, statuses). So what follows it may be read in this turn only, and the next turn
    /// reads up to the answer before it.
    fn marked_messages(&self) -> Vec<usize> {
        let is_of_user = |at: &usize| self.messages[*at].role == USER;
        let begins_turn = |at: &usize| {
            let blocks = &self.messages[*at].content;
            is_of_user(at) && blocks.iter().any(|block| block["type"] == "text")
        };
        let mut of_user = (0..self.messages.len()).rev().filter(is_of_user);
        let Some(end) = of_user.next() else { return Vec::new() };
        let call_before = of_user.next().filter(|_| !begins_turn(&end));
        let later_turns = (1..=end).rev().filter(begins_turn);
        let ends_of_turns = later_turns.map(|begin| begin - 1);
        [end].into_iter().chain(call_before).chain(ends_of_turns).take(N_MARKED).collect()
    }

    fn add(&mut self, message: &SentMessage<'_>, hash: Option<&mut PrefixHash>) {
        match (message.role, message.result_of) {
            ("system", _) => {}
            (_, Some(call)) => self.push(USER, [result_block(call, &message.content)]),
            (ASSISTANT, _) => {
                let prefix = hash.map(|hash| hash.up_to(&self.messages));
                self.push(ASSISTANT, assistant_blocks(message, prefix.as_deref()));
            }
            _ => self.push(USER, message.pieces().into_iter().filter_map(user_block)),
        }
    }

    /// Adds blocks to the last message if it has this role, else begins one.
    fn push(&mut self, role: &'static str, blocks: impl IntoIterator<Item = Value>) {
        let mut blocks = blocks.into_iter().peekable();
        if blocks.peek().is_none() {
            return;
        }
        if self.messages.is_empty() && role == ASSISTANT {
            let content = text_block(CONTINUED).into_iter().collect();
            self.messages.push(WireMessage { role: USER, content });
        }
        match self.messages.last_mut() {
            Some(last) if last.role == role => last.content.extend(blocks),
            _ => self.messages.push(WireMessage { role, content: blocks.collect() }),
        }
    }
}

impl PrefixHash {
    /// Thinking is bound to its model, too.
    fn of(model: &str, system: &[Value], tools: &[Value]) -> Self {
        let mut hash = Self { hasher: Sha256::new(), n_messages: 0 };
        hash.add(&model);
        hash.add(&system);
        hash.add(&tools);
        hash
    }

    /// Returns the digest of the prompt up to the end of these messages. Each call gets the messages of the call before and further ones.
    fn up_to(&mut self, messages: &[WireMessage]) -> String {
        for message in &messages[self.n_messages.min(messages.len())..] {
            self.add(message);
        }
        self.n_messages = messages.len();
        hex::encode(self.hasher.clone().finalize())
    }

    fn add(&mut self, part: &impl Serialize) {
        // JSON of texts and JSON cannot fail.
        let bytes = serde_json::to_vec(part).unwrap_or_default();
        self.hasher.update(bytes.len().to_le_bytes());
        self.hasher.update(&bytes);
    }
}

fn mark(block: &mut Value) {
    block["cache_control"] = json!({ "type": "ephemeral" });
}

/// Returns a text as a block. The API refuses blank ones.
fn text_block(text: &str) -> Option<Value> {
    (!text.trim().is_empty()).then(|| json!({ "type": "text", "text": text }))
}

/// Returns a stretch of a message of the user as a block.
fn user_block(piece: Piece<'_>) -> Option<Value> {
    let file = match piece {
        Piece::Text(text) => return text_block(text),
        Piece::File(file) => file,
    };
    let kind = if media::is_pdf(file) { "document" } else { "image" };
    let data = media::base64(file);
    let source = json!({ "type": "base64", "media_type": file.media_type, "data": data });
    Some(json!({ "type": kind, "source": source }))
}

fn result_block(call: &ToolCall, text: &str) -> Value {
    json!({ "type": "tool_result", "tool_use_id": plain(&call.id), "content": text })
}

fn call_block(call: &ToolCall) -> Value {
    let input = history::argument_object(call);
    json!({ "type": "tool_use", "id": plain(&call.id), "name": plain(&call.name), "input": input })
}

/// Returns the blocks of an answer in the order in which they came. `prefix` is the digest of the prompt before it.
fn assistant_blocks(message: &SentMessage<'_>, prefix: Option<&str>) -> Vec<Value> {
    let text = message.content.as_ref();
    let mut blocks = Vec::new();
    let mut sent_bytes = 0;
    for call in message.tool_calls {
        let signed = SignedThinking::of(call, prefix, text);
        for (block, text_bytes) in signed.iter().flat_map(|signed| signed.blocks()) {
            let end = text_bytes.max(sent_bytes);
            blocks.extend(text_block(&text[sent_bytes..end]));
            sent_bytes = end;
            blocks.push(block.clone());
        }
        let end = signed.map_or(text.len(), |signed| signed.text_bytes()).max(sent_bytes);
        blocks.extend(text_block(&text[sent_bytes..end]));
        sent_bytes = end;
        blocks.push(call_block(call));
    }
    blocks.extend(text_block(&text[sent_bytes..]));
    blocks
}

fn wire_tool(tool: &ToolSpec) -> Value {
    let ToolSpec { name, description, input_schema } = tool;
    json!({ "name": plain(name), "description": description, "input_schema": input_schema })
}

/// Defines the tools that the history calls: the API refuses calls of unknown tools.
fn tools_of_history(sent: &[SentMessage<'_>]) -> Vec<Value> {
    let mut names: Vec<&str> = Vec::new();
    for call in sent.iter().flat_map(|message| message.tool_calls) {
        if !names.contains(&call.name.as_str()) {
            names.push(&call.name);
        }
    }
    let tools = names.into_iter().map(|name| {
        json!({ "name": plain(name), "description": NOT_OFFERED, "input_schema": { "type": "object" } })
    });
    tools.collect()
}

/// Replaces characters that ids and names may not have. Other providers and models may have made them.
fn plain(name: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.is_empty() && name.len() <= MAX_NAME_CHARS && name.chars().all(is_plain) {
        return Cow::Borrowed(name);
    }
    let chars = name.chars().take(MAX_NAME_CHARS).map(|c| if is_plain(c) { c } else { '_' });
    let plain: String = chars.collect();
    Cow::Owned(if plain.is_empty() { "_".to_owned() } else { plain })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::transcript::{Message, Role};

    const MODEL: &str = "claude-of-the-test";

    fn prompt(system: &str, messages: &[Message]) -> Prompt {
        prompt_of(MODEL, system, messages)
    }

    fn prompt_of(model: &str, system: &str, messages: &[Message]) -> Prompt {
        let messages: Vec<_> = messages.iter().cloned().map(Arc::new).collect();
        let tool = ToolSpec {
            name: "look_up".to_owned(),
            description: "Looks something up.".to_owned(),
            input_schema: json!({ "type": "object" }),
        };
        let tools = [Arc::new(tool)];
        Prompt::of(model, &CallTexts { system, messages: &messages, tools: &tools, unheard: None })
    }

    fn call(id: &str, thinking: Option<Value>) -> ToolCall {
        let (name, arguments) = ("look_up".to_owned(), json!({}));
        ToolCall { id: id.to_owned(), name, arguments, thinking }
    }

    fn asking(text: &str, calls: &[ToolCall]) -> Message {
        Message { tool_calls: calls.to_vec(), ..Message::new(Role::Assistant, text) }
    }

    fn result(id: &str) -> Message {
        Message { tool_call_id: Some(id.to_owned()), ..Message::new(Role::Tool, "found") }
    }

    /// Returns role and kinds of blocks of each message.
    fn kinds(prompt: &Prompt) -> Vec<String> {
        let kinds = prompt.messages.iter().map(|message| {
            let kinds = message.content.iter().map(|block| block["type"].as_str().unwrap());
            format!("{}: {}", message.role, kinds.collect::<Vec<_>>().join(" "))
        });
        kinds.collect()
    }

    #[test]
    fn results_and_the_next_text_are_one_message_of_the_user() {
        let messages = [
            Message::new(Role::Assistant, "Hello!"),
            Message::new(Role::User, "Go."),
            asking("I look.", &[call("c:1", None), call("c2", None)]),
            result("c2"),
            result("c:1"),
            Message::new(Role::Notice, "Interrupted."),
        ];
        let prompt = prompt("s", &messages);
        let expected = [
            "user: text",
            "assistant: text",
            "user: text",
            "assistant: text tool_use tool_use",
            "user: tool_result tool_result text",
        ];
        assert_eq!(kinds(&prompt), expected);
        assert_eq!(prompt.messages[4].content[0]["tool_use_id"], "c_1");
    }

    #[test]
    fn thinking_is_sent_back_until_something_before_it_changes() {
        let asked = [Message::new(Role::User, "Go.")];
        let prefix = prompt("s", &asked).digest(MODEL);
        let block = json!({ "type": "thinking", "thinking": "Hm.", "signature": "s1" });
        let signed = json!({ "prefix": prefix, "text_bytes": 3, "blocks": [[block, 0]] });
        let messages = [
            asked[0].clone(),
            asking("So.", &[call("c1", Some(signed))]),
            result("c1"),
            Message::new(Role::Assistant, "Done."),
            Message::new(Role::User, "More."),
        ];
        let sent = kinds(&prompt("s", &messages));
        assert_eq!(sent[1], "assistant: thinking text tool_use");
        let sent = kinds(&prompt("another", &messages));
        assert_eq!(sent[1], "assistant: text tool_use");
        let sent = kinds(&prompt_of("another-model", "s", &messages));
        assert_eq!(sent[1], "assistant: text tool_use");
    }

    #[test]
    fn results_whose_calls_have_lost_their_thinking_are_noticed() {
        let asked = Message::new(Role::User, "Go.");
        let block = json!({ "type": "redacted_thinking", "data": "d" });
        let prefix = prompt("s", std::slice::from_ref(&asked)).digest(MODEL);
        let signed = json!({ "prefix": prefix, "text_bytes": 0, "blocks": [[block, 0]] });
        let messages = [asked, asking("", &[call("c1", Some(signed))]), result("c1")];
        assert!(!prompt("s", &messages[..1]).lacks_thinking());
        assert!(!prompt("s", &messages).lacks_thinking());
        assert!(prompt("another", &messages).lacks_thinking());
        let answered = [&messages[..], &[Message::new(Role::Assistant, "Done.")]].concat();
        let next = [&answered[..], &[Message::new(Role::User, "More.")]].concat();
        assert!(!prompt("another", &next).lacks_thinking());
    }

    fn is_marked(block: &Value) -> bool {
        block.get("cache_control").is_some()
    }

    /// Returns the texts, and the ids of results, of the marked blocks after the system text.
    fn marked(system: &str, messages: &[Message]) -> Vec<String> {
        let mut prompt = prompt(system, messages);
        prompt.mark_for_cache();
        assert!(is_marked(&prompt.system[0]) && !prompt.tools.iter().any(is_marked));
        let blocks = prompt.messages.iter().flat_map(|message| &message.content);
        let names = blocks.filter(|block| is_marked(block)).map(|block| {
            let name = block.get("text").or(block.get("tool_use_id"));
            name.and_then(Value::as_str).unwrap().to_owned()
        });
        names.collect()
    }

    #[test]
    fn a_call_marks_its_end_and_the_ends_of_the_turns_before() {
        let mut messages = Vec::new();
        for n in 0..6 {
            messages.push(Message::new(Role::User, format!("u{n}")));
            messages.push(Message::new(Role::Assistant, format!("a{n}")));
        }
        messages.push(Message::new(Role::User, "last"));
        assert_eq!(marked("s", &messages), ["a4", "a5", "last"]);
        assert_eq!(marked("s", &messages[..1]), ["u0"]);
    }

    #[test]
    fn a_later_call_of_a_turn_marks_the_end_of_the_call_before_and_of_the_last_turn() {
        let mut messages = Vec::new();
        for turn in 0..3 {
            messages.push(Message::new(Role::User, format!("u{turn}")));
            for round in 0..3 {
                let id = format!("c{turn}_{round}");
                messages.push(asking("", &[call(&id, None)]));
                messages.push(result(&id));
            }
            messages.push(Message::new(Role::Assistant, format!("a{turn}")));
        }
        messages.pop();
        assert_eq!(marked("s", &messages), ["a1", "c2_1", "c2_2"]);
        let first_call = &messages[..messages.len() - 6];
        assert_eq!(marked("s", first_call), ["a0", "a1", "u2"]);
    }

    #[test]
    fn tools_that_are_not_offered_are_defined_for_the_history() {
        let asked = asking("", &[call("c1", None)]);
        let messages = [Message::new(Role::User, "Go."), asked, result("c1")].map(Arc::new);
        let texts = CallTexts { system: "s", messages: &messages, tools: &[], unheard: None };
        let prompt = Prompt::of(MODEL, &texts);
        assert!(!prompt.offers_tools);
        assert_eq!(prompt.tools[0]["name"], "look_up");
    }
}
