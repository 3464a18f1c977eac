//! The list of flows, with its filters in the URL.

use axum::extract::Query;
use maud::{Markup, html};
use serde::Deserialize;
use uuid::Uuid;

use super::state;
use crate::{
    console::{
        layout::Content,
        names::Names,
        page::{Page, PageResult},
        parts::{campaign_id, counted, empty, icon, id, next_page, optional, section, wide},
    },
    domain::{
        audit::describe_label,
        flows::{Flow, State},
    },
    operations::ListFlows,
};

const STATES: [(State, &str); 5] = [
    (State::Running, "running"),
    (State::Paused, "paused"),
    (State::Done, "done"),
    (State::Failed, "failed"),
    (State::Cancelled, "cancelled"),
];

/// Filters of the list. A form sends empty fields for those that are not set.
#[derive(Debug, Default, Deserialize)]
pub(in crate::console) struct ListQuery {
    #[serde(default)]
    state: String,
    #[serde(default)]
    campaign_id: String,
    cursor: Option<Uuid>,
}

pub(in crate::console) async fn list(Query(query): Query<ListQuery>, page: Page) -> PageResult {
    let state = |text: &str| STATES.into_iter().find(|(_, word)| *word == text);
    let state = optional("the state of a flow", &query.state, state)?.map(|(state, _)| state);
    let list = ListFlows {
        campaign_id: campaign_id(&query.campaign_id)?,
        state,
        cursor: query.cursor,
        limit: None,
    };
    let listing = page.caller.run(list).await?;
    let names = Names::load(&page).await?;
    let fields = [("state", query.state.as_str()), ("campaign_id", &query.campaign_id)];
    let is_filtered = fields.iter().any(|(_, value)| !value.is_empty());
    let body = html! {
        div.head { div { h1 { "Flows" } } div.actions { a."btn primary" href="/flows/start" { (icon("plus")) "Start a flow" } } }
        (filters(&query, &names))
        @if listing.items.is_empty() {
            @if is_filtered { div.empty { "No flow matches these filters. " a href="/flows" { "Show all flows" } } }
            @else { (empty("No flow was started. A flow is a set of tasks that depend on each other, made from a template.", "dalsegno flow start --campaign CAMPAIGN TEMPLATE")) }
        } @else {
            (section("Newest first", &html! { (counted(listing.items.len(), "flow", "flows")) }, &wide("Flows", &table(&page, &listing.items, &names))))
        }
        (next_page("/flows", &fields, listing.next.as_deref()))
    };
    let path = html! { span { "Flows" } };
    Ok(page.respond(Content { title: "Flows", path, body, watch: "all".to_owned() }).await?)
}

fn filters(query: &ListQuery, names: &Names) -> Markup {
    html! {
        form.filters action="/flows" role="search" {
            label { "State" select name="state" {
                option value="" { "any" }
                @for (_, word) in STATES { option value=(word) selected[word == query.state] { (word) } }
            } }
            label { "Campaign" (names.select("campaign_id", &query.campaign_id)) }
            button.btn { "Filter" }
        }
    }
}

fn table(page: &Page, flows: &[Flow], names: &Names) -> Markup {
    html! {
        table.folds {
            thead { tr { th { "State" } th { "Flow" } th { "Campaign" } th { "Started" } th { "By" } th { "Id" } } }
            tbody {
                @for flow in flows {
                    tr {
                        td { (state(flow)) }
                        td.text.name { a href={ "/flows/" (flow.id) } { bdi { (flow.template) } } }
                        td.narrow-off { (names.campaign(flow.campaign_id)) }
                        td { (page.view.time(flow.created_at)) }
                        td.narrow-off { @if let Some(by) = &flow.added_by { bdi title=(by) { (describe_label(by)) } } }
                        td.narrow-off { (id("", flow.id)) }
                    }
                }
            }
        }
    }
}
