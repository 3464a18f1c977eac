//! Comparison of the entries of a provider's transcript with the stored messages.

use crate::{
    domain::messages::make_storable,
    providers::TranscriptEntry,
    transcript::{Message, Role},
};

/// Messages that a turn has added to the conversation, in order.
#[derive(Debug)]
pub(super) struct TurnMessages {
    pub(super) turn: i32,
    /// True if the transcript begins with them.
    pub(super) is_new: bool,
    pub(super) messages: Vec<Message>,
}

/// Number of characters that a difference quotes of each side.
const QUOTED_CHARS: usize = 60;

/// Describes the first difference. `None`: the entries are the messages of the turns.
pub(super) fn find_difference(
    entries: &[TranscriptEntry],
    turns: &[&TurnMessages],
) -> Option<String> {
    let own = entries.iter().enumerate().filter(|(_, entry)| !entry.added);
    let found = join_replies(own.map(|(at, entry)| (at + 1, &entry.message)));
    let of_turns =
        turns.iter().flat_map(|it| it.messages.iter().map(move |message| (it.turn, message)));
    let stored = join_replies(of_turns);
    for (at, (turn, message)) in stored.iter().enumerate() {
        let role = role_name(message.role);
        let Some((entry, found)) = found.get(at) else {
            return Some(format!("it lacks the {role} of turn {turn}"));
        };
        if found != message {
            let difference = describe(found, message);
            return Some(format!("entry {entry} is not the {role} of turn {turn}: {difference}"));
        }
    }
    let (entry, _) = found.get(stored.len())?;
    Some(format!("entry {entry} is not among the stored messages"))
}

/// Joins neighbouring replies: the provider has one for each call of the model, and the stored messages may have one for several.
fn join_replies<'a, Place>(
    messages: impl Iterator<Item = (Place, &'a Message)>,
) -> Vec<(Place, Message)> {
    let mut joined: Vec<(Place, Message)> = Vec::new();
    for (place, message) in messages {
        let mut message = make_storable(message.clone());
        // Derived from the call, where it is known.
        message.tool_name = None;
        match joined.last_mut() {
            Some((_, last)) if last.role == Role::Assistant && message.role == Role::Assistant => {
                last.text.push_str(&message.text);
                last.tool_calls.append(&mut message.tool_calls);
            }
            _ => joined.push((place, message)),
        }
    }
    joined.retain(|(_, message)| {
        message.role != Role::Assistant
            || !message.text.trim().is_empty()
            || !message.tool_calls.is_empty()
    });
    joined
}

fn describe(found: &Message, stored: &Message) -> String {
    if found.role != stored.role {
        return format!("it is another kind of message, {}", role_name(found.role));
    }
    if found.text == stored.text {
        return "its calls of tools differ".to_owned();
    }
    let pairs = found.text.chars().zip(stored.text.chars());
    let n_same = pairs.take_while(|(one, other)| one == other).count();
    let rest = |text: &str| text.chars().skip(n_same).take(QUOTED_CHARS).collect::<String>();
    let (found, stored) = (rest(&found.text), rest(&stored.text));
    format!("after {n_same} equal characters it has {found:?}, and the stored message {stored:?}")
}

fn role_name(role: Role) -> &'static str {
    match role {
        Role::Assistant => "answer",
        Role::Tool => "result of a tool",
        Role::User | Role::System | Role::Notice | Role::Posts => "prompt",
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn entries(messages: &[(Role, &str)]) -> Vec<TranscriptEntry> {
        let entry = |(role, text): &(Role, &str)| TranscriptEntry {
            line_id: Uuid::nil(),
            added: *text == "go on",
            message: Message::new(*role, *text),
        };
        messages.iter().map(entry).collect()
    }

    fn turn(turn: i32, messages: &[(Role, &str)]) -> TurnMessages {
        let messages = messages.iter().map(|(role, text)| Message::new(*role, *text)).collect();
        TurnMessages { turn, is_new: turn == 1, messages }
    }

    #[test]
    fn the_first_difference_is_named() {
        use Role::{Assistant, User};
        let (one, two) = (
            turn(1, &[(User, "one"), (Assistant, "A long answer.")]),
            turn(2, &[(User, "two"), (Assistant, "Done.")]),
        );
        let difference = |found: &[(Role, &str)]| find_difference(&entries(found), &[&one, &two]);
        let all = [
            (User, "one"),
            (Assistant, "A long "),
            (User, "go on"),
            (Assistant, "answer."),
            (User, "two"),
            (Assistant, "Done."),
        ];
        assert_eq!(difference(&all), None);
        assert_eq!(difference(&all[..5]).unwrap(), "it lacks the answer of turn 2");
        let more = [&all[..], &[(User, "three")]].concat();
        assert_eq!(difference(&more).unwrap(), "entry 7 is not among the stored messages");
        let mut changed = all;
        changed[3].1 = "answer!";
        let expected = "entry 2 is not the answer of turn 1: after 13 equal characters it has \"!\", and the stored message \".\"";
        assert_eq!(difference(&changed).unwrap(), expected);
        let removed = [all[0], all[1], all[3], all[5]];
        let expected = "entry 2 is not the answer of turn 1: after 14 equal characters it has \"Done.\", and the stored message \"\"";
        assert_eq!(difference(&removed).unwrap(), expected);
    }
}
