//! A long conversation with tool calls, and a scene for its compaction.

use dalsegno::{
    context::{
        Budget, Calibration, Entry,
        compaction::{Policy, View, plan::CompactionInput},
    },
    transcript::{Message, Role, ToolCall},
};
use uuid::Uuid;

/// Returns that many messages, in turns of four: a task, a call with its result, an answer of some two thousand characters.
pub fn entries(n_messages: usize) -> Vec<Entry> {
    (0..n_messages)
        .map(|at| Entry::new(Uuid::from_u128(at as u128), at as i64 + 1, message(at)))
        .collect()
}

pub fn scene<'a>(
    entries: &'a [Entry],
    calibration: &'a Calibration,
) -> anyhow::Result<CompactionInput<'a>> {
    Ok(CompactionInput {
        node: None,
        view: View::of(entries, &[], 0)?,
        budget: Budget::new(32_768, 8_192, 500)?,
        calibration,
        upcoming_tokens: 100,
        summariser_window_tokens: 32_768,
        policy: Policy::default(),
    })
}

fn message(at: usize) -> Message {
    let (role, n_sentences) = match at % 4 {
        0 => (Role::User, 12),
        1 => (Role::Assistant, 1),
        2 => (Role::Tool, 30),
        _ => (Role::Assistant, 30),
    };
    let call = ToolCall {
        id: format!("call_{at}"),
        name: "look_up".to_owned(),
        arguments: serde_json::json!({ "query": "harbour" }),
        thinking: None,
    };
    let calls = at % 4 == 1;
    Message {
        role,
        text: text(at, n_sentences),
        tool_calls: calls.then_some(call).into_iter().collect(),
        tool_call_id: (role == Role::Tool).then(|| format!("call_{}", at - 1)),
        tool_name: (role == Role::Tool).then(|| "look_up".to_owned()),
        media: Vec::new(),
    }
}

fn text(at: usize, n_sentences: usize) -> String {
    let sentence =
        |n: usize| format!("Part {at} describes ferry {n}, filed as INV-{at:05}-{n:02}. ");
    (0..n_sentences).map(sentence).collect()
}
