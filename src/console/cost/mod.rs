//! The pages of costs: spending by day, the calls behind each figure, and budgets.

mod budgets;
mod calls;
mod chart;
pub(super) mod evals;
mod query;

use axum::{
    extract::Query,
    http::header::{CONTENT_DISPOSITION, CONTENT_TYPE},
    response::IntoResponse as _,
};
use chrono::NaiveDate;
use maud::{Markup, html};

pub(super) use self::{budgets::show as budgets, calls::show as calls};
use self::{
    chart::{Chart, N_OWN, Stack, Value, name},
    query::{CostQuery, PERIODS, Period, named_periods},
};
use super::{
    layout::Content,
    names::Names,
    page::{Page, PageResult},
    parts::{count_unpriced, empty, no_price, section, sparkline, tokens, wide},
};
use crate::{
    domain::{
        costs::{Costs, Dimension, MAX_LINES, Measure},
        text::count,
    },
    operations::ReportCosts,
};

/// Rows of the table by a dimension. The files have all of them.
const MAX_ROWS: usize = 30;

const TABS: [(&str, &str); 4] = [
    ("/cost", "Spending"),
    ("/cost/calls", "Calls"),
    ("/cost/budgets", "Budgets"),
    ("/cost/evals", "Evals"),
];

pub(super) async fn show(Query(query): Query<CostQuery>, page: Page) -> PageResult {
    query.check()?;
    let view = &page.view;
    let dimension = query.dimension();
    let and = Some(dimension).filter(|dimension| *dimension != Dimension::Day);
    let measure = match query.measure.as_str() {
        "tokens" => Measure::Tokens,
        _ => Measure::Money,
    };
    let period = query.period(view.day_of(view.now));
    let report = ReportCosts {
        top: and.map(|_| max_rows(period)),
        top_by: Some(measure),
        ..query.report(view, Dimension::Day, and)
    };
    let report = page.caller.run(report).await?;
    let measure = match query.measure.as_str() {
        "" if report.total.cost_micros == 0 && report.total.calls > 0 => Measure::Tokens,
        _ => measure,
    };
    let stack = Stack::of(&report, measure);
    let chart =
        Chart { view, query: &query, period, dimension, measure, stack: &stack, report: &report };
    let names = Names::load(&page).await?;
    let body = html! {
        div.head {
            div { h1 { "Cost" } }
            div.actions { (files(&query)) }
        }
        (tabs("/cost"))
        p.lede { (summary(&page, &chart)) }
        (count_unpriced(report.total.calls_without_price))
        (filters(&query, period, &names, view.day_of(view.now)))
        @if report.total.calls == 0 {
            (empty("No call was made in this period. A call is charged when a turn of an agent ends.", "dalsegno cost --since 90d"))
        } @else {
            div.stack {
                (section("Per day", &measures(&query, measure), &html! { (chart.show()) (legend(&chart)) }))
                @if dimension != Dimension::Day { (section(heading(dimension), &html! { (stack.values.len() + stack.n_others) }, &wide(heading(dimension), &table(&page, &chart)))) }
                (section("Days", &html! { (period.n_days()) }, &wide("Days", &days(&page, &chart))))
            }
        }
    };
    let path = html! { span { "Cost" } };
    Ok(page.respond(Content { title: "Cost", path, body, watch: String::new() }).await?)
}

/// Returns the values with rows of their own. Each has a line on every day of a report, and so have all others together.
fn max_rows(period: Period) -> u32 {
    let n_days = usize::try_from(period.n_days()).unwrap_or(1).max(1);
    let n = MAX_ROWS.min((MAX_LINES / n_days).saturating_sub(1));
    u32::try_from(n).unwrap_or(1)
}

