//! Budget, flows, brief, memory and blackboard of a campaign.

use maud::{Markup, html};
use uuid::Uuid;

use crate::{
    console::{
        page::Page,
        parts::{
            Action, Share, Tone, empty, next_page, rendered, section, share_bar, title, tokens,
            wide,
        },
    },
    domain::{campaign_overview::Overview, campaigns::Campaign, flows::Flow},
    operations::{
        ChangeBudget, EditCampaign, ListBlackboardChanges, ListFlows, ListMemory, Refusal,
        ShowBlackboard,
    },
};

pub(super) fn budget(page: &Page, overview: &Overview) -> Markup {
    let Some(budget) = &overview.budget else { return html! {} };
    let view = &page.view;
    let (spent, reserved) = (budget.spent.micros, budget.reserved.micros);
    let limit = budget.limit.micros;
    let given = overview.campaign.id.to_string();
    let fields = [("id", given.as_str())];
    let here = format!("/campaigns/{given}");
    let change = Action::of::<ChangeBudget>("Change", "", &fields, &here);
    let share = |name: &str, micros: i64, class| Share {
        name: name.into(),
        value: micros as f64,
        shown: view.money(micros),
        class,
    };
    let form = html! { div.filters { label { "Limit in millionths of the currency" input name="micros" type="number" min="1" value=[limit]; } button.btn { "Set" } } };
    let body = html! {
        @match limit {
            Some(limit) => (share_bar("Spent and reserved of the budget", &[share("Spent", spent, "p3"), share("Reserved", reserved, "p2"), share("Left", (limit - spent - reserved).max(0), "p7")], limit as f64, None)),
            None => { p."small soft" { "No limit in money. Spent: " (view.money(spent)) ", " (tokens(budget.spent.tokens)) " tokens." } },
        }
        @if change.is_allowed(&page.caller) { details.after { summary { "Change the limit" } (change.form(view, &form)) } }
    };
    section("Budget", &html! { @if let Some(limit) = limit { "of " (view.money(limit)) } }, &body)
}

pub(super) async fn flows(page: &Page, campaign: Uuid) -> Result<Markup, Refusal> {
    let list = ListFlows { campaign_id: Some(campaign), state: None, cursor: None, limit: Some(5) };
    let Some(listing) = page.caller.run_if_allowed(list).await? else { return Ok(html! {}) };
    let row = |flow: &Flow| {
        let tone = match (flow.ended_at, flow.paused_at, flow.failed) {
            (Some(_), _, 0) => Tone::Done,
            (Some(_), _, _) => Tone::Failed,
            (None, Some(_), _) => Tone::Paused,
            (None, None, _) => Tone::Running,
        };
        html! { li { (tone.state(&format!("{} of {}", flow.done, flow.tasks), None)) " " bdi { (flow.template) } } }
    };
    let body = html! {
        @if listing.items.is_empty() { (empty("No flow was started.", &format!("dalsegno flow start --campaign {campaign} TEMPLATE"))) }
        @else { ul."rows small" { @for flow in &listing.items { (row(flow)) } } }
    };
    Ok(section("Flows", &html! { "newest " (listing.items.len()) }, &body))
}

pub(super) fn brief(page: &Page, campaign: &Campaign) -> Markup {
    let given = campaign.id.to_string();
    let fields = [("id", given.as_str())];
    let here = format!("/campaigns/{given}");
    let edit = Action::of::<EditCampaign>("Save", "", &fields, &here);
    let form = html! {
        div.field { label for="brief" { "Brief" } textarea #brief name="brief" rows="8" { (campaign.brief) } }
        div.field { label for="client-context" { "Client context" } textarea #client-context name="client_context" rows="5" { (campaign.client_context.as_deref().unwrap_or_default()) } }
        p."small soft" { "It is sent from the next call on. Each edit is a version." }
        div.actions { button.btn { "Save" } }
    };
    let body = html! {
        @if campaign.brief.trim().is_empty() { p."small soft" { "The campaign has no brief." } }
        @else { details { summary { (title(&campaign.brief)) } (rendered(&campaign.brief)) } }
        @if let Some(context) = &campaign.client_context { details.after { summary { "Client context" } (rendered(context)) } }
        @if edit.is_allowed(&page.caller) && campaign.closed_at.is_none() { details.after { summary { "Edit" } (edit.form(&page.view, &form)) } }
    };
    section("Brief", &html! {}, &body)
}

pub(super) async fn memory(page: &Page, campaign: Uuid, cursor: &str) -> Result<Markup, Refusal> {
    let list = ListMemory {
        id: campaign,
        kind: None,
        owner: None,
        ended: false,
        cursor: cursor.parse().ok(),
        limit: None,
    };
    let listing = page.caller.run(list).await?;
    let kind = |kind: crate::domain::memory::Kind| {
        let word = serde_json::to_value(kind).ok();
        word.as_ref().and_then(|it| it.as_str()).unwrap_or_default().to_owned()
    };
    let table = html! {
        table.folds {
            thead { tr { th { "Kind" } th { "Title" } th { "Author" } th.num { "Version" } th { "Written" } } }
            tbody {
                @for item in &listing.items {
                    tr {
                        td { (kind(item.kind)) } td.text { bdi { (title(&item.title)) } } td { bdi { (item.author) } } td.num { (item.version) } td { (page.view.time(item.written_at)) }
                    }
                }
            }
        }
    };
    Ok(html! {
        @if listing.items.is_empty() { (empty("Nothing is remembered yet: no edict, record or journal entry.", &format!("dalsegno memory publish --campaign {campaign} edict NAME --title \"…\" \"…\""))) }
        @else { (section("Memory", &html! { (listing.items.len()) }, &wide("Memory", &table))) }
        (next_page(&format!("/campaigns/{campaign}"), &[("part", "memory")], listing.next.as_deref()))
    })
}

pub(super) async fn blackboard(page: &Page, campaign: Uuid) -> Result<Markup, Refusal> {
    let shown = page.caller.run(ShowBlackboard { id: campaign, version: None }).await?;
    if shown.version == 0 {
        return Ok(empty(
            "The blackboard is empty.",
            &format!("dalsegno blackboard set --campaign {campaign} '{{\"status\": \"draft\"}}'"),
        ));
    }
    let changes = page
        .caller
        .run(ListBlackboardChanges { id: campaign, cursor: None, limit: Some(20) })
        .await?;
    let document = serde_json::to_string_pretty(&shown.document).unwrap_or_default();
    let table = html! {
        table.folds {
            thead { tr { th.num { "Version" } th { "Changed" } th { "By" } th { "Paths" } } }
            tbody {
                @for change in &changes.items {
                    tr { td.num { (change.version) } td { (page.view.time(change.changed_at)) } td { bdi { (change.actor) } } td.text { @for path in change.paths.iter().take(5) { code { bdi { (path) } } " " } } }
                }
            }
        }
    };
    Ok(html! {
        (section("Blackboard", &html! { "version " (shown.version) }, &html! { pre."code wrap" tabindex="0" dir="auto" { (document) } }))
        (section("Changes", &html! { "newest " (changes.items.len()) }, &wide("Changes", &table)))
    })
}
