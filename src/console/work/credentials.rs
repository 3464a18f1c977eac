//! The credentials of providers, and their pauses.

use maud::{Markup, html};

use crate::{
    console::{
        page::Page,
        parts::{Action, Tone, empty, section},
    },
    operations::{ListCredentials, Refusal, ResumeCredential},
};

/// Shows the credentials. A caller who may not list them gets nothing.
pub(super) async fn show(page: &Page) -> Result<Markup, Refusal> {
    let listed = page.caller.run_if_allowed(ListCredentials {}).await?;
    let Some(items) = listed.map(|all| all.items) else { return Ok(html! {}) };
    if items.is_empty() {
        let none = empty(
            "No session uses a credential of a provider, and none is paused.",
            "dalsegno credential ls",
        );
        return Ok(html! { div #credentials { (section("Credentials", &html! {}, &none)) } });
    }
    let body = html! {
        ul."rows small" {
            @for it in &items {
                @let fields = [("name", it.name.as_str()), ("provider", it.provider.as_str())];
                @let resume = Action::of::<ResumeCredential>("Resume", "", &fields, "/work").class("btn slim");
                li {
                    @match &it.paused_until {
                        Some(until) => {
                            (Tone::Paused.state("paused", it.why.as_deref())) " " bdi { (it.name) } " of " (it.provider) " until " (page.view.time(*until))
                            div."actions after" { (resume.button(&page.view, &page.caller)) }
                        },
                        None => { (Tone::Running.state("in use", None)) " " bdi { (it.name) } " of " (it.provider) ", " (it.sessions) " open sessions" },
                    }
                }
            }
        }
    };
    let credentials = section("Credentials", &html! { (items.len()) }, &body);
    Ok(html! { div #credentials { (credentials) } })
}
