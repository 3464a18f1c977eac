//! Atomic groups: an assistant message with tool calls and the results of all of them.
//!
//! Providers reject a history with a result whose call is missing, and some reject a call whose result is missing. From
//! then on every turn of the session would fail. The transcript stays as it is; the *view* is repaired:
//! - a result that arrived late is moved directly behind its call,
//! - a call without a recorded result gets a synthetic one that says so,
//! - a result without a call, or a second one for the same call, is left out.

use std::collections::HashMap;

use uuid::Uuid;

use crate::{
    entry::Entry,
    manifest::PartReason,
    transcript::{Message, Role, ToolCall},
};

pub const INTERRUPTED_RESULT: &str = "\
No result was recorded: the turn was interrupted. The call may or may not have taken effect; verify before you repeat it.";

/// A group. Indices are positions in the slice that was grouped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    pub head: usize,
    /// Position of the result for each tool call of the head.
    pub results: Vec<Option<usize>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Groups {
    /// Groups in the order of their heads.
    pub groups: Vec<Group>,
    pub left_out: Vec<(usize, PartReason)>,
}

#[derive(Debug)]
pub struct RepairedMessages<'a> {
    pub placed: Vec<GroupEntry<'a>>,
    pub left_out: Vec<(&'a Entry, PartReason)>,
}

#[derive(Debug)]
pub enum GroupEntry<'a> {
    Entry(&'a Entry),
    /// Replaces the missing result of this call.
    Synthetic(&'a ToolCall),
}

impl<'a> GroupEntry<'a> {
    /// Returns the entry; `None` for a synthetic result.
    pub fn entry(&self) -> Option<&'a Entry> {
        match self {
            Self::Entry(entry) => Some(entry),
            Self::Synthetic(_) => None,
        }
    }
}

/// Repairs a view. `own` are the entries that the caller sends separately: the task and the entries that belong to it.
pub fn repair<'a>(entries: &'a [Entry], own: &[Uuid]) -> RepairedMessages<'a> {
    let grouping = group(entries, own);
    let mut placed = Vec::with_capacity(entries.len());
    for group in &grouping.groups {
        let head = &entries[group.head];
        placed.push(GroupEntry::Entry(head));
        for (call, result) in head.message.tool_calls.iter().zip(&group.results) {
            placed.push(match result {
                Some(index) => GroupEntry::Entry(&entries[*index]),
                None => GroupEntry::Synthetic(call),
            });
        }
    }
    let left_out = grouping.left_out.iter().map(|(index, why)| (&entries[*index], *why)).collect();
    RepairedMessages { placed, left_out }
}

pub fn group(entries: &[Entry], own: &[Uuid]) -> Groups {
    let mut groups: Vec<Group> = Vec::with_capacity(entries.len());
    let mut left_out = Vec::new();
    let mut open: OpenCalls<'_> = HashMap::new();
    for (index, entry) in entries.iter().enumerate() {
        let message = &entry.message;
        match message.role {
            _ if own.contains(&entry.id) => left_out.push((index, PartReason::IsTheTask)),
            Role::System => left_out.push((index, PartReason::SystemInHistory)),
            Role::Tool => match take_open(&mut open, message) {
                Some((group, call)) => groups[group].results[call] = Some(index),
                None => left_out.push((index, PartReason::OrphanedResult)),
            },
            Role::Assistant if is_empty(message) => left_out.push((index, PartReason::Empty)),
            Role::User | Role::Assistant | Role::Notice | Role::Posts => {
                for (call, tool_call) in calls(message).iter().enumerate() {
                    let waiting = open.entry(&tool_call.id).or_default();
                    waiting.push((groups.len(), call));
                }
                groups.push(Group { head: index, results: vec![None; calls(message).len()] });
            }
        }
    }
    Groups { groups, left_out }
}

pub fn interrupted_result(call: &ToolCall) -> Message {
    Message {
        role: Role::Tool,
        text: INTERRUPTED_RESULT.to_owned(),
        tool_calls: Vec::new(),
        tool_call_id: Some(call.id.clone()),
        tool_name: Some(call.name.clone()),
        media: Vec::new(),
    }
}

impl Group {
    /// Returns the last position that belongs to the group.
    pub fn last(&self) -> usize {
        let results = self.results.iter().flatten().copied();
        results.max().unwrap_or(self.head).max(self.head)
    }
}

/// Calls that wait for a result, by id, as (group, call).
type OpenCalls<'a> = HashMap<&'a str, Vec<(usize, usize)>>;

/// Finds the call of a result. The latest waiting call wins, because some providers use the same ids again in every turn.
fn take_open(open: &mut OpenCalls<'_>, result: &Message) -> Option<(usize, usize)> {
    open.get_mut(result.tool_call_id.as_deref()?)?.pop()
}

/// Returns the calls of a message. They count on assistant messages only.
fn calls(message: &Message) -> &[ToolCall] {
    if message.role == Role::Assistant { &message.tool_calls } else { &[] }
}

fn is_empty(message: &Message) -> bool {
    message.text.trim().is_empty() && message.tool_calls.is_empty()
}
