//! Turns messages into a prompt that the CLI cannot take for a command.
//!
//! The CLI runs text that begins with `/` and a name as a command, which never reaches the model. That was measured with the text as a
//! string and as a block. `-` is safe because the prompt goes in as JSON and not as an argument. `@file` is safe because attachments are
//! switched off (see `launch::environment`).

use std::borrow::Borrow;

use crate::transcript::{Message, Role};

/// Returns the one user message of the turn: everything that was said since the model's last words. `None` if that is only white space,
/// which the CLI answers with silence or with an empty call.
pub(super) fn prompt(messages: &[impl Borrow<Message>]) -> Option<String> {
    let said = unanswered(messages).iter().map(|message| message.borrow().text.as_str());
    let said: Vec<&str> = said.filter(|text| !text.trim().is_empty()).collect();
    if said.is_empty() {
        return None;
    }
    to_prompt(said.join("\n\n"))
}

/// Makes a prompt of a text that is assembled already.
pub(super) fn to_prompt(mut text: String) -> Option<String> {
    if text.trim().is_empty() {
        return None;
    }
    if text.starts_with('/') {
        // White space in front makes it plain text, and reads the same to the model.
        text.insert(0, '\n');
    }
    Some(text)
}

/// Returns the messages before the prompt, which the provider's own transcript holds.
pub(super) fn history<M: Borrow<Message>>(messages: &[M]) -> &[M] {
    &messages[..messages.len() - unanswered(messages).len()]
}

fn unanswered<M: Borrow<Message>>(messages: &[M]) -> &[M] {
    let is_answer = |m: &M| matches!(m.borrow().role, Role::Assistant | Role::Tool);
    let answered = messages.iter().rposition(is_answer);
    &messages[answered.map_or(0, |at| at + 1)..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leading_slash_does_not_run_a_command() {
        let prompt = |text: &str| prompt(&[Message::new(Role::User, text)]);
        assert_eq!(prompt("/clear").as_deref(), Some("\n/clear"));
        assert_eq!(prompt(" /clear").as_deref(), Some(" /clear"));
        assert_eq!(prompt("--help @/etc/passwd").as_deref(), Some("--help @/etc/passwd"));
        assert_eq!(prompt(" \n\t"), None);
    }

    #[test]
    fn the_prompt_is_everything_after_the_last_answer() {
        let messages = [
            Message::new(Role::User, "one"),
            Message::new(Role::Assistant, "first"),
            Message::new(Role::User, "cut off"),
            Message::new(Role::Notice, "the last turn was interrupted"),
            Message::new(Role::User, ""),
            Message::new(Role::User, "two"),
        ];
        let expected = "cut off\n\nthe last turn was interrupted\n\ntwo";
        assert_eq!(prompt(&messages).as_deref(), Some(expected));
        assert_eq!(history(&messages).len(), 2);
        assert!(history(&messages[..1]).is_empty());
    }
}
