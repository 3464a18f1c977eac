//! The difference between the contexts of two turns.

use maud::{Markup, html};
use uuid::Uuid;

use crate::{
    console::{
        page::Page,
        parts::{empty, section, tokens, wide},
    },
    operations::{CompareContexts, PartChange, PartDiff, Refusal, WordChangeKind},
};

/// Words that are shown of a changed part.
const MAX_WORDS: usize = 400;

/// The form that chooses the other turn.
pub(super) fn form(here: &str, number: i32, n_turns: i32) -> Markup {
    if n_turns < 2 {
        return html! {};
    }
    let default = if number > 1 { number - 1 } else { number + 1 };
    let body = html! {
        form.filters action=(here) {
            label { "Other turn" input type="number" name="with" min="1" max=(n_turns) value=(default); }
            button.btn { "Compare" }
        }
    };
    section("Compare contexts", &html! {}, &body)
}

pub(super) async fn show(page: &Page, id: Uuid, number: i32, with: i32) -> Result<Markup, Refusal> {
    let ask = CompareContexts { id, from: with, to: number, to_session: None };
    let Some(diff) = page.caller.run_if_allowed(ask).await? else { return Ok(html! {}) };
    let body = html! {
        p."small soft" { (tokens(diff.from.estimated_tokens)) " tokens in turn " (with) ", " (tokens(diff.to.estimated_tokens)) " in turn " (number) }
        @if diff.parts.is_empty() {
            (empty("Both contexts have the same parts.", &format!("dalsegno context diff {id} {with} {number}")))
        } @else {
            (wide("Changed parts", &html! {
                table.tree {
                    thead { tr { th { "Part" } th { "Change" } th.num { "Before" } th.num { "After" } } }
                    tbody { @for part in &diff.parts { (row(part)) } }
                }
            }))
        }
    };
    Ok(section("Compared with another turn", &html! { "turn " (with) " → " (number) }, &body))
}

fn row(part: &PartDiff) -> Markup {
    let change = match part.change {
        PartChange::Added => "added",
        PartChange::Removed => "removed",
        PartChange::Changed => "changed",
    };
    html! {
        tr { td { (part.kind.replace('_', " ")) @if let Some(id) = &part.id { " " code.faint { bdi { (id) } } } } td { (change) ", " (part.reason) } td.num { (tokens(part.tokens_before)) } td.num { (tokens(part.tokens_after)) } }
        @if !part.words.is_empty() {
            tr { td colspan="4" { div."diff said" dir="auto" {
                @for change in part.words.iter().take(MAX_WORDS) {
                    @match change.kind {
                        WordChangeKind::Same => (change.text),
                        WordChangeKind::Added => ins { (change.text) },
                        WordChangeKind::Removed => del { (change.text) },
                    }
                }
            } } }
        }
    }
}
