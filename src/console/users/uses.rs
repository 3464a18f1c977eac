//! The sessions and turns that were shown a fact.

use maud::{Markup, html};

use crate::{
    console::{
        names::Names,
        page::Page,
        parts::{agent, empty, id, section, wide},
    },
    domain::facts::Fact,
    operations::{FactUse, ListFactUses, Refusal},
};

/// Turns of a session that are linked.
const MAX_TURNS: usize = 5;

pub(super) async fn show(page: &Page, fact: &Fact) -> Result<Markup, Refusal> {
    let list = ListFactUses { name: fact.user.clone(), fact: fact.id };
    let uses = page.caller.run(list).await?;
    let names = Names::load(page).await?;
    let command = format!("dalsegno memory facts uses {} {}", fact.user, fact.id);
    let table = html! {
        table.folds {
            thead { tr { th { "Session" } th { "Agent" } th { "Campaign" } th { "Last" } th { "Turns" } } }
            tbody { @for it in &uses.items { (row(page, it, &names)) } }
        }
    };
    let body = html! {
        @if uses.items.is_empty() { (empty("No session was shown this fact in the time for which records are kept.", &command)) }
        @else {
            (wide("Uses", &table))
            @if uses.has_more { p."small soft" { "More sessions were shown it; the list has the last ones." } }
        }
    };
    let end = html! { @if !uses.items.is_empty() { "newest first" } };
    Ok(section("Sessions that were shown it", &end, &body))
}

fn row(page: &Page, it: &FactUse, names: &Names) -> Markup {
    html! {
        tr {
            td {
                @if it.agent.is_some() { a href={ "/sessions/" (it.session_id) } { (id("", it.session_id)) } }
                @else { (id("", it.session_id)) }
            }
            td {
                @match it.agent.as_deref().zip(it.instance.as_deref()) {
                    Some((name, instance)) => (agent(name, instance)),
                    None => span.faint { "session removed" },
                }
            }
            td { (names.campaign(it.campaign_id)) }
            td { (page.view.time(it.last_at)) }
            td { @if it.agent.is_some() { (turns(it)) } }
        }
    }
}

/// Links the newest turns whose calls contained the fact.
fn turns(it: &FactUse) -> Markup {
    let n_more = it.turns.len().saturating_sub(MAX_TURNS);
    html! {
        @if it.turns.is_empty() { span.faint title="Not in its last 50 calls. Its agent read the fact with recall or wrote it, or the session continues one that was shown it." { "transcript only" } }
        @for (place, turn) in it.turns.iter().take(MAX_TURNS).enumerate() {
            @if place > 0 { ", " } a href={ "/sessions/" (it.session_id) "/turns/" (turn) } { (turn) }
        }
        @if n_more > 0 { " and " (n_more) " more" }
    }
}