/// Serves the report of the page as comma-separated values.
pub(super) async fn csv(Query(query): Query<CostQuery>, page: Page) -> PageResult {
    query.check()?;
    let dimension = query.dimension();
    let (by, and) = match dimension {
        Dimension::Day => (Dimension::Day, None),
        dimension if query.total == "true" => (dimension, None),
        dimension => (Dimension::Day, Some(dimension)),
    };
    let report = page.caller.run(query.report(&page.view, by, and)).await?;
    let period = query.period(page.view.day_of(page.view.now));
    let dimensions = report.dimensions().map(Dimension::as_str).collect::<Vec<_>>().join("-and-");
    let name = format!("cost-{}-{}-by-{dimensions}.csv", period.first, period.last);
    let headers = [
        (CONTENT_TYPE, "text/csv; charset=utf-8".to_owned()),
        (CONTENT_DISPOSITION, format!("attachment; filename=\"{name}\"")),
    ];
    Ok((headers, report.to_csv()).into_response())
}

/// Links to the files: with the sum of each value, and with its sums by day.
fn files(query: &CostQuery) -> Markup {
    const FILE: &str = "/cost/report.csv";
    let dimension = query.dimension();
    html! {
        @if dimension != Dimension::Day {
            a.btn href=(query.link(FILE, &[("total", "true")])) download { "CSV by " (dimension.as_str()) }
        }
        a.btn href=(query.link(FILE, &[])) download {
            "CSV by day" @if dimension != Dimension::Day { " and " (dimension.as_str()) }
        }
    }
}

pub(super) fn tabs(here: &str) -> Markup {
    html! {
        nav.tabs aria-label="Parts of the costs" {
            @for (target, words) in TABS { a href=(target) aria-current=[(target == here).then_some("page")] { (words) } }
        }
    }
}

/// Says in a sentence what was spent, and on what most of it.
fn summary(page: &Page, chart: &Chart<'_>) -> Markup {
    let total = &chart.report.total;
    let view = &page.view;
    let whole = chart.measure.of(total);
    let highest = chart.stack.values.first().filter(|_| chart.stack.values.len() > 1 && whole > 0);
    html! {
        b { @if total.is_unpriced() { "No price" } @else { (view.money(total.cost_micros)) } } " for " (total.calls) " calls "
        @match chart.period.n_days() { 1 => { "on " (chart.period.first.format("%-d %B")) }, n => { "in " (n) " days up to " (chart.period.last.format("%-d %B")) } }
        "."
        @if let Some(Value { name: value, costs, .. }) = highest {
            " Most of it: " b { bdi { (name(chart.report, value)) } } ", " (chart.shown(chart.measure.of(costs)))
            @let share = share_of(chart.measure.of(costs), whole);
            ", " (share) "."
        }
    }
}

fn share_of(part: i64, whole: i64) -> String {
    match whole {
        0 => "–".to_owned(),
        whole => format!("{:.0} %", part as f64 / whole as f64 * 100.0),
    }
}

fn filters(query: &CostQuery, period: Period, names: &Names, today: NaiveDate) -> Markup {
    let period_words = |n: u64| match n {
        1 => "Today".to_owned(),
        n => format!("{n} days"),
    };
    html! {
        form.filters action="/cost" role="search" {
            label { "By" select name="by" { @for dimension in Dimension::ALL { option value=(dimension.as_str()) selected[dimension == query.dimension()] { (dimension.as_str()) } } } }
            label { "From" input type="date" name="from" value=(period.first); }
            label { "To" input type="date" name="to" value=(period.last); }
            label { "Campaign" (names.select("campaign_id", &query.campaign_id)) }
            @if !query.measure.is_empty() { input type="hidden" name="measure" value=(query.measure); }
            button.btn { "Show" }
            nav.choice aria-label="Period" {
                (choices(query, "/cost", period, today))
                @for n in PERIODS { a href=(query.link("/cost", &[("days", &n.to_string()), ("from", ""), ("to", "")])) aria-current=[(query.n_days() == Some(n)).then_some("page")] { (period_words(n)) } }
            }
        }
    }
}

