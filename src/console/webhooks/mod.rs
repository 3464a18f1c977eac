//! Webhooks: the receivers of events, and their deliveries.

pub(super) mod receiver;

use axum::response::Response;
use maud::{Markup, html};

use super::{
    layout::Content,
    names::Names,
    page::{Page, PageResult},
    parts::{Tone, campaign_id, counted, empty, page_form, section, title, wide},
    secret,
};
use crate::{
    domain::webhooks::{Kind, Webhook},
    http::{Problem, pages::PageForm},
    operations::{AddWebhook, ListWebhooks, Operation as _},
};

const HERE: &str = "/webhooks";
/// Kinds of events, with the words of the form.
const KINDS: [(Kind, &str); 4] = [
    (Kind::Done, "task.done"),
    (Kind::Failed, "task.failed"),
    (Kind::Cancelled, "task.cancelled"),
    (Kind::BudgetWarning, "budget.warning"),
];

pub(super) async fn show(page: Page) -> PageResult {
    let items = page.caller.run(ListWebhooks {}).await?.items;
    let body = html! {
        div.head { div { h1 { "Webhooks" } div.meta { span { "Addresses that receive a signed request when a task ends or a budget warns" } } } }
        div.cols {
            div.stack {
                @if items.is_empty() {
                    (empty("No webhook exists. A receiver learns of the end of each task and of the warnings of budgets without asking.", "dalsegno webhook add https://example.com/hooks"))
                } @else {
                    (section("Receivers", &html! { (counted(items.len(), "webhook", "webhooks")) }, &table(&page, &items)))
                }
            }
            aside."stack side" { (add_form(&page, &Names::load(&page).await?)) }
        }
    };
    let path = html! { span { "Installation" } };
    Ok(page.respond(Content { title: "Webhooks", path, body, watch: String::new() }).await?)
}

/// Adds a webhook, and shows its secret once.
pub(super) async fn add(page: Page, form: PageForm) -> Result<Response, Problem> {
    let chosen =
        |name: &str| form.fields.iter().any(|(field, value)| field == "kinds" && value == name);
    let campaign = form.field("campaign_id").unwrap_or_default();
    let add = AddWebhook {
        url: form.field("url").unwrap_or_default().trim().to_owned(),
        kinds: KINDS.into_iter().filter(|(_, name)| chosen(name)).map(|(kind, _)| kind).collect(),
        campaign_id: campaign_id(campaign)?,
    };
    let added = page.caller.run(add).await?;
    let target = format!("{HERE}/{}", added.webhook.id);
    let words = "Store it at the receiver: it verifies the signature of each request with it.";
    secret::show(&page, "The secret of the webhook", words, &added.secret, &target).await
}

fn add_form(page: &Page, names: &Names) -> Markup {
    if !page.caller.may(&AddWebhook::SPEC) {
        return html! {};
    }
    let fields = html! {
        div.field { label for="url" { "Address" } input #url name="url" type="url" required placeholder="https://example.com/hooks"; }
        fieldset.choices {
            legend { "Events; all ends of tasks, if none is chosen" }
            @for (_, name) in KINDS { label { input type="checkbox" name="kinds" value=(name); " " (name) } }
        }
        div.field { label for="campaign" { "Only of this campaign" } select #campaign name="campaign_id" { option value="" { "all campaigns" } (names.options("")) } }
        div."actions after" { button.btn.primary { "Add" } }
    };
    section("Add a webhook", &html! {}, &page_form(&page.view, HERE, &fields))
}

fn table(page: &Page, items: &[Webhook]) -> Markup {
    let row = |webhook: &Webhook| {
        html! {
            tr {
                td { (state(webhook)) }
                td.fill.name { a href={ (HERE) "/" (webhook.id) } { bdi { (title(&webhook.url)) } } }
                td.text { (webhook.kinds.join(", ")) }
                td { @if let Some(campaign) = webhook.campaign_id { a href={ "/campaigns/" (campaign) } { "one campaign" } } @else { "all campaigns" } }
                td { (page.view.time(webhook.created_at)) }
            }
        }
    };
    let table = html! {
        table.folds {
            thead { tr { th { "State" } th { "Address" } th { "Events" } th { "Of" } th { "Since" } } }
            tbody { @for webhook in items { (row(webhook)) } }
        }
    };
    wide("Webhooks", &table)
}

fn state(webhook: &Webhook) -> Markup {
    match (webhook.enabled, webhook.failing_since) {
        (false, _) => Tone::Paused.state("disabled", None),
        (true, Some(_)) => Tone::Failed.state("failing", None),
        (true, None) => Tone::Done.state("enabled", None),
    }
}
