//! The calls behind the figures of a report, with links to their tasks, sessions and turns.

use axum::extract::Query;
use maud::{Markup, html};

use super::{
    choices,
    query::{CostQuery, PERIODS, named_periods},
    tabs,
};
use crate::{
    console::{
        layout::Content,
        names::Names,
        page::{Page, PageResult},
        parts::{agent, empty, id, next_page, no_price, section, tokens, wide},
    },
    domain::{
        costs::{CallOrder, CostCall},
        usage::{Outcome, Purpose},
    },
    operations::ListCalls,
};

/// Filters that are shown as chips, with their words.
const FILTERS: [(&str, &str); 8] = [
    ("agent", "agent"),
    ("model", "model"),
    ("provider", "provider"),
    ("purpose", "for"),
    ("user", "user"),
    ("no_user", "without a user"),
    ("without_reruns", "without reruns"),
    ("campaign_id", "campaign"),
];
const COSTLIEST: &str = "costliest";

pub(in crate::console) async fn show(Query(query): Query<CostQuery>, page: Page) -> PageResult {
    query.check()?;
    let is_costliest = query.order == COSTLIEST;
    let list = ListCalls {
        order: if is_costliest { CallOrder::Costliest } else { CallOrder::Newest },
        cursor: query.cursor.parse().ok().filter(|_| !is_costliest),
        ..query.calls(&page.view)
    };
    let listing = page.caller.run(list).await?;
    let names = Names::load(&page).await?;
    let today = page.view.day_of(page.view.now);
    let period = query.period(today);
    let heading = if is_costliest { "Most expensive first" } else { "Newest first" };
    let sum: i64 = listing.items.iter().map(|it| it.call.cost_micros).sum();
    let end = html! { (listing.items.len()) @if listing.next.is_some() { " of more" } ", " (page.view.money(sum)) };
    let body = html! {
        div.head { div { h1 { "Cost" } } }
        (tabs("/cost/calls"))
        div.filters {
            nav.choice aria-label="Period" {
                (choices(&query, "/cost/calls", period, today))
                @for n in PERIODS { a href=(query.link("/cost/calls", &[("days", &n.to_string()), ("from", ""), ("to", "")])) aria-current=[(query.n_days() == Some(n)).then_some("page")] { @if n == 1 { "Today" } @else { (n) " days" } } }
                @if query.n_days().is_none() && !named_periods(today).iter().any(|(_, named)| *named == period) { a href=(query.link("/cost/calls", &[])) aria-current="page" { (period.first) @if period.last != period.first { " to " (period.last) } } }
            }
            nav.choice aria-label="Order" {
                a href=(query.link("/cost/calls", &[("order", "")])) aria-current=[(!is_costliest).then_some("page")] { "Newest" }
                a href=(query.link("/cost/calls", &[("order", COSTLIEST)])) aria-current=[is_costliest.then_some("page")] { "Most expensive" }
            }
            (chips(&query, &names))
        }
        (filters(&query, &names))
        @if listing.items.is_empty() {
            (empty("No call matches. A call is in the ledger when its turn ends.", "dalsegno cost --calls --since 90d"))
        } @else { (section(heading, &end, &wide("Calls", &table(&page, &listing.items, &names)))) }
        (next_page("/cost/calls", &query.fields(), listing.next.as_deref()))
    };
    let path = html! { a href="/cost" { "Cost" } span { "/" } span { "Calls" } };
    Ok(page.respond(Content { title: "Calls", path, body, watch: String::new() }).await?)
}

/// Shows the filters, each as a link that removes it.
fn chips(query: &CostQuery, names: &Names) -> Markup {
    let fields = query.fields();
    let is_set = FILTERS.iter().filter_map(|(name, words)| {
        let value = fields.iter().find(|(field, _)| field == name)?.1;
        Some((*name, *words, value))
    });
    let shown = |name: &str, value: &str| match name {
        "campaign_id" => {
            let known = value.parse().ok().and_then(|id| names.name(id));
            known.unwrap_or(value).to_owned()
        }
        _ => value.to_owned(),
    };
    html! {
        @for (name, words, value) in is_set {
            a."btn slim" href=(query.link("/cost/calls", &[(name, "")])) title="Remove this filter" {
                (words) @if value != "true" { " " b { bdi { (shown(name, value)) } } } span aria-hidden="true" { " ×" } span.sr { ": remove this filter" }
            }
        }
    }
}

/// Renders the filters by agent and campaign; the other fields of the page are kept.
fn filters(query: &CostQuery, names: &Names) -> Markup {
    let is_own = |name: &str| ["agent", "campaign_id"].contains(&name);
    let kept = query.fields().into_iter().filter(|(name, _)| !is_own(name));
    html! {
        form.filters action="/cost/calls" role="search" {
            @for (name, value) in kept { input type="hidden" name=(name) value=(value); }
            label { "Agent" input name="agent" value=(query.agent) placeholder="any" size="14"; }
            label { "Campaign" (names.select("campaign_id", &query.campaign_id)) }
            button.btn { "Filter" }
        }
    }
}

fn table(page: &Page, calls: &[CostCall], names: &Names) -> Markup {
    let money = page.view.column(calls.iter().map(|it| it.call.cost_micros));
    html! {
        table.folds {
            thead { tr { th { "Called" } th { "Agent" } th { "Campaign" } th { "For" } th { "Task" } th { "Turn" } th { "Model" } th.num { "Tokens in" } th.num { "out" } th.num { "Cost" } } }
            tbody { @for call in calls { (row(page, call, names, &money)) } }
        }
    }
}

fn row(page: &Page, it: &CostCall, names: &Names, money: &impl Fn(i64) -> String) -> Markup {
    let call = &it.call;
    let sent = [call.input_tokens, call.cache_read_tokens, call.cache_creation_tokens];
    let purpose = match call.purpose {
        Purpose::Turn => "turn",
        Purpose::Summary => "summary",
        Purpose::Facts => "facts",
        Purpose::Rerun => "rerun",
    };
    let outcome = match call.outcome {
        Outcome::Done => "",
        Outcome::Failed => ", failed",
        Outcome::Interrupted => ", interrupted",
    };
    html! {
        tr {
            td.nowrap { (page.view.calendar(call.called_at)) }
            td { (agent(&it.agent, "main")) }
            td.campaign { (names.campaign(it.campaign_id)) }
            td { (purpose) (outcome) }
            td.narrow-off { @if let Some(task) = it.task_id { a href={ "/tasks/" (task) } { (id("", task)) } } @else { "–" } }
            td.text {
                @match (it.session_id, it.turn) {
                    (Some(session), Some(turn)) => { a href={ "/sessions/" (session) "/turns/" (turn) } { "turn " (turn) } " of " a href={ "/sessions/" (session) } { (id("", session)) } }
                    (Some(session), None) => a href={ "/sessions/" (session) } { (id("session", session)) },
                    (None, _) => "–",
                }
            }
            td.narrow-off { bdi { (call.model) } }
            td.num.narrow-off { (tokens(sent.iter().flatten().sum())) }
            td.num.narrow-off { @match call.output_tokens { Some(n) => (tokens(n)), None => "–" } }
            td.num { @if call.is_unpriced() { (no_price()) } @else { (money(call.cost_micros)) } }
        }
    }
}
