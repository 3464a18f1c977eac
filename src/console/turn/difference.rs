//! The difference between the contexts of two turns, of one session or of two.

use maud::{Markup, html};
use uuid::Uuid;

use crate::{
    console::{
        page::Page,
        parts::{empty, id, marks_words, section, tokens, wide, word_diff},
    },
    domain::{class::Kind, manifests::Span, turns::Turn},
    operations::{CompareContexts, PartChange, PartDiff, Refusal, ShowTurn},
};

/// A turn that a person names: by its number in this session, or by a link to the page of any turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct GivenTurn {
    session: Uuid,
    number: i32,
}

impl GivenTurn {
    fn of(turn: &Turn) -> Self {
        Self { session: turn.session_id, number: turn.number }
    }

    /// Reads `7`, `/sessions/ID/turns/7`, the address of that page, or `ID 7`.
    pub(super) fn parse(text: &str, session: Uuid) -> Option<Self> {
        let mut parts = text
            .split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'))
            .filter(|part| !part.is_empty());
        let given = parts.clone().find_map(|part| Uuid::try_parse(part).ok());
        let number = match given {
            Some(_) => parts
                .skip_while(|part| Uuid::try_parse(part).is_err())
                .find_map(|part| part.parse().ok()),
            None => {
                parts.next().and_then(|part| part.parse().ok()).filter(|_| parts.next().is_none())
            }
        };
        let number = number.filter(|number| *number > 0)?;
        Some(Self { session: given.unwrap_or(session), number })
    }
}

/// The form that chooses the other turn.
pub(super) fn form(here: &str, number: i32, with: &str) -> Markup {
    // The first turn has none before it.
    let before = if number > 1 { (number - 1).to_string() } else { String::new() };
    let value = if with.is_empty() { &before } else { with };
    let body = html! {
        form action={ (here) "#compared" } {
            div.field {
                label for="with" { "Other turn: its number, or the link of a turn of any session" }
                input #with name="with" value=(value) maxlength="300" required autocomplete="off";
            }
            div."actions after" { button.btn { "Compare" } }
        }
    };
    section("Compare contexts", &html! {}, &body)
}

pub(super) async fn show(page: &Page, own: &Turn, with: &str) -> Result<Markup, Refusal> {
    let Some(other) = GivenTurn::parse(with, own.session_id) else {
        let words =
            "The text names no turn: write a number, or paste the address of the page of a turn.";
        return Ok(framed(&html! {}, &empty(words, "")));
    };
    let show_other = ShowTurn { id: other.session, number: other.number };
    let found = match page.caller.run_if_allowed(show_other).await {
        Ok(found) => found,
        // The comparison says what is missing.
        Err(refusal) if refusal.kind == Kind::NotFound => None,
        Err(refusal) => return Err(refusal),
    };
    let is_newer = found.as_ref().is_some_and(|found| began_before(own, &found.turn.turn));
    let other = found.map_or(other, |found| GivenTurn::of(&found.turn.turn));
    let own = GivenTurn::of(own);
    if other == own {
        return Ok(framed(&html! {}, &empty("This is the turn itself: name another one.", "")));
    }
    let (from, to) = if is_newer { (own, other) } else { (other, own) };
    let ask = CompareContexts {
        id: from.session,
        from: from.number,
        to: to.number,
        to_session: Some(to.session),
    };
    let command = format!("dalsegno turn ls {}", other.session);
    let diff = match page.caller.run_if_allowed(ask).await {
        Ok(Some(diff)) => diff,
        Ok(None) => {
            return Ok(framed(
                &html! {},
                &empty("The key of this sign-in may not compare contexts.", ""),
            ));
        }
        Err(refusal) if matches!(refusal.kind, Kind::NotFound | Kind::Conflict) => {
            return Ok(framed(&html! {}, &empty(&refusal.detail, &command)));
        }
        Err(refusal) => return Err(refusal),
    };
    let from = html! {
        "the older "
        a href={ "/sessions/" (diff.from.session_id) "/turns/" (diff.from.turn) } { "turn " (diff.from.turn) }
        @if diff.from.session_id != diff.to.session_id { " of " (id("session", diff.from.session_id)) }
    };
    let body = html! {
        p."small soft" {
            "From " (from) " (" bdi { (diff.from.model) } ", " (tokens(diff.from.estimated_tokens)) " tokens) to the newer " a href={ "/sessions/" (diff.to.session_id) "/turns/" (diff.to.turn) } { "turn " (diff.to.turn) }
            " (" bdi { (diff.to.model) } ", " (tokens(diff.to.estimated_tokens)) " tokens). " (marks_words())
            @if let (Some(shared), Some(all)) = (diff.shared_bytes, diff.to_bytes) { " The first " (tokens(shared)) " of " (tokens(all)) " bytes are the same, so a provider can reuse its cache of them." }
        }
        @if diff.parts.is_empty() {
            (empty("Both contexts have the same parts.", ""))
        } @else {
            (wide("Changed parts", &html! {
                table.tree {
                    thead { tr { th { "Part" } th { "Change" } th.num { "Older" } th.num { "Newer" } } }
                    tbody { @for part in &diff.parts { (row(part)) } }
                }
            }))
        }
    };
    Ok(framed(&html! { "turn " (diff.from.turn) " → " (diff.to.turn) }, &body))
}

