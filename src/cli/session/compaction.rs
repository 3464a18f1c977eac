//! Text output of a session before and after a compaction.

use super::show::serialised_name;
use crate::{
    cli::{
        fidelity::format_attempt,
        output::{format_table, format_wrapped, format_wrapped_fields, format_wrapped_table},
        words::time,
    },
    domain::{
        compactions::{
            CompactionComparison, ExactValue, MessagePlace, Outcome, ReplacedMessage, ValuePlace,
        },
        text::count,
    },
};

/// Width of the beginnings of messages, so that lines fit a terminal.
const BEGINNING_CHARS: usize = 34;
/// Maximum number of lost values that are printed. `--json` has more.
const LOST_MAX: usize = 30;

pub(super) fn format_comparison(compared: &CompactionComparison) -> String {
    let mut text = format_wrapped_fields(&fields(compared));
    let noun = if compared.is_extract() { "extract" } else { "summary" };
    if !compared.messages.is_empty() {
        text.push_str(&format!("\n{}", format_messages(&compared.messages, noun)));
        let note = format!(
            "A message that the {noun} covers may not be repeated in it. Values are exact strings, such as names and amounts, that are still sent word for word."
        );
        text.push_str(&format_wrapped("", &note));
    }
    if !compared.values.is_empty() {
        text.push_str(&format!("\n{}", format_values(compared)));
    }
    if !compared.attempts.is_empty() {
        text.push_str("\nRejected summaries:\n");
        text.extend(compared.attempts.iter().flat_map(format_attempt));
    }
    for (title, summary) in [
        ("Summary before", &compared.earlier_summary),
        (
            if noun == "extract" { "Extract after" } else { "Summary after" },
            &compared.compaction.summary,
        ),
    ] {
        let summary = summary.iter().map(|summary| format!("\n{title}:\n{}\n", summary.trim()));
        text.extend(summary);
    }
    text
}

fn fields(compared: &CompactionComparison) -> Vec<(&'static str, String)> {
    let CompactionComparison { session_id, compaction, is_current, .. } = compared;
    let generation = compaction.generation;
    let cause = serialised_name(compaction.cause);
    let mut fields = vec![
        ("compaction", format!("{generation} of session {session_id}, {cause}")),
        ("made", format!("{}, turn {}", time(compaction.created_at), compaction.turn)),
        ("state", state(compared)),
    ];
    let tokens_after = compaction.tokens_after.map(|after| format!(", {after} after"));
    let tokens = format!("{} before{}", compaction.tokens_before, tokens_after.unwrap_or_default());
    fields.push(("tokens", tokens));
    match compared.is_extract() {
        true => fields.push(("made by", "rules, without a model: an extract".to_owned())),
        false => fields.extend(compaction.model.iter().map(|model| ("model", model.clone()))),
    }
    fields.extend(compaction.node.iter().map(|node| ("node", node.clone())));
    if *is_current {
        fields.push(("undo", format!("dalsegno session uncompact {session_id}")));
    }
    if compared.was_applied() {
        fields.push(("messages", format!("dalsegno session archives {session_id} {generation}")));
    }
    fields
}

fn state(compared: &CompactionComparison) -> String {
    let compaction = &compared.compaction;
    match (compaction.outcome, compared.is_current, compaction.undone_at) {
        (Outcome::Applied, true, _) => "the session uses it".to_owned(),
        (Outcome::Applied, false, Some(at)) => format!("undone {}", time(at)),
        (Outcome::Applied, false, None) => "a later compaction has replaced it".to_owned(),
        (Outcome::Prepared, ..) => "prepared; used when the context runs full".to_owned(),
        (Outcome::Stale, ..) => "never used: the session had changed before".to_owned(),
        (Outcome::Refused, ..) => {
            "failed: no summary passed the checks, and nothing was replaced".to_owned()
        }
    }
}

fn format_messages(messages: &[ReplacedMessage], noun: &str) -> String {
    let row = |message: &ReplacedMessage| {
        let ReplacedMessage { seq, role, beginning, .. } = message;
        [
            format!("#{seq}"),
            serialised_name(role),
            one_line(beginning),
            message_place(message, noun),
        ]
    };
    format_table(&["PLACE", "FROM", "BEFORE", "AFTER"], messages.iter().map(row))
}

/// Returns the beginning of a text in one line.
fn one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(BEGINNING_CHARS) {
        Some((end, _)) => format!("{}…", line[..end].trim_end()),
        None => line,
    }
}

fn message_place(message: &ReplacedMessage, noun: &str) -> String {
    let ReplacedMessage { place, values, values_shown, .. } = message;
    match place {
        MessagePlace::Kept => "kept word for word".to_owned(),
        MessagePlace::Shortened => "kept, shortened".to_owned(),
        MessagePlace::Sentences => format!("sentences, {noun}"),
        MessagePlace::Summary if *values == 0 => format!("covered by the {noun}"),
        MessagePlace::Summary => {
            format!("{noun}, {values_shown} of {}", count(*values, "value", "values"))
        }
        MessagePlace::Archive => "archive only".to_owned(),
    }
}

fn format_values(compared: &CompactionComparison) -> String {
    let values = &compared.values;
    let of = |place| values.iter().filter(move |value| value.place == place);
    let n = |place| of(place).count();
    let more = match compared.more_values {
        0 => String::new(),
        n => format!("; {n} less important ones were not looked up"),
    };
    let head = format!(
        "{}, such as names and amounts: {} in the {}, {} in kept texts, {} only in the archive{more}",
        count(values.len(), "exact value", "exact values"),
        n(ValuePlace::Summary),
        if compared.is_extract() { "extract" } else { "summary" },
        n(ValuePlace::KeptText),
        n(ValuePlace::Archive),
    );
    let mut text = format_wrapped("", &head);
    if n(ValuePlace::Archive) > 0 {
        let row = |value: &ExactValue| ([serialised_name(value.kind)], value.text.clone());
        let lost = of(ValuePlace::Archive).take(LOST_MAX).map(row);
        text.push_str(&format_wrapped_table(&["KIND"], lost, "ONLY IN THE ARCHIVE"));
    }
    text
}
