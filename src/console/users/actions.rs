//! The forms of facts: state, edit, revoke, and forget a user.

use maud::{Markup, html};

use super::address;
use crate::{
    console::{
        page::Page,
        parts::{Action, Confirmation, section},
    },
    domain::facts::Fact,
    operations::{EditFact, ForgetUser, RevokeFact, StateFact},
};

pub(super) fn forget(page: &Page, name: &str) -> Markup {
    let (then, fields) = (address(name), [("name", name)]);
    let forget = Confirmation {
        action: Action::of::<ForgetUser>("Forget", "", &fields, &then).class("btn danger"),
        id: "confirm-forget",
        heading: "Forget this user",
        consequences: html! { p { "All facts about them are removed for good, with their history. Prompts, transcripts, summaries and records stay; the erasure of a campaign removes those." } },
        fields: html! {},
        command: format!("dalsegno memory facts forget {name}"),
    };
    forget.button(&page.view, &page.caller)
}

pub(super) fn state(page: &Page, name: &str) -> Markup {
    let (then, fields) = (address(name), [("name", name)]);
    let state = Action::of::<StateFact>("State", "", &fields, &then);
    if !state.is_allowed(&page.caller) {
        return html! {};
    }
    let form = html! {
        div.field { label for="attribute" { "What it is about" } input #attribute name="attribute" required maxlength="100" placeholder="Diet" autocomplete="off"; }
        div.field { label for="fact-text" { "Fact" } textarea #fact-text name="text" rows="3" required maxlength="400" dir="auto" placeholder="Eats no meat." {} }
        div.field { label for="fact-expiry" { "Ends, in " (page.view.zone()) "; empty for never" } input #fact-expiry type="datetime-local" name="time:expires_at"; }
        p."small soft after" { "One fact of each attribute is valid at a time: the one before ends." }
        div."actions after" { button."btn primary" { "State" } }
    };
    section("State a fact", &html! {}, &state.form(&page.view, &form))
}

pub(super) fn change(page: &Page, fact: &Fact) -> Markup {
    let (then, given) = (address(&fact.user), fact.id.to_string());
    let fields = [("name", fact.user.as_str()), ("fact", given.as_str())];
    let edit = Action::of::<EditFact>("Edit", "", &fields, &then);
    let revoke = Confirmation {
        action: Action::of::<RevokeFact>("Revoke", "", &fields, &then).class("btn slim danger"),
        id: "confirm-revoke",
        heading: "Revoke this fact",
        consequences: html! { p { "Agents no longer see or find it. People can still read it." } },
        fields: html! {},
        command: format!("dalsegno memory facts revoke {} {given}", fact.user),
    };
    if !edit.is_allowed(&page.caller) {
        return html! {};
    }
    let form = html! {
        div.field { label for="new-text" { "Text; the older one stays in the history" } textarea #new-text name="text" rows="3" required maxlength="400" dir="auto" { "\n" (fact.text) } }
        div."actions after" { button.btn { "Save" } }
    };
    html! {
        details.after { summary { "Edit the text" } (edit.form(&page.view, &form)) }
        div."actions after" { (revoke.button(&page.view, &page.caller)) }
    }
}
