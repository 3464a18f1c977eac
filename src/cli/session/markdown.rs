//! A transcript as a Markdown document.
//!
//! Texts are quoted: each of their lines begins with `> `, so that none can pass for the head of another message.

use uuid::Uuid;

use crate::{
    cli::{session::serialised_name, words::time},
    domain::messages::StoredMessage,
    transcript::Role,
};

pub(super) fn format_transcript(session_id: Uuid, messages: &[StoredMessage]) -> String {
    let messages: String = messages.iter().map(format_message).collect();
    format!("# Transcript of session {session_id}\n{messages}")
}

fn format_message(stored: &StoredMessage) -> String {
    let StoredMessage { seq, turn, partial, rejected, created_at, message, .. } = stored;
    let role = serialised_name(message.role);
    let tool = message.tool_name.as_ref().map(|tool| format!(" `{tool}`")).unwrap_or_default();
    let broken = if *partial { ", broke off" } else { "" };
    let rejected = if *rejected { ", rejected: not sent again" } else { "" };
    let time = time(*created_at);
    let mut text = format!("\n## {seq}. {role}{tool}, turn {turn}, {time} UTC{broken}{rejected}\n");
    // The name of a tool, or of the author of a prompt.
    let is_code = message.role == Role::Tool;
    if !message.text.trim().is_empty() {
        let block = if is_code { fenced("text", &message.text) } else { message.text.clone() };
        text.push_str(&format!("\n{}", quoted(&block)));
    }
    for call in &message.tool_calls {
        let arguments = serde_json::to_string_pretty(&call.arguments).unwrap_or_default();
        let call = format!("calls `{}`\n\n{}", call.name, fenced("json", &arguments));
        text.push_str(&format!("\n{}", quoted(&call)));
    }
    text
}

fn quoted(text: &str) -> String {
    text.trim_end().lines().map(|line| format!("{}\n", format!("> {line}").trim_end())).collect()
}

/// Puts a text between fences that are longer than any in it.
fn fenced(language: &str, text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}{language}\n{}\n{fence}", text.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_stays_inside_its_quotation() {
        assert_eq!(quoted("one\n\n## 2. assistant\n"), "> one\n>\n> ## 2. assistant\n");
    }

    #[test]
    fn a_fence_is_longer_than_those_in_its_text() {
        assert_eq!(fenced("text", "a\n```\nb"), "````text\na\n```\nb\n````");
        assert_eq!(fenced("json", "{}"), "```json\n{}\n```");
    }
}
