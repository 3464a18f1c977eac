//! The chain of a transcript: the lines that lead to an answer. Each line names the one before it.

use std::collections::{BTreeSet, HashMap, HashSet};

use serde::Deserialize;
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::{
    providers::{
        TranscriptChain, TranscriptEntry,
        claude::drive::{text_of, to_tool_call},
        stream_json::{Block, Text},
    },
    transcript::{Message, Role},
};

/// Reads the chain that ends with the last line of an answer, by the API's id of it. `None`: the file has no such line.
pub(in crate::providers::claude) fn chain_to_answer(
    bytes: &[u8],
    answer_id: &str,
) -> Option<TranscriptChain> {
    let lines = read_lines(bytes);
    let is_end = |line: &&Line<'_>| line.reply_id().as_deref() == Some(answer_id);
    let end = lines.iter().rfind(is_end)?.uuid;
    Some(chain(&lines, end))
}

/// Reads the chain that ends with a line.
pub(super) fn chain_to_line(bytes: &[u8], end: Uuid) -> TranscriptChain {
    chain(&read_lines(bytes), end)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
    uuid: Uuid,
    #[serde(default)]
    parent_uuid: Option<Uuid>,
    /// Set for text that the CLI has added in the user's name.
    #[serde(default)]
    is_meta: bool,
    #[serde(borrow, default)]
    message: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Content<'a> {
    #[serde(borrow, default)]
    id: Option<Text<'a>>,
    /// A text, or blocks.
    #[serde(borrow)]
    content: &'a RawValue,
}

impl<'a> Line<'a> {
    fn content(&self) -> Option<Content<'a>> {
        serde_json::from_str(self.message?.get()).ok()
    }

    fn reply_id(&self) -> Option<Text<'a>> {
        if &*self.kind != "assistant" { None } else { self.content()?.id }
    }

    /// Returns the ids of the calls that it makes, and of those that it answers.
    fn call_ids(&self) -> (Vec<String>, Vec<String>) {
        let blocks = self.content().map(|content| content.blocks()).unwrap_or_default();
        let calls = blocks.iter().filter(|it| &*it.kind == "tool_use").map(|it| &it.id);
        let results = blocks.iter().filter(|it| &*it.kind == "tool_result");
        let results = results.map(|it| &it.tool_use_id);
        let text = |id: &Option<Text<'a>>| id.as_deref().map(str::to_owned);
        (calls.filter_map(text).collect(), results.filter_map(text).collect())
    }
}

impl<'a> Content<'a> {
    fn blocks(&self) -> Vec<Block<'a>> {
        serde_json::from_str(self.content.get()).unwrap_or_default()
    }
}

/// Parses the lines that have a place in a chain.
fn read_lines(bytes: &[u8]) -> Vec<Line<'_>> {
    let lines = bytes.split(|byte| *byte == b'\n');
    lines.filter_map(|line| serde_json::from_slice(line).ok()).collect()
}