/// Returns true if a turn is older than another one. Turns of one moment follow their numbers.
fn began_before(turn: &Turn, other: &Turn) -> bool {
    (turn.started_at, turn.number) < (other.started_at, other.number)
}

fn framed(end: &Markup, body: &Markup) -> Markup {
    html! { div #compared { (section("Compared with another turn", end, body)) } }
}

fn row(part: &PartDiff) -> Markup {
    let change = match part.change {
        PartChange::Added => "added",
        PartChange::Removed => "removed",
        PartChange::Changed => "changed",
    };
    html! {
        tr { td { (part.kind.replace('_', " ")) @if let Some(id) = &part.id { " " code.faint { bdi { (id) } } } @if part.span_before != part.span_after { div."tiny soft" { (spans(part)) } } } td { (change) ", " (part.reason) } td.num { (tokens(part.tokens_before)) } td.num { (tokens(part.tokens_after)) } }
        @if !part.words.is_empty() { tr { td colspan="4" { (word_diff(&part.words)) } } }
    }
}

/// Names the messages or posts before and after the change.
fn spans(part: &PartDiff) -> Markup {
    html! { (Span::format_range(part.span_before)) " → " (Span::format_range(part.span_after)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_other_messages_names_both_ranges() {
        let span = |from_seq, to_seq| Some(Span { from_seq, to_seq, count: None });
        let mut part = PartDiff {
            kind: "transcript".to_owned(),
            id: None,
            change: PartChange::Changed,
            tokens_before: 10,
            tokens_after: 20,
            span_before: None,
            span_after: span(1, 4),
            reason: "recent history".to_owned(),
            words: Vec::new(),
        };
        assert_eq!(spans(&part).0, "none → 1 to 4");
        part.span_before = span(1, 1);
        assert!(row(&part).0.contains("1 → 1 to 4"));
        part.span_before = part.span_after;
        assert!(!row(&part).0.contains("1 to 4"), "an unchanged range is not news");
    }

    #[test]
    fn a_turn_is_named_by_its_number_or_by_a_link() {
        let (here, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let parse = |text: &str| GivenTurn::parse(text, here).map(|it| (it.session, it.number));
        assert_eq!(parse(" 7 "), Some((here, 7)));
        for text in [
            format!("/sessions/{other}/turns/7"),
            format!("https://console.example:7770/sessions/{other}/turns/7?call=2#request"),
            format!("{other} 7"),
        ] {
            assert_eq!(parse(&text), Some((other, 7)), "{text}");
        }
        for text in ["", "seven", "7 8", "-7", "0", "99999999999", &other.to_string(), "<script>"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
