//! Two versions of a text, word by word.

use maud::{Markup, html};

use crate::operations::{WordChange, WordChangeKind};

/// Changes that are shown of a text.
const MAX_CHANGES: usize = 400;
/// Changes that a person can unfold after these.
const MAX_FURTHER: usize = 4_000;
/// Longest added or removed stretch.
const STRETCH_MAX_CHARS: usize = 12_000;
/// Characters of an unchanged stretch that are shown beside a change.
const BESIDE_CHARS: usize = 240;

/// Renders the changes with some of the unchanged text around them.
pub(in crate::console) fn word_diff(changes: &[WordChange]) -> Markup {
    let last = changes.len().saturating_sub(1);
    html! {
        div."diff said" dir="auto" tabindex="0" role="group" aria-label="Differences" {
            @for (place, change) in changes.iter().enumerate().take(MAX_CHANGES) { (stretch(change, place, last)) }
        }
        @if changes.len() > MAX_CHANGES {
            details.after {
                summary { (changes.len() - MAX_CHANGES) " further stretches" }
                div."diff said" dir="auto" tabindex="0" role="group" aria-label="Further differences" {
                    @for (place, change) in changes.iter().enumerate().skip(MAX_CHANGES).take(MAX_FURTHER) { (stretch(change, place, last)) }
                }
                @if changes.len() > MAX_CHANGES + MAX_FURTHER { p."small soft after" { (changes.len() - MAX_CHANGES - MAX_FURTHER) " more are not shown." } }
            }
        }
    }
}

/// Says which marks of a comparison belong to which side.
pub(in crate::console) fn marks_words() -> Markup {
    html! { del { "Removed" } " text is in the older one only, " ins { "added" } " text in the newer one only." }
}

fn stretch(change: &WordChange, place: usize, last: usize) -> Markup {
    html! {
        @match change.kind {
            WordChangeKind::Same => (same(&change.text, place > 0, place < last)),
            WordChangeKind::Added => ins { (cut(&change.text)) },
            WordChangeKind::Removed => del { (cut(&change.text)) },
        }
    }
}

/// Shows the ends of an unchanged stretch that are next to a change.
fn same(text: &str, has_before: bool, has_after: bool) -> Markup {
    let chars: Vec<(usize, char)> = text.char_indices().collect();
    let (begin, end) =
        (if has_before { BESIDE_CHARS } else { 0 }, if has_after { BESIDE_CHARS } else { 0 });
    if chars.len() <= begin + end + BESIDE_CHARS / 4 {
        return html! { (text) };
    }
    let byte = |place: usize| chars.get(place).map_or(text.len(), |(byte, _)| *byte);
    let n_hidden = chars.len() - begin - end;
    html! {
        (text[..byte(begin)])
        span.omitted { " … " (n_hidden) " unchanged characters … " }
        (text[byte(chars.len() - end)..])
    }
}

fn cut(text: &str) -> Markup {
    match text.char_indices().nth(STRETCH_MAX_CHARS) {
        None => html! { (text) },
        Some((end, _)) => {
            html! { (text[..end]) span.omitted { " … " (text[end..].chars().count()) " further characters" } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::diff_words;

    #[test]
    fn changes_are_marked_and_hostile_text_is_escaped() {
        let shown = word_diff(&diff_words("a <b> c", "a <script> c")).0;
        assert!(shown.contains("<del>&lt;b&gt;</del><ins>&lt;script&gt;</ins>"), "{shown}");
    }

    #[test]
    fn the_unchanged_middle_of_a_long_text_is_left_out() {
        let long = "ä".repeat(1_000_000);
        let shown = word_diff(&diff_words(&format!("{long} old"), &format!("{long} new"))).0;
        assert!(shown.len() < 2_000, "{} bytes", shown.len());
        assert!(shown.contains("unchanged characters") && shown.contains("<ins>new</ins>"));
        let removed = word_diff(&diff_words(&long, "")).0;
        assert!(removed.contains("further characters"));
        assert!(word_diff(&diff_words("one two", "one three")).0.contains("one "));
    }
}