/// Links to periods with a name. The one that is shown is marked.
fn choices(query: &CostQuery, path: &str, period: Period, today: NaiveDate) -> Markup {
    html! {
        @for (words, named) in named_periods(today) {
            a href=(query.link(path, &[("days", ""), ("from", &named.first.to_string()), ("to", &named.last.to_string())]))
                aria-current=[(named == period && query.n_days().is_none()).then_some("page")] { (words) }
        }
    }
}

fn measures(query: &CostQuery, measure: Measure) -> Markup {
    html! {
        nav.choice aria-label="Figure" {
            a href=(query.link("/cost", &[("measure", "money")])) aria-current=[(measure == Measure::Money).then_some("page")] { "Money" }
            a href=(query.link("/cost", &[("measure", "tokens")])) aria-current=[(measure == Measure::Tokens).then_some("page")] { "Tokens" }
        }
    }
}

fn heading(dimension: Dimension) -> &'static str {
    match dimension {
        Dimension::Day => "Days",
        Dimension::Campaign => "Campaigns",
        Dimension::Agent => "Agents",
        Dimension::Model => "Models",
        Dimension::Provider => "Providers",
        Dimension::Purpose => "Purposes",
        Dimension::User => "Users",
    }
}

fn swatch(class: &str) -> Markup {
    html! { svg.swatch aria-hidden="true" { rect class=(class) width="100%" height="100%" rx="2" {} } }
}

fn legend(chart: &Chart<'_>) -> Markup {
    let stack = chart.stack;
    let (n_rest, of_rest) = stack.rest();
    html! {
        @if chart.dimension != Dimension::Day {
            ul.legend {
                @for (place, Value { name: value, costs, .. }) in stack.values.iter().take(N_OWN).enumerate() {
                    li { (swatch(stack.class(place))) a href=(chart.query.calls_link(chart.dimension, value.as_deref(), None)) { bdi { (name(chart.report, value)) } } b { @if chart.measure == Measure::Money && costs.is_unpriced() { "no price" } @else { (chart.shown(chart.measure.of(costs))) } } }
                }
                @if n_rest > 0 { li { (swatch(stack.class(N_OWN))) (count(n_rest, "other", "others")) b { (chart.shown(of_rest)) } } }
            }
        }
    }
}

fn table(page: &Page, chart: &Chart<'_>) -> Markup {
    let whole = chart.measure.of(&chart.report.total);
    let Stack { values, n_others, of_others, .. } = chart.stack;
    let money = page.view.column(values.iter().map(|value| value.costs.cost_micros));
    html! {
        table.folds {
            thead { tr { th { (title_of(chart.dimension)) } th.num { "Calls" } th.num { "Tokens in" } th.num { "from the cache" } th.num { "Tokens out" } th.trend { "Per day" } th.num { "Share" } th.num { "Cost" } } }
            tbody {
                @for (place, value) in values.iter().enumerate() {
                    @let costs = &value.costs;
                    @let link = chart.query.calls_link(chart.dimension, value.name.as_deref(), None);
                    tr {
                        td.text { (swatch(chart.stack.class(place))) (subject(chart, &value.name)) }
                        td.num { a href=(link) { (costs.calls) } }
                        td.num.narrow-off { (tokens(costs.input_tokens + costs.cache_creation_tokens)) }
                        td.num.narrow-off { (tokens(costs.cache_read_tokens)) }
                        td.num.narrow-off { (tokens(costs.output_tokens)) }
                        td.trend.narrow-off { @if chart.period.n_days() > 1 { (sparkline("Per day", &value.days(chart.period))) } }
                        td.num { (share_of(chart.measure.of(costs), whole)) }
                        td.num { (cost(costs, &link, &money)) }
                    }
                }
                @if *n_others > 0 { (sum(of_others, &format!("{}, in the CSV files", count(*n_others, "other", "others")), 2, &money)) }
            }
            tfoot { (sum(&chart.report.total, "Total", 2, &money)) }
        }
    }
}

