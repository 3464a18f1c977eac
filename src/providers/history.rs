//! The messages of a request for a provider that is sent the whole conversation.
//!
//! The messages always keep three rules, because a server or template refuses a conversation for good if it breaks one:
//! - There is one system message, and it comes first.
//! - A user or assistant message never follows one of the same role.
//! - A call and its results stand together, and each call has exactly one result.
//!
//! The transcript itself is left as it is. Each provider writes the messages in the JSON of its server.

use std::{borrow::Cow, sync::Arc};

use serde_json::Value;

use crate::transcript::{self, Media, Message, Piece, Role, ToolCall};

/// A message as servers expect it.
#[derive(Debug, PartialEq)]
pub(super) struct SentMessage<'a> {
    pub(super) role: &'static str,
    pub(super) content: Cow<'a, str>,
    pub(super) tool_calls: &'a [ToolCall],
    /// The call whose result this is.
    pub(super) result_of: Option<&'a ToolCall>,
    /// Files at their places in the content.
    pub(super) media: Vec<Media>,
}

impl SentMessage<'_> {
    /// Splits the content at its files.
    pub(super) fn pieces(&self) -> Vec<Piece<'_>> {
        transcript::pieces(&self.content, &self.media)
    }
}

/// Text in place of a result, if the call was cut off.
pub(super) const NO_RESULT: &str =
    "No result was recorded: the call was interrupted and may or may not have taken effect.";

pub(super) fn messages<'a>(
    system: &'a str,
    transcript: &'a [Arc<Message>],
) -> Vec<SentMessage<'a>> {
    let n_leading = transcript.iter().take_while(|message| message.role == Role::System).count();
    let (leading, rest) = transcript.split_at(n_leading);
    let mut sent = Vec::with_capacity(rest.len() + 1);
    for text in [system].into_iter().chain(leading.iter().map(|message| message.text.as_str())) {
        append(&mut sent, "system", text, &[]);
    }
    let mut n_orphans = 0_usize;
    for (at, message) in rest.iter().enumerate() {
        match message.role {
            // Most templates would drop or refuse a second system message.
            Role::User | Role::Notice | Role::Posts | Role::System => {
                append(&mut sent, "user", &message.text, &message.media);
            }
            Role::Assistant if message.tool_calls.is_empty() => {
                append(&mut sent, "assistant", &message.text, &[]);
            }
            Role::Assistant => append_group(&mut sent, message, round_after(rest, at)),
            Role::Tool if has_call(rest, at) => {}
            Role::Tool => n_orphans += 1,
        }
    }
    if n_orphans > 0 {
        tracing::warn!(n_orphans, "skipped tool results without their call");
    }
    sent
}

/// Adds to the last message if it has the same role, else begins one. Empty text is left out.
fn append<'a>(sent: &mut Vec<SentMessage<'a>>, role: &'static str, text: &'a str, media: &[Media]) {
    if text.is_empty() {
        return;
    }
    match sent.last_mut() {
        Some(last) if last.role == role && last.tool_calls.is_empty() => {
            let content = last.content.to_mut();
            content.push_str("\n\n");
            last.media.extend(media.iter().map(|file| file.moved_by(content.len())));
            content.push_str(text);
        }
        _ => sent.push(SentMessage {
            role,
            content: Cow::Borrowed(text),
            tool_calls: &[],
            result_of: None,
            media: media.to_vec(),
        }),
    }
}

/// Adds an assistant's calls, and after them their results in the order of the calls.
fn append_group<'a>(
    sent: &mut Vec<SentMessage<'a>>,
    message: &'a Message,
    round: &'a [Arc<Message>],
) {
    let content = match sent.pop_if(|last| last.role == "assistant" && last.tool_calls.is_empty()) {
        Some(before) if message.text.is_empty() => before.content,
        Some(before) => Cow::Owned(format!("{}\n\n{}", before.content, message.text)),
        None => Cow::Borrowed(message.text.as_str()),
    };
    sent.push(SentMessage {
        role: "assistant",
        content,
        tool_calls: &message.tool_calls,
        result_of: None,
        media: Vec::new(),
    });
    for call in &message.tool_calls {
        let result = round.iter().find(|result| answers(result, call));
        sent.push(SentMessage {
            role: "tool",
            content: Cow::Borrowed(result.map_or(NO_RESULT, |result| &result.text)),
            tool_calls: &[],
            result_of: Some(call),
            media: Vec::new(),
        });
    }
}

/// Returns the messages that may hold the results of the message at `at`: all up to the assistant's next one.
fn round_after(transcript: &[Arc<Message>], at: usize) -> &[Arc<Message>] {
    let after = &transcript[at + 1..];
    let end = after.iter().position(|message| message.role == Role::Assistant);
    &after[..end.unwrap_or(after.len())]
}

fn has_call(transcript: &[Arc<Message>], at: usize) -> bool {
    let before = transcript[..at].iter().rfind(|message| message.role == Role::Assistant);
    before.is_some_and(|before| before.tool_calls.iter().any(|call| answers(&transcript[at], call)))
}

