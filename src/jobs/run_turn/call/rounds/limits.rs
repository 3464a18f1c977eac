//! Limits of tool calls, and the texts that tell the model about them. Pure.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::{jobs::run_turn::call::rounds::record::Outcome, tools::Answer, transcript::ToolCall};

/// Number of times that each call was made in this turn.
#[derive(Default)]
pub struct CallCounts(Vec<(String, Value, u32)>);

/// The text that the model gets for a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolReply {
    pub text: String,
    pub outcome: Outcome,
}

/// The decision about a call.
#[derive(Debug, PartialEq)]
pub enum Verdict {
    Make(Value),
    Refuse(ToolReply),
}

/// Calls of one answer that are made; further ones are refused.
pub const MAX_CALLS_PER_ANSWER: usize = 16;

/// Notice for the model's last call in a turn, which has no tools.
pub const LAST_CALL: &str = "\
You can call no more tools in this turn. Answer now, in words, with what you have. Say what is still open.";

const ABOUT_THE_REST_CHARS: usize = 400;

/// Returns the arguments as an object, which every tool requires. Some models write it as a string.
pub fn arguments(call: &ToolCall) -> Option<Value> {
    match &call.arguments {
        object @ Value::Object(_) => Some(object.clone()),
        Value::Null => Some(Value::Object(Map::new())),
        Value::String(text) if text.trim().is_empty() => Some(Value::Object(Map::new())),
        Value::String(text) => serde_json::from_str(text).ok().filter(Value::is_object),
        _ => None,
    }
}

/// Decides about a call. `at` is its position in its answer.
pub fn check_call(call: &ToolCall, at: usize, made: &mut CallCounts, most_same: u32) -> Verdict {
    let refuse = |outcome, text: String| Verdict::Refuse(ToolReply { text, outcome });
    if at >= MAX_CALLS_PER_ANSWER {
        let text = format!(
            "Not called: at most {MAX_CALLS_PER_ANSWER} calls of one answer are made. Read their results first, then call again."
        );
        return refuse(Outcome::TooMany, text);
    }
    let n_made = made.count(call);
    if n_made > most_same {
        let text = format!(
            "Not called: you have made this call {most_same} times in this turn, and its result is above. Continue with it, or do something else."
        );
        return refuse(Outcome::Repeated, text);
    }
    match arguments(call) {
        Some(arguments) => Verdict::Make(arguments),
        None => {
            let text = "The arguments are not a JSON object. Write one that follows the schema of the tool, and call again.";
            refuse(Outcome::Unreadable, text.to_owned())
        }
    }
}

/// Builds the reply for the model. `max_chars` is the limit that the tool was given; a hint about left-out text comes
/// on top.
pub fn build_reply(answer: Option<Answer>, limit: Duration, max_chars: usize) -> ToolReply {
    let Some(Answer { text, is_error }) = answer else {
        let text = format!(
            "Error: the tool did not answer within {} s and was stopped. It may or may not have taken effect: check before you call it again.",
            limit.as_secs()
        );
        return ToolReply { text, outcome: Outcome::TimedOut };
    };
    let outcome = if is_error { Outcome::Failed } else { Outcome::Done };
    let text = if is_error { format!("Error: {text}") } else { text };
    ToolReply { text: shorten_text(text, max_chars.saturating_add(ABOUT_THE_REST_CHARS)), outcome }
}

/// Cuts a long text. An empty result becomes a text, because a model would take it for a lost call.
fn shorten_text(text: String, max_chars: usize) -> String {
    if text.trim().is_empty() {
        return "(no output)".to_owned();
    }
    let Some((end, _)) = text.char_indices().nth(max_chars) else { return text };
    let all = text.chars().count();
    let left_out = all - max_chars;
    format!(
        "{}\n[cut here: {left_out} of {all} characters are left out. Ask for less at a time.]",
        &text[..end]
    )
}

impl CallCounts {
    /// Counts a call, and returns its number.
    fn count(&mut self, call: &ToolCall) -> u32 {
        let is_same = |(name, arguments, _): &&mut (String, Value, u32)| {
            *name == call.name && *arguments == call.arguments
        };
        match self.0.iter_mut().find(is_same) {
            Some((_, _, n)) => {
                *n = n.saturating_add(1);
                *n
            }
            None => {
                self.0.push((call.name.clone(), call.arguments.clone(), 1));
                1
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call(name: &str, arguments: Value) -> ToolCall {
        ToolCall { id: "1".to_owned(), name: name.to_owned(), arguments, thinking: None }
    }

    fn outcome(call: &ToolCall, made: &mut CallCounts) -> Option<Outcome> {
        match check_call(call, 0, made, 2) {
            Verdict::Make(_) => None,
            Verdict::Refuse(told) => Some(told.outcome),
        }
    }

    #[test]
    fn the_same_call_is_limited_even_with_other_calls_between() {
        let mut made = CallCounts::default();
        let same = call("post", json!({ "a": 1, "b": 2 }));
        let turned = call("post", json!({ "b": 2, "a": 1 }));
        let other = call("post", json!({ "a": 2 }));
        let asked = [&same, &other, &turned, &other, &same, &turned];
        let outcomes = asked.map(|call| outcome(call, &mut made));
        let repeated = Some(Outcome::Repeated);
        assert_eq!(outcomes, [None, None, None, None, repeated, repeated]);
    }

    #[test]
    fn calls_of_one_answer_are_limited() {
        let mut made = CallCounts::default();
        let calls = (0..20).map(|n| check_call(&call("post", json!({ "n": n })), n, &mut made, 2));
        let n_made = calls.filter(|judged| matches!(judged, Verdict::Make(_))).count();
        assert_eq!(n_made, MAX_CALLS_PER_ANSWER);
    }

    #[test]
    fn unreadable_arguments_are_refused_and_text_arguments_are_parsed() {
        let mut made = CallCounts::default();
        for odd in [json!([1]), json!("{"), json!("[]"), json!(7)] {
            assert_eq!(outcome(&call("post", odd), &mut made), Some(Outcome::Unreadable));
        }
        let as_text = check_call(&call("post", json!("{\"a\":1}")), 0, &mut made, 2);
        assert_eq!(as_text, Verdict::Make(json!({ "a": 1 })));
        assert_eq!(
            check_call(&call("post", Value::Null), 0, &mut made, 2),
            Verdict::Make(json!({}))
        );
    }

    #[test]
    fn long_results_are_cut_with_a_notice() {
        assert_eq!(shorten_text("äbcde".to_owned(), 5), "äbcde");
        assert_eq!(shorten_text(" \n".to_owned(), 5), "(no output)");
        let short = shorten_text("äääö".to_owned(), 2);
        assert!(short.starts_with("ää\n[cut here: 2 of 4 characters"), "{short}");
        let limit = Duration::from_secs(9);
        let failed = build_reply(Some(Answer { text: "no".to_owned(), is_error: true }), limit, 99);
        assert_eq!(failed, ToolReply { text: "Error: no".to_owned(), outcome: Outcome::Failed });
        assert!(build_reply(None, limit, 99).text.contains("within 9 s"));
    }
}
