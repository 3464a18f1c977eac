//! Text output of the difference between two contexts.

use crate::{
    cli::output::{format_wrapped, format_wrapped_fields},
    domain::manifests::Span,
    operations::{ComparedContext, ContextDiff, PartChange, PartDiff, WordChange, WordChangeKind},
};

/// Characters of an unchanged stretch that are shown beside a change.
const BESIDE_CHARS: usize = 60;

pub(super) fn format_diff(diff: &ContextDiff) -> String {
    let mut text = format_wrapped_fields(&fields(diff));
    if diff.parts.is_empty() {
        text.push_str("\nBoth turns were sent the same.\n");
    }
    for part in &diff.parts {
        text.push_str(&format!("\n{}", format_part(part)));
    }
    text
}

fn fields(diff: &ContextDiff) -> Vec<(&'static str, String)> {
    let ContextDiff { from, to, .. } = diff;
    let tokens = match from.counted_tokens.zip(to.counted_tokens) {
        Some((before, after)) => format!("{before} to {after} ({:+})", after - before),
        None => {
            let (before, after) = (from.estimated_tokens, to.estimated_tokens);
            format!("about {before} to {after} ({:+})", after - before)
        }
    };
    let mut fields = vec![("from", side(from)), ("to", side(to)), ("tokens", tokens)];
    fields.extend(cache(diff).map(|cache| ("cache", cache)));
    fields
}

/// Describes the effect on the provider's cache. `None` if one of the two cannot be assembled.
fn cache(diff: &ContextDiff) -> Option<String> {
    let ContextDiff { from, to, .. } = diff;
    if (&from.provider, &from.model) != (&to.provider, &to.model) {
        return Some("none: each model has a cache of its own".to_owned());
    }
    let (shared, all) = (diff.shared_bytes?, diff.to_bytes.filter(|n| *n > 0)?);
    let percent = shared.saturating_mul(100) / all;
    Some(format!(
        "the first {shared} of {all} bytes are the same: a cache can serve {percent} % of the prompt"
    ))
}

fn side(context: &ComparedContext) -> String {
    let ComparedContext { session_id, turn, model, provider, .. } = context;
    format!("turn {turn} of session {session_id}, {model} on {provider}")
}

fn format_part(part: &PartDiff) -> String {
    let kind = part.kind.replace('_', " ");
    let name = match &part.id {
        Some(id) => format!("{kind} {id}"),
        None => kind,
    };
    let change = match part.change {
        PartChange::Added => format!("added, {} tokens", part.tokens_after),
        PartChange::Removed => format!("removed, {} tokens", part.tokens_before),
        PartChange::Changed => {
            format!("changed, {} to {} tokens", part.tokens_before, part.tokens_after)
        }
    };
    let (before, after) = (part.span_before, part.span_after);
    let spans = match before == after {
        true => String::new(),
        false => {
            format!(", {} instead of {}", Span::format_range(after), Span::format_range(before))
        }
    };
    let head = format_wrapped("", &format!("{name}: {change}{spans}; {}", part.reason));
    let words: String = match part.change {
        PartChange::Changed => format_changes(&part.words),
        PartChange::Added | PartChange::Removed => {
            part.words.iter().map(|words| words.text.as_str()).collect()
        }
    };
    match words.trim() {
        "" => head,
        words => format!("{head}{}\n", indent(words)),
    }
}

/// Formats a text with its changes. Long unchanged stretches are abridged.
pub(in crate::cli) fn format_changes(words: &[WordChange]) -> String {
    words.iter().map(format_words).collect()
}

/// Marks a change as `git diff --word-diff` does.
fn format_words(words: &WordChange) -> String {
    match words.kind {
        WordChangeKind::Same => abridge(&words.text),
        WordChangeKind::Added => format!("{{+{}+}}", words.text),
        WordChangeKind::Removed => format!("[-{}-]", words.text),
    }
}

/// Leaves out the middle of a long unchanged stretch.
fn abridge(text: &str) -> String {
    let n_chars = text.chars().count();
    if n_chars <= 3 * BESIDE_CHARS {
        return text.to_owned();
    }
    let begin: String = text.chars().take(BESIDE_CHARS).collect();
    let end: String = text.chars().skip(n_chars - BESIDE_CHARS).collect();
    format!("{begin} […] {end}")
}

pub(in crate::cli) fn indent(text: &str) -> String {
    text.lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_unchanged_stretches_are_abridged() {
        let abridged = abridge(&"word ".repeat(100));
        assert!(abridged.contains(" […] ") && abridged.len() < 150, "{abridged}");
        assert_eq!(abridge("short"), "short");
    }
}