/// The cost of a row, with a link to its calls. Only calls without a price have no amount.
fn cost(costs: &Costs, link: &str, money: &impl Fn(i64) -> String) -> Markup {
    html! { @if costs.is_unpriced() { (no_price()) } @else { a href=(link) { (money(costs.cost_micros)) } (some_unpriced(costs)) } }
}

/// Says under the amount of a row that it leaves out some of its calls.
fn some_unpriced(costs: &Costs) -> Markup {
    html! { @if costs.calls_without_price > 0 { div."tiny faint" { (costs.calls_without_price) " of " (costs.calls) " calls without a price" } } }
}

fn sum(total: &Costs, words: &str, n_more: usize, money: &impl Fn(i64) -> String) -> Markup {
    html! {
        tr {
            td { (words) } td.num { (total.calls) }
            td.num.narrow-off { (tokens(total.input_tokens + total.cache_creation_tokens)) }
            td.num.narrow-off { (tokens(total.cache_read_tokens)) }
            td.num.narrow-off { (tokens(total.output_tokens)) }
            @for _ in 0..n_more { td.narrow-off {} }
            td.num { @if total.is_unpriced() { (no_price()) } @else { (money(total.cost_micros)) (some_unpriced(total)) } }
        }
    }
}

/// Names the subject of a row, with a link to its calls; campaigns have a link to their page.
fn subject(chart: &Chart<'_>, value: &Option<String>) -> Markup {
    let words = name(chart.report, value);
    let target = match (chart.dimension, value) {
        (Dimension::Campaign, Some(id)) => Some(format!("/campaigns/{id}")),
        (dimension, value) => Some(chart.query.calls_link(dimension, value.as_deref(), None)),
    };
    html! { @match target { Some(target) => a href=(target) { bdi { (words) } }, None => bdi { (words) } } }
}

fn title_of(dimension: Dimension) -> String {
    let name = dimension.as_str();
    name[..1].to_uppercase() + &name[1..]
}

/// The table of days, the newest first.
fn days(page: &Page, chart: &Chart<'_>) -> Markup {
    let days = &chart.stack.days;
    let money = page.view.column(days.values().map(|costs| costs.cost_micros));
    html! {
        table.folds {
            thead { tr { th { "Day" } th.num { "Calls" } th.num { "Tokens in" } th.num { "from the cache" } th.num { "Tokens out" } th.num { "Cost" } } }
            tbody {
                @for (day, costs) in days.iter().rev() {
                    @let day = day.to_string();
                    @let link = chart.query.calls_link(Dimension::Day, Some(&day), None);
                    tr {
                        td { a href=(link) { (day) } }
                        td.num { a href=(link) { (costs.calls) } }
                        td.num.narrow-off { (tokens(costs.input_tokens + costs.cache_creation_tokens)) }
                        td.num.narrow-off { (tokens(costs.cache_read_tokens)) }
                        td.num.narrow-off { (tokens(costs.output_tokens)) }
                        td.num { (cost(costs, &link, &money)) }
                    }
                }
            }
            tfoot { (sum(&chart.report.total, "Total", 0, &money)) }
        }
    }
}

#[cfg(test)]
mod tests {
    use chrono::Days;

    use super::*;

    #[test]
    fn a_page_of_the_longest_period_is_within_the_limit_of_a_report() {
        let days = |n: u64| {
            let last: NaiveDate = "2026-11-20".parse().unwrap();
            Period { first: last - Days::new(n - 1), last }
        };
        assert_eq!(max_rows(days(30)), 30);
        assert!(366 * (max_rows(days(366)) as usize + 1) <= MAX_LINES);
        assert!(max_rows(days(366)) > 20);
    }

    #[test]
    fn a_share_of_nothing_is_a_dash() {
        assert_eq!([share_of(1, 0), share_of(1, 3)], ["–", "33 %"]);
        assert_eq!(title_of(Dimension::Agent), "Agent");
    }
}
