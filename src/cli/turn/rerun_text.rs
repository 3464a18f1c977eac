//! Text output of reruns: a table that compares tokens, cost and time, then the answers word by word.

use chrono::TimeDelta;

use super::list::{format_count, format_known_cost};
use crate::{
    cli::{
        output::{format_table, format_wrapped},
        sent_context::diff::{format_changes, indent},
        session::serialised_name,
        words::format_duration,
    },
    domain::{
        prices::incomparable_costs,
        reruns::{OriginalCall, Rerun, State},
    },
    operations::{TurnReruns, WordChangeKind, diff_words},
    transcript::ToolCall,
};

pub(super) fn format_reruns(listed: &TurnReruns) -> String {
    let TurnReruns { original, reruns, .. } = listed;
    let head = ["RERUN", "MODEL", "STATE", "IN", "OUT", "COST", "TOOK"];
    let rows = std::iter::once(original_row(original))
        .chain(reruns.iter().map(|rerun| row(rerun, original)));
    let mut text = format_table(&head, rows);
    if original.is_whole_turn {
        text.push_str("Tokens, cost and time of the turn are those of all its calls.\n");
    }
    let of_reruns = reruns.iter().map(|it| (format!("rerun {}", it.number), it.is_unpriced));
    let compared = std::iter::once(("the turn".to_owned(), original.is_unpriced)).chain(of_reruns);
    if let Some(note) = incomparable_costs(compared) {
        text.push_str(&format_wrapped("", &note));
    }
    let said = answer_text(original.answer.as_deref().unwrap_or_default(), &original.tool_calls);
    text.push_str(&format!("\nAnswer of the turn:\n{}\n", shown_or(&said, "not stored")));
    for rerun in reruns {
        text.push_str(&format!("\n{}", format_answer(rerun, original, &said)));
    }
    if reruns.is_empty() {
        text.push_str("\nThe call was not rerun: `dalsegno turn rerun` does it.\n");
    }
    text
}

fn original_row(original: &OriginalCall) -> [String; 7] {
    [
        "turn".to_owned(),
        original.model.clone(),
        "-".to_owned(),
        count(original.input_tokens),
        count(original.output_tokens),
        format_known_cost(original.cost_micros, original.is_unpriced),
        duration(original.took_ms),
    ]
}

fn row(rerun: &Rerun, original: &OriginalCall) -> [String; 7] {
    let cached = [rerun.cache_read_tokens, rerun.cache_creation_tokens];
    let input = rerun.input_tokens.map(|n| n + cached.iter().flatten().sum::<i64>());
    [
        rerun.number.to_string(),
        match rerun.provider == original.provider {
            true => rerun.model.clone(),
            false => format!("{} on {}", rerun.model, rerun.provider),
        },
        serialised_name(rerun.state),
        count(input),
        count(rerun.output_tokens),
        format_known_cost(rerun.cost_micros, rerun.is_unpriced),
        duration(rerun.took_ms),
    ]
}

/// Formats the answer of a rerun with its changes to that of the turn.
fn format_answer(rerun: &Rerun, original: &OriginalCall, said: &str) -> String {
    let mut changes: Vec<String> = Vec::new();
    let has_other_model = (&rerun.provider, &rerun.model) != (&original.provider, &original.model);
    changes.extend(has_other_model.then(|| format!("{} on {}", rerun.model, rerun.provider)));
    changes.extend(rerun.temperature.map(|value| format!("temperature {value}")));
    changes.extend(rerun.agent_file.as_deref().map(|file| match agent_name(file) {
        Some(name) => format!("with the agent file of `{name}`"),
        None => "with an agent file".to_owned(),
    }));
    let same = rerun.is_same_request == Some(true);
    changes.extend(same.then(|| "the same request, byte for byte".to_owned()));
    let title = match changes.is_empty() {
        true => format!("Rerun {}:", rerun.number),
        false => format!("Rerun {} ({}):", rerun.number, changes.join(", ")),
    };
    let mut text = format_wrapped("", &title);
    match (&rerun.answer, &rerun.error) {
        (Some(answer), _) => {
            let words = diff_words(said, &answer_text(answer, &rerun.tool_calls));
            match words.iter().all(|it| it.kind == WordChangeKind::Same) {
                true => text.push_str("  the same answer\n"),
                false => text.push_str(&format!("{}\n", indent(format_changes(&words).trim()))),
            }
        }
        (None, Some(error)) => text.push_str(&format_wrapped("  ", error)),
        (None, None) => text.push_str("  no answer yet\n"),
    }
    if rerun.partial && rerun.state == State::Done {
        text.push_str("  The answer broke off at the limit for its length.\n");
    }
    text
}

/// Returns the name in the front matter of an agent file.
fn agent_name(file: &str) -> Option<&str> {
    let line = file.lines().skip(1).take_while(|line| line.trim_end() != "---");
    line.filter_map(|line| line.strip_prefix("name:")).map(str::trim).next()
}

/// Returns an answer with its tool calls, which were not executed.
fn answer_text(answer: &str, tool_calls: &[ToolCall]) -> String {
    let calls =
        tool_calls.iter().map(|call| format!("[calls {} with {}]", call.name, call.arguments));
    let said = Some(answer.to_owned()).filter(|answer| !answer.is_empty());
    said.into_iter().chain(calls).collect::<Vec<_>>().join("\n")
}

fn shown_or(text: &str, otherwise: &str) -> String {
    indent(if text.is_empty() { otherwise } else { text })
}

fn count(tokens: Option<i64>) -> String {
    tokens.map_or_else(|| "-".to_owned(), format_count)
}

fn duration(millis: Option<i32>) -> String {
    let took = millis.map(|millis| TimeDelta::milliseconds(millis.into()));
    took.map_or_else(|| "-".to_owned(), format_duration)
}
