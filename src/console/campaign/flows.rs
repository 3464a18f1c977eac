//! The newest flows of a campaign.

use maud::{Markup, html};
use uuid::Uuid;

use crate::{
    console::{flow::state, page::Page, parts::section},
    operations::{ListFlows, Refusal},
};

/// Flows beside the other parts of the page.
const MAX_SHORT: i64 = 5;

/// The newest flows, beside the other parts of the page.
pub(super) async fn short(page: &Page, campaign: Uuid) -> Result<Markup, Refusal> {
    let list = ListFlows {
        campaign_id: Some(campaign),
        state: None,
        cursor: None,
        limit: Some(MAX_SHORT),
    };
    let Some(listing) = page.caller.run_if_allowed(list).await? else { return Ok(html! {}) };
    let body = html! {
        @if listing.items.is_empty() { p."small soft" { "No flow was started." } }
        @else { ul."rows small" { @for flow in &listing.items { li { (state(flow)) " " a href={ "/flows/" (flow.id) } { bdi { (flow.template) } } } } } }
    };
    let end = html! { @if !listing.items.is_empty() { a href={ "/flows?campaign_id=" (campaign) } { "all" } } };
    Ok(section("Flows", &end, &body))
}