fn answers(result: &Message, call: &ToolCall) -> bool {
    result.role == Role::Tool && result.tool_call_id.as_deref() == Some(call.id.as_str())
}

/// Returns the arguments of a call as an object, because servers accept nothing else.
pub(super) fn argument_object(call: &ToolCall) -> Cow<'_, Value> {
    match &call.arguments {
        object @ Value::Object(_) => Cow::Borrowed(object),
        Value::Null => Cow::Owned(serde_json::json!({})),
        other => Cow::Owned(serde_json::json!({ "value": other })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(ids: &[&str]) -> Message {
        let call = |id: &&str| ToolCall {
            id: (*id).to_owned(),
            name: "look_up".to_owned(),
            arguments: Value::Null,
            thinking: None,
        };
        Message { tool_calls: ids.iter().map(call).collect(), ..Message::new(Role::Assistant, "") }
    }

    fn result(id: &str) -> Message {
        let text = format!("result of {id}");
        Message { tool_call_id: Some(id.to_owned()), ..Message::new(Role::Tool, &text) }
    }

    fn shape(transcript: &[Message]) -> Vec<String> {
        let transcript = shared(transcript);
        let sent = messages("", &transcript);
        sent.iter().map(|message| format!("{}:{}", message.role, message.content)).collect()
    }

    fn shared(transcript: &[Message]) -> Vec<Arc<Message>> {
        transcript.iter().cloned().map(Arc::new).collect()
    }

    #[test]
    fn one_system_message_comes_first_and_roles_alternate() {
        let transcript = [
            Message::new(Role::System, "s2"),
            Message::new(Role::User, "u1"),
            Message::new(Role::Notice, "n"),
            Message::new(Role::Assistant, "a1"),
            Message::new(Role::Assistant, ""),
            Message::new(Role::Assistant, "a2"),
            Message::new(Role::System, "s3"),
            Message::new(Role::User, "u2"),
        ];
        let transcript = shared(&transcript);
        let sent = messages("s1", &transcript);
        let sent: Vec<_> = sent.iter().map(|m| (m.role, m.content.as_ref())).collect();
        let expected = [
            ("system", "s1\n\ns2"),
            ("user", "u1\n\nn"),
            ("assistant", "a1\n\na2"),
            ("user", "s3\n\nu2"),
        ];
        assert_eq!(sent, expected);
    }

    #[test]
    fn results_directly_follow_their_calls() {
        let transcript = [
            calls(&["1", "2"]),
            Message::new(Role::Notice, "interrupted"),
            result("2"),
            result("1"),
            Message::new(Role::Assistant, "done"),
        ];
        let expected = [
            "assistant:",
            "tool:result of 1",
            "tool:result of 2",
            "user:interrupted",
            "assistant:done",
        ];
        assert_eq!(shape(&transcript), expected);
    }

    #[test]
    fn text_before_a_call_is_sent_with_it() {
        let transcript = [
            Message::new(Role::Assistant, "a1"),
            calls(&["1"]),
            result("1"),
            calls(&["2"]),
            result("2"),
            Message::new(Role::Assistant, "a2"),
            Message { text: "a3".to_owned(), ..calls(&["3"]) },
            result("3"),
        ];
        let expected = [
            "assistant:a1",
            "tool:result of 1",
            "assistant:",
            "tool:result of 2",
            "assistant:a2\n\na3",
            "tool:result of 3",
        ];
        assert_eq!(shape(&transcript), expected);
    }

    #[test]
    fn half_a_tool_pair_is_never_sent() {
        let transcript = [result("0"), calls(&["1"]), calls(&["2"]), result("1"), result("2")];
        let sent = shape(&transcript);
        let no_result = format!("tool:{NO_RESULT}");
        assert_eq!(sent, ["assistant:", no_result.as_str(), "assistant:", "tool:result of 2"]);
    }

    #[test]
    fn any_transcript_gives_whole_pairs() {
        let mut state = 1_u64;
        let mut roll = |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_041);
            (state >> 33) % n
        };
        for _ in 0..2_000 {
            let transcript: Vec<Message> = (0..roll(14))
                .map(|_| match roll(6) {
                    0 => calls(&["1"]),
                    1 => calls(&["1", "2"]),
                    2 => result("1"),
                    3 => result("2"),
                    4 => Message::new(Role::User, "u"),
                    _ => Message::new(Role::Assistant, "a"),
                })
                .collect();
            check_pairs(&messages("s", &shared(&transcript)));
        }
    }

    fn check_pairs(sent: &[SentMessage<'_>]) {
        let mut open: Vec<&str> = Vec::new();
        for message in sent {
            match message.result_of {
                Some(call) => assert_eq!(open.remove(0), call.id),
                None => assert!(open.is_empty(), "{sent:?}"),
            }
            open.extend(message.tool_calls.iter().map(|call| call.id.as_str()));
        }
        assert!(open.is_empty(), "{sent:?}");
    }
}
