//! The form that creates a campaign.

use maud::{Markup, html};

use crate::{
    console::{
        page::Page,
        parts::{Action, section},
    },
    operations::CreateCampaign,
};

pub(in crate::console) fn form(page: &Page) -> Markup {
    let create = Action::of::<CreateCampaign>("Create", "", &[], "/campaigns/{id}");
    if !create.is_allowed(&page.caller) {
        return html! {};
    }
    let form = html! {
        div.field { label for="name" { "Name" } input #name name="name" required maxlength="200" placeholder="Harbour series" autocomplete="off"; }
        div.field { label for="brief" { "Brief: the work" } textarea #brief name="brief" rows="4" dir="auto" {} }
        div.field { label for="client-context" { "Client context: tone, audience, facts" } textarea #client-context name="client_context" rows="3" dir="auto" {} }
        div.field { label for="limit" { "Budget in " (page.view.currency()) } input #limit name="money:budget.micros" inputmode="decimal" pattern="[0-9]+([.,][0-9]{1,6})?" title="An amount such as 12.50" placeholder="none" autocomplete="off"; }
        div."actions after" { button."btn primary" { "Create" } }
        pre."code wrap after" { "dalsegno campaign create \"Harbour series\"" }
    };
    section("Create a campaign", &html! {}, &create.form(&page.view, &form))
}
