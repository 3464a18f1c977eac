//! The forms of the blackboard: the next document as a whole, and a change of parts of it.

use maud::{Markup, html};
use uuid::Uuid;

use crate::{
    console::{
        page::Page,
        parts::{Action, section},
    },
    operations::{PatchBlackboard, SetBlackboard},
};

/// Longest document that is put into the form. Longer ones are changed by patches.
const MAX_BYTES: usize = 64 * 1024;

pub(super) fn show(page: &Page, campaign: Uuid, document: &str, version: i64) -> Markup {
    let (given, version) = (campaign.to_string(), version.to_string());
    let here = format!("/campaigns/{given}?part=blackboard");
    let fields = [("id", given.as_str()), ("number:expected_version", &version)];
    let set = Action::of::<SetBlackboard>("Set", "", &fields, &here);
    let patch = Action::of::<PatchBlackboard>("Change", "", &fields, &here);
    if !set.is_allowed(&page.caller) {
        return html! {};
    }
    let whole = html! {
        div.field { label for="document" { "Document: a JSON object" } textarea #document name="json:document" rows="12" required spellcheck="false" dir="auto" { "\n" (document) } }
        div."actions after" { button.btn { "Set" } }
    };
    let parts = html! {
        div.field { label for="patch" { "JSON Merge Patch: null removes a key" } textarea #patch name="json:patch" rows="4" required spellcheck="false" dir="auto" placeholder=r#"{"plan": {"parts": 9}}"# {} }
        div."actions after" { button.btn { "Change" } }
    };
    let body = html! {
        details { summary { "Change some keys" } (patch.form(&page.view, &parts)) }
        @if document.len() <= MAX_BYTES { details.after { summary { "Set the whole document" } (set.form(&page.view, &whole)) } }
        p."small soft after" { "A change is refused if another one comes first. The same in a terminal: " code { "dalsegno blackboard patch " (given) " '{\"parts\": 9}'" } }
    };
    section("Edit", &html! {}, &body)
}
