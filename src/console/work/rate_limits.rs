//! The rate limits of calls that are in use.

use maud::{Markup, html};

use crate::{
    console::{
        names::Names,
        page::Page,
        parts::{coded, empty, section},
    },
    domain::rate_limits::UsedRateLimit,
    operations::{ListRateLimits, Refusal},
};

/// Shows the limits with what is left of them. A caller who may not list them gets nothing.
pub(super) async fn show(page: &Page, names: &Names) -> Result<Markup, Refusal> {
    let listed = page.caller.run_if_allowed(ListRateLimits {}).await?;
    let Some(items) = listed.map(|all| all.items) else { return Ok(html! {}) };
    if items.is_empty() {
        let none = empty(
            "No rate limit was used in the last hour. Limits are entries of `rate_limits.rules` in the configuration.",
            "dalsegno rate-limit ls",
        );
        return Ok(html! { div #rate-limits { (section("Rate limits", &html! {}, &none)) } });
    }
    let row = |limit: &UsedRateLimit| {
        html! {
            tr {
                td.text { (coded(&limit.subject)) @if let Some(campaign) = limit.campaign_id { ": " (names.campaign(campaign)) } }
                td.text { (limit.amount_words()) }
                td.text { (limit.left_words()) @if let Some(flow) = limit.flow_words() { div."tiny faint" { (flow) } } }
                td.num { @match limit.waiting_since {
                    Some(since) => { a href="/work/jobs?waits_for=condition" { (limit.waiting_tasks) } div."tiny faint" { "since " (page.view.time(since)) } },
                    None => span.faint { "0" },
                } }
            }
        }
    };
    let table = html! {
        table.sums {
            thead { tr { th { "Calls of" } th { "Limit" } th { "Free now" } th.num { "Tasks wait" } } }
            tbody { @for limit in &items { (row(limit)) } }
        }
    };
    let limits = section("Rate limits", &html! { "used in the last hour" }, &table);
    Ok(html! { div #rate-limits { (limits) } })
}
