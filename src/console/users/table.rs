//! Facts as rows, and one fact with its history.

use maud::{Markup, html};

use super::{actions, address};
use crate::{
    console::{
        page::Page,
        parts::{Tone, facts as fact_list, id, section},
    },
    domain::facts::{EndReason, Fact, Source, Trust},
};

pub(super) fn facts<'a>(page: &Page, items: impl Iterator<Item = &'a Fact>) -> Markup {
    html! {
        table.folds {
            thead { tr { th { "State" } th { "About" } th { "Fact" } th { "From" } th { "Since" } } }
            tbody { @for fact in items { (row(page, fact)) } }
        }
    }
}

fn row(page: &Page, fact: &Fact) -> Markup {
    html! {
        tr.gone[!fact.is_current(page.view.now)] {
            td { (state(page, fact)) }
            td { bdi { (fact.attribute) } }
            td.text { a href={ (address(&fact.user)) "&fact=" (fact.id) "#fact" } { bdi { (fact.text) } } }
            td { (source(fact)) }
            td { (page.view.time(fact.valid_from)) }
        }
    }
}

fn state(page: &Page, fact: &Fact) -> Markup {
    match (fact.ended_because, fact.is_current(page.view.now)) {
        (_, true) => Tone::Running.state("valid", None),
        (Some(EndReason::Contradicted), _) => Tone::Done.state("contradicted", None),
        (Some(EndReason::Edited), _) => Tone::Done.state("edited", None),
        (Some(EndReason::Revoked), _) => Tone::Cancelled.state("revoked", None),
        _ => Tone::Done.state("ended", None),
    }
}

fn source(fact: &Fact) -> &'static str {
    match fact.source {
        Source::Extracted => "read from requests",
        Source::Written => "written by an agent",
        Source::Stated => "stated by a person",
        Source::Edited => "edited by a person",
    }
}

/// A fact with its origin, its history, and the forms for its change.
pub(super) fn one(page: &Page, fact: &Fact) -> Markup {
    let other = |id_of: Option<uuid::Uuid>, noun: &str, path: &str| html! { @if let Some(it) = id_of { a href={ "/" (path) "/" (it) } { (id(noun, it)) } } };
    let rows = fact_list(&[
        ("State", state(page, fact)),
        ("About", html! { bdi { (fact.attribute) } }),
        ("From", html! { (source(fact)) }),
        (
            "Trusted as",
            html! { @match fact.trust { Trust::Operator => "a person's words", Trust::Agent => "an agent's words" } },
        ),
        ("Author", html! { bdi { (fact.author) } }),
        ("Campaign", other(fact.campaign_id, "", "campaigns")),
        ("Session", other(fact.session_id, "", "sessions")),
        ("Task", other(fact.task_id, "", "tasks")),
        ("Said", page.view.time(fact.valid_from)),
        ("Ended", html! { @if let Some(at) = fact.valid_until { (page.view.time(at)) } }),
        ("Expires", html! { @if let Some(at) = fact.expires_at { (page.view.time(at)) } }),
        (
            "Ended by",
            html! { @if let Some(next) = fact.replaced_by { a href={ (address(&fact.user)) "&fact=" (next) "#fact" } { "a later fact" } } },
        ),
    ]);
    let body = html! {
        p dir="auto" { (fact.text) }
        div.after { (rows) }
        @if fact.is_current(page.view.now) { (actions::change(page, fact)) }
    };
    let end = html! { a href=(address(&fact.user)) { "all facts" } };
    html! { div #fact { (section("Fact", &end, &body)) } }
}
