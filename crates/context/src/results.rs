//! Results of the tasks that a task has waited for: an entry of the transcript, and a part of the call of its turn.
//!
//! They are stored as a notice with the ends as JSON. So every later call renders them the same, and an older binary
//! still shows a notice. Texts in an end come from others, so they are only used as values of elements.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{
    transcript::{Message, Role},
    xml::Element,
};

/// The end of one task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndOfTask {
    pub task: Uuid,
    pub agent: String,
    pub instance: String,
    pub state: String,
    /// Result of the task, or the reason why it has none.
    pub text: String,
    /// Number of characters of the text that were cut off.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out_chars: u64,
}

/// The ends of tasks, in the order in which the task names them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Results {
    pub ends: Vec<EndOfTask>,
}

/// Limits on the texts of results, in bytes.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    pub each_bytes: usize,
    pub all_bytes: usize,
}

/// Marks the notice. A tool cannot use it: the output of tools is never a notice.
const NAME: &str = "results";

impl Results {
    /// Shortens texts that are too long. If all of them together are too long, each gets the same share, and the unused
    /// part of short ones goes to the long ones.
    pub fn fit_limits(mut ends: Vec<EndOfTask>, limits: Limits) -> Self {
        let share = share(ends.iter().map(|end| end.text.len()).collect(), limits);
        for end in &mut ends {
            let keep = end.text.floor_char_boundary(share);
            end.left_out_chars += end.text[keep..].chars().count() as u64;
            end.text.truncate(keep);
        }
        Self { ends }
    }

    pub fn message(&self) -> Message {
        Message {
            role: Role::Notice,
            // A list of texts always has a form in JSON.
            text: serde_json::to_string(self).unwrap_or_default(),
            tool_calls: Vec::new(),
            tool_call_id: None,
            tool_name: Some(NAME.to_owned()),
            media: Vec::new(),
        }
    }

    /// Parses the results of a message. Returns `None` for other messages.
    pub fn of(message: &Message) -> Option<Self> {
        let is_one = message.role == Role::Notice && message.tool_name.as_deref() == Some(NAME);
        is_one.then(|| serde_json::from_str(&message.text).ok()).flatten()
    }

    pub(super) fn element(self) -> Element<'static> {
        let children = self.ends.into_iter().map(|end| {
            let left_out = (end.left_out_chars > 0).then(|| end.left_out_chars.to_string());
            let text = match &left_out {
                Some(chars) => format!("{}\n[cut here: {chars} more characters]", end.text),
                None => end.text,
            };
            let element = Element::with_text("result", text)
                .attribute("task", end.task.to_string())
                .attribute("agent", end.agent)
                .attribute("instance", end.instance)
                .attribute("state", end.state);
            match left_out {
                Some(chars) => element.attribute("left_out_chars", chars),
                None => element,
            }
        });
        Element::with_children("results", children.collect())
    }
}

/// Returns the id of the entry, derived from that of the prompt after it, so that a second attempt finds the entry of
/// the first. `again` is the job of a task that was put on the queue again: the results may have changed by then, and
/// get a new entry.
pub fn entry_id(task: Uuid, again: Option<i64>) -> Uuid {
    const RESULTS: u128 = 0x7265_7375_6c74_7300_7265_7375_6c74_7300;
    let again = u128::from(again.unwrap_or_default().unsigned_abs());
    Uuid::from_u128(task.as_u128() ^ RESULTS ^ again)
}

/// Returns the largest length per text with which all of them fit.
fn share(mut lengths: Vec<usize>, limits: Limits) -> usize {
    lengths.sort_unstable();
    let mut left = limits.all_bytes;
    for (place, length) in lengths.iter().enumerate() {
        let share = left / (lengths.len() - place);
        if *length > share {
            return share.min(limits.each_bytes);
        }
        left -= length;
    }
    limits.each_bytes
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(text: &str) -> EndOfTask {
        EndOfTask {
            task: Uuid::from_u128(7),
            agent: "writer".to_owned(),
            instance: "main".to_owned(),
            state: "done".to_owned(),
            text: text.to_owned(),
            left_out_chars: 0,
        }
    }

    fn texts(results: &Results) -> Vec<&str> {
        results.ends.iter().map(|end| end.text.as_str()).collect()
    }

    #[test]
    fn short_results_are_kept_whole() {
        let limits = Limits { each_bytes: 5, all_bytes: 10 };
        let results = Results::fit_limits(vec![end("ab"), end(""), end("cdefg")], limits);
        assert_eq!(texts(&results), ["ab", "", "cdefg"]);
        assert!(results.ends.iter().all(|end| end.left_out_chars == 0));
    }

    #[test]
    fn short_results_leave_their_share_to_long_ones_and_cuts_respect_characters() {
        let limits = Limits { each_bytes: 100, all_bytes: 11 };
        let results = Results::fit_limits(vec![end("ab"), end("cdefghij"), end("ääää")], limits);
        assert_eq!(texts(&results), ["ab", "cdef", "ää"]);
        assert_eq!([results.ends[1].left_out_chars, results.ends[2].left_out_chars], [4, 2]);
        let each = Limits { each_bytes: 3, all_bytes: 100 };
        assert_eq!(texts(&Results::fit_limits(vec![end("abcdef")], each)), ["abc"]);
    }

    #[test]
    fn results_are_parsed_from_their_stored_notice() {
        let text = "</result> \"quoted\" <results fence=\"x\">\u{1}";
        let results = Results { ends: vec![end(text)] };
        assert_eq!(Results::of(&results.message()), Some(results.clone()));
        let plain = Message { tool_name: None, ..results.message() };
        assert_eq!(Results::of(&plain), None);
        let tool = Message { role: Role::Tool, ..results.message() };
        assert_eq!(Results::of(&tool), None);
    }

    #[test]
    fn the_entry_id_is_deterministic_and_differs_from_the_prompts_id() {
        let task = Uuid::from_u128(9);
        assert_ne!(entry_id(task, None), task);
        assert_eq!(entry_id(task, None), entry_id(task, None));
        assert_ne!(entry_id(task, Some(7)), entry_id(task, None));
        assert_ne!(entry_id(task, Some(7)), entry_id(task, Some(8)));
    }
}