fn chain(lines: &[Line<'_>], end: Uuid) -> TranscriptChain {
    let places: HashMap<Uuid, usize> =
        lines.iter().enumerate().map(|(at, line)| (line.uuid, at)).collect();
    let (mut taken, mut next, mut missing_line) = (BTreeSet::new(), Some(end), None);
    while let Some(id) = next {
        match places.get(&id) {
            // A circle ends, too.
            Some(at) if taken.insert(*at) => next = lines[*at].parent_uuid,
            _ => {
                missing_line = Some(id);
                break;
            }
        }
    }
    add_parallel_lines(lines, &places, &mut taken);
    let mut entries = Entries::default();
    // Lines are appended, so their order in the file is that of the chain.
    taken.iter().for_each(|at| entries.add(&lines[*at]));
    TranscriptChain { entries: entries.all, missing_line }
}

/// Adds blocks and results of the same replies: of calls that run at once, the chain has only one.
fn add_parallel_lines(
    lines: &[Line<'_>],
    places: &HashMap<Uuid, usize>,
    taken: &mut BTreeSet<usize>,
) {
    let (mut replies, mut open_calls) = (HashSet::new(), HashSet::new());
    for at in &*taken {
        let (calls, _) = lines[*at].call_ids();
        replies.extend(lines[*at].reply_id().map(|id| id.to_string()));
        open_calls.extend(calls);
    }
    for at in &*taken {
        for id in lines[*at].call_ids().1 {
            open_calls.remove(&id);
        }
    }
    for (at, line) in lines.iter().enumerate() {
        let parent = line.parent_uuid.and_then(|parent| places.get(&parent));
        if taken.contains(&at) || !parent.is_some_and(|parent| taken.contains(parent)) {
            continue;
        }
        let (calls, results) = line.call_ids();
        let is_of_reply = line.reply_id().is_some_and(|id| replies.contains(&*id));
        if is_of_reply || results.iter().any(|id| open_calls.contains(id)) {
            taken.insert(at);
            open_calls.extend(calls);
            for id in &results {
                open_calls.remove(id);
            }
        }
    }
}

#[derive(Default)]
struct Entries {
    all: Vec<TranscriptEntry>,
    /// The API's id of the reply in each entry. A reply has a line for each of its blocks.
    reply_ids: Vec<Option<String>>,
}

impl Entries {
    fn add(&mut self, line: &Line<'_>) {
        let Some(said) = line.content() else { return };
        let text: Option<String> = serde_json::from_str(said.content.get()).ok();
        let blocks = said.blocks();
        match &*line.kind {
            "user" => match text {
                Some(text) => self.push(line, Message::new(Role::User, text), None),
                None => self.add_user_blocks(line, &blocks),
            },
            "assistant" => self.add_reply(line, said.id.as_deref(), &blocks),
            _ => {}
        }
    }

    fn add_user_blocks(&mut self, line: &Line<'_>, blocks: &[Block<'_>]) {
        let results: Vec<_> = blocks.iter().filter(|it| &*it.kind == "tool_result").collect();
        if results.is_empty() {
            let texts: Vec<&str> = blocks.iter().filter_map(|it| it.text.as_deref()).collect();
            return self.push(line, Message::new(Role::User, texts.join("\n\n")), None);
        }
        for result in results {
            let id = result.tool_use_id.as_deref().unwrap_or_default();
            let calls = self.all.iter().flat_map(|entry| &entry.message.tool_calls);
            let tool_name =
                calls.filter(|call| call.id == id).map(|call| call.name.clone()).next_back();
            let text = result.content.map(|content| text_of(content.get())).unwrap_or_default();
            let message = Message {
                tool_call_id: Some(id.to_owned()),
                tool_name,
                media: Vec::new(),
                ..Message::new(Role::Tool, text)
            };
            self.push(line, message, None);
        }
    }

    fn add_reply(&mut self, line: &Line<'_>, id: Option<&str>, blocks: &[Block<'_>]) {
        let known = self.reply_ids.iter().rposition(|it| id.is_some() && it.as_deref() == id);
        let at = known.unwrap_or_else(|| {
            self.push(line, Message::new(Role::Assistant, ""), id.map(str::to_owned));
            self.all.len() - 1
        });
        let message = &mut self.all[at].message;
        for block in blocks {
            match &*block.kind {
                "text" => message.text.push_str(block.text.as_deref().unwrap_or_default()),
                "tool_use" => message.tool_calls.push(to_tool_call(block)),
                _ => {}
            }
        }
    }

    fn push(&mut self, line: &Line<'_>, message: Message, reply_id: Option<String>) {
        self.all.push(TranscriptEntry { line_id: line.uuid, added: line.is_meta, message });
        self.reply_ids.push(reply_id);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn id(n: u128) -> Uuid {
        Uuid::from_u128(n)
    }

    fn line(n: u128, parent: u128, kind: &str, message: &Value) -> String {
        let parent = (parent > 0).then(|| id(parent));
        let line = json!({"type": kind, "uuid": id(n), "parentUuid": parent, "message": message});
        format!("{line}\n")
    }

    fn user(n: u128, parent: u128, content: &Value) -> String {
        line(n, parent, "user", &json!({"role": "user", "content": content}))
    }

    fn reply(n: u128, parent: u128, id: &str, block: &Value) -> String {
        line(n, parent, "assistant", &json!({"id": id, "content": [block]}))
    }

    fn text(text: &str) -> Value {
        json!({"type": "text", "text": text})
    }

    fn said(chain: &TranscriptChain) -> Vec<(Role, &str)> {
        chain.entries.iter().map(|it| (it.message.role, it.message.text.as_str())).collect()
    }

    #[test]
    fn a_chain_follows_the_parents_and_leaves_other_branches_out() {
        let call = json!({"type": "tool_use", "id": "t", "name": "look", "input": {"at": 1}});
        let result =
            json!([{"type": "tool_result", "tool_use_id": "t", "content": [text("light")]}]);
        let file = [
            "{\"type\":\"summary\",\"summary\":\"no uuid\"}\n".to_owned(),
            user(1, 0, &json!("one")),
            reply(2, 1, "a", &text("I ")),
            reply(3, 2, "a", &text("look.")),
            reply(4, 3, "a", &call),
            user(5, 4, &result),
            user(8, 3, &json!("cut off")),
            reply(6, 5, "b", &text("Found.")),
            user(7, 6, &json!([text("two")])),
            reply(9, 7, "c", &text("Later.")),
        ]
        .concat();
        let chain = chain_to_answer(file.as_bytes(), "b").unwrap();
        let expected = [
            (Role::User, "one"),
            (Role::Assistant, "I look."),
            (Role::Tool, "light"),
            (Role::Assistant, "Found."),
        ];
        assert_eq!((said(&chain), chain.missing_line), (expected.to_vec(), None));
        assert_eq!(chain.entries[1].message.tool_calls[0].arguments, json!({"at": 1}));
        assert_eq!(chain.entries[2].message.tool_name.as_deref(), Some("look"));
        let chain = chain_to_answer(file.as_bytes(), "c").unwrap();
        assert_eq!(said(&chain)[4..], [(Role::User, "two"), (Role::Assistant, "Later.")]);
        assert_eq!(chain_to_answer(file.as_bytes(), "d"), None);
    }

    #[test]
    fn results_of_calls_at_once_belong_to_the_chain() {
        let call = |id: &str| json!({"type": "tool_use", "id": id, "name": "look", "input": {}});
        let result = |id: &str| json!([{"type": "tool_result", "tool_use_id": id, "content": id}]);
        let file = [
            user(1, 0, &json!("one")),
            reply(2, 1, "a", &call("x")),
            reply(3, 2, "a", &call("y")),
            user(4, 2, &result("x")),
            user(5, 3, &result("y")),
            user(6, 3, &result("other")),
            reply(7, 5, "b", &text("Found.")),
        ]
        .concat();
        let chain = chain_to_answer(file.as_bytes(), "b").unwrap();
        let expected = [
            (Role::User, "one"),
            (Role::Assistant, ""),
            (Role::Tool, "x"),
            (Role::Tool, "y"),
            (Role::Assistant, "Found."),
        ];
        assert_eq!(said(&chain), expected);
        assert_eq!(chain.entries[1].message.tool_calls.len(), 2);
    }

    #[test]
    fn a_missing_line_ends_the_chain_and_is_named() {
        let (first, last) = (user(1, 0, &json!("one")), reply(3, 2, "a", &text("Two.")));
        let chain = chain_to_answer(format!("{first}{last}").as_bytes(), "a").unwrap();
        assert_eq!(said(&chain), [(Role::Assistant, "Two.")]);
        assert_eq!(chain.missing_line, Some(id(2)));
        let circle = [user(1, 3, &json!("one")), reply(3, 1, "a", &text("Two."))].concat();
        assert_eq!(chain_to_answer(circle.as_bytes(), "a").unwrap().missing_line, Some(id(3)));
    }
}
