//! The installation: version, database, sizes and growth, settings with their origin, migrations.

use std::collections::BTreeMap;

use axum::extract::Query;
use chrono::NaiveDate;
use maud::{Markup, html};
use serde::Deserialize;

use super::{
    groups,
    layout::Content,
    page::{Page, PageResult},
    parts::{Share, bytes, counted, facts, section, share_bar, sparkline, wide},
};
use crate::{
    domain::{
        costs::{Dimension, UNPRICED_WITHIN},
        installation::{AppliedMigration, DaySize, Setting, TableSize},
        prices::{Price, template},
    },
    operations::{InstallationView, Refusal, ReportCosts, ShowInstallation},
};

/// Tables with a colour of their own.
const COLOURS: [&str; 6] = ["p3", "p2", "p5", "p4", "p6", "p1"];
const SECS_OF_DAY: f64 = 86_400.0;
/// The setting with the prices of models.
const PRICES: &str = "prices.models";
/// Tables and migrations that are listed before the rest is folded.
const FIRST: usize = 12;

#[derive(Debug, Default, Deserialize)]
pub(super) struct PageQuery {
    #[serde(default)]
    setting: String,
    #[serde(default)]
    all: String,
}

pub(super) async fn show(Query(query): Query<PageQuery>, page: Page) -> PageResult {
    let installation = page.caller.run(ShowInstallation {}).await?;
    let to_copy = prices(&page, &installation.settings, &query).await?;
    let body = html! {
        div.head { div { h1 { "Installation" } div.meta { span { "Dalsegno " (installation.version) } span { "since " (page.view.date(installation.created_at)) } } } }
        (groups::doctor("/installation"))
        div.cols {
            div.stack {
                (settings(&installation.settings, &query))
                (to_copy)
                (tables(&page, &installation))
            }
            aside."stack side" {
                (section("Facts", &html! {}, &own_facts(&page, &installation)))
                (migrations(&page, &installation.migrations))
            }
        }
    };
    let path = html! { a href="/doctor" { "Doctor" } span { "/" } span { "Installation" } };
    Ok(page.respond(Content { title: "Installation", path, body, watch: String::new() }).await?)
}

fn own_facts(page: &Page, installation: &InstallationView) -> Markup {
    let database = &installation.database;
    facts(&[
        ("Version", html! { (installation.version) }),
        ("Id", html! { code { (installation.id) } }),
        ("Created", page.view.time(installation.created_at)),
        ("Postgres", html! { (database.server_version) }),
        ("Database", html! { (bytes(database.bytes)) }),
        (
            "Free disk space",
            html! { "not known to Postgres: see the volume of the database server" },
        ),
        (
            "Signed in as",
            match page.caller.name() {
                "" => html! { "no key is needed here" },
                key => html! { bdi { (key) } },
            },
        ),
    ])
}

/// Lists settings: those that differ from the defaults, or all that contain a text.
fn settings(all: &[Setting], query: &PageQuery) -> Markup {
    let needle = query.setting.trim().to_lowercase();
    let is_all = query.all == "true" || !needle.is_empty();
    let is_own = |setting: &Setting| !setting.is_default;
    let n_own = all.iter().filter(|setting| is_own(setting)).count();
    let shown: Vec<_> = all
        .iter()
        .filter(|setting| is_all || is_own(setting))
        .filter(|setting| setting.key.contains(&needle))
        .collect();
    let table = html! {
        table.folds {
            thead { tr { th { "Setting" } th { "Value" } th { "From" } } }
            tbody { @for setting in &shown { tr { td.nowrap { code { (setting.key) } } td.text { code { (value(setting)) } } td.faint[!is_own(setting)] { (setting.origin) } } } }
        }
    };
    let body = html! {
        form.filters action="/installation" role="search" {
            label { "Name" input type="search" name="setting" value=(query.setting) placeholder="queue, http.listen" size="24"; }
            button.btn { "Filter" }
            @if is_all { a."btn quiet" href="/installation" { "Only own values" } } @else { a."btn quiet" href="/installation?all=true" { "Show all " (all.len()) } }
        }
        @if shown.is_empty() {
            div.empty { @if is_all { "No setting has this name." } @else { "All settings have their defaults." } code { "dalsegno config template" } }
        } @else { (wide("Settings", &table)) }
    };
    section("Settings", &html! { (n_own) " of " (all.len()) " are not defaults" }, &body)
}

/// Names the models of recent calls without a price, if the setting is looked for: free ones, and a section to copy with the prices of the others.
async fn prices(page: &Page, all: &[Setting], query: &PageQuery) -> Result<Markup, Refusal> {
    if query.setting.trim() != PRICES {
        return Ok(html! {});
    }
    let set = all.iter().find(|setting| setting.key == PRICES);
    let set =
        set.and_then(|setting| serde_json::from_value::<Vec<Price>>(setting.value.clone()).ok());
    let set = set.unwrap_or_default();
    let report = ReportCosts {
        by: Dimension::Provider,
        and: Some(Dimension::Model),
        since: Some((page.view.now - UNPRICED_WITHIN).into()),
        ..ReportCosts::default()
    };
    let report = page.caller.run_if_allowed(report).await?;
    let (free, unpriced) = report.map(|report| report.unpriced_models(&set)).unwrap_or_default();
    if free.is_empty() && unpriced.is_empty() {
        return Ok(html! {});
    }
    let text = template(page.view.currency(), &set, &unpriced);
    let body = html! {
        @if !free.is_empty() {
            p."small soft" {
                "Nothing has to be set for " @for (place, it) in free.iter().enumerate() { @if place > 0 { ", " } code { bdi { (it.provider) "/" (it.model) } } }
                ": the provider publishes that the model is free."
            }
        }
        @if !unpriced.is_empty() {
            p."small soft" { "Copy this section into the configuration file (" code { "dalsegno.toml" } "), correct the numbers, and start the service and all workers again: they read the file when they start. Later calls then have a price." }
            pre."code wrap after" tabindex="0" { (text) }
        }
    };
    let heading = format!("Models without a price, {} days", UNPRICED_WITHIN.num_days());
    Ok(section(&heading, &html! { (free.len() + unpriced.len()) }, &body))
}

fn value(setting: &Setting) -> String {
    match setting.value.as_str() {
        Some("") => "(empty)".to_owned(),
        Some(text) => text.to_owned(),
        None => setting.value.to_string(),
    }
}

fn tables(page: &Page, installation: &InstallationView) -> Markup {
    let tables = &installation.tables;
    let whole: i64 = tables.iter().map(|table| table.bytes).sum();
    let mut shares: Vec<Share> = tables
        .iter()
        .zip(COLOURS)
        .map(|(table, class)| Share {
            name: table.table.clone(),
            value: table.bytes as f64,
            shown: bytes(table.bytes),
            class,
        })
        .collect();
    let rest: i64 = tables.iter().skip(COLOURS.len()).map(|table| table.bytes).sum();
    shares.push(Share {
        name: "others".into(),
        value: rest as f64,
        shown: bytes(rest),
        class: "p7",
    });
    let since = installation.database.statistics_since.unwrap_or(installation.created_at);
    let n_days = (page.view.now - since).num_seconds() as f64 / SECS_OF_DAY;
    let body = html! {
        (share_bar("Size by table", &shares, whole as f64, None))
        (growth_by_day(tables))
        (wide("Tables", &table_rows(&tables[..tables.len().min(FIRST)], n_days)))
        @if tables.len() > FIRST { details.after { summary { (tables.len() - FIRST) " smaller tables" } (wide("Smaller tables", &table_rows(&tables[FIRST..], n_days))) } }
        p."tiny faint after" { "Rows are estimates of the server. Growth: rows added less rows removed, on average since " (page.view.time(since)) "." }
    };
    let end =
        html! { (bytes(whole)) " of the " (bytes(installation.database.bytes)) " of the database" };
    section("Sizes and growth", &end, &body)
}

fn table_rows(tables: &[TableSize], n_days: f64) -> Markup {
    html! {
        table.folds {
            thead { tr { th { "Table" } th.num { "Size" } th.num { "Of it indexes" } th.num { "Rows" } th.num { "Added" } th.num { "Removed" } th.num { "Growth in rows" } th.trend { "Size, 30 days" } } }
            tbody {
                @for table in tables {
                    tr {
                        td { (table.table) } td.num { (bytes(table.bytes)) } td.num { (bytes(table.index_bytes)) }
                        td.num { (table.rows) } td.num { (table.added) } td.num { (table.removed) } td.num { (growth(table.added - table.removed, n_days)) }
                        td.trend.narrow-off { @if table.days.len() > 1 { (trend(&table.table, &table.days)) } }
                    }
                }
            }
        }
    }
}

/// Sums the sizes of all tables by day, from the first day on which the cleanup has stored them.
fn days(tables: &[TableSize]) -> Vec<DaySize> {
    let mut all: BTreeMap<NaiveDate, i64> = BTreeMap::new();
    for size in tables.iter().flat_map(|table| table.days.iter()) {
        *all.entry(size.day).or_default() += size.bytes;
    }
    all.into_iter().map(|(day, bytes)| DaySize { day, bytes }).collect()
}

fn trend(name: &str, days: &[DaySize]) -> Markup {
    let values: Vec<f64> = days.iter().map(|size| size.bytes as f64).collect();
    sparkline(&format!("Size of {name} by day"), &values)
}

/// The growth since the first stored day, with the size of each day.
fn growth_by_day(tables: &[TableSize]) -> Markup {
    let days = days(tables);
    let (Some(first), Some(last)) = (days.first(), days.last()) else {
        return html! { p."small soft after" { "The nightly cleanup stores the sizes of a day. It has not run yet." } };
    };
    let now: i64 = tables.iter().map(|table| table.bytes).sum();
    let grown = now - first.bytes;
    let words = match days.len() {
        1 => format!(
            "{} on {}, stored by the nightly cleanup. The growth by day is shown from its second run on.",
            bytes(last.bytes),
            day(first)
        ),
        _ if grown < 0 => format!("{} less than on {}.", bytes(-grown), day(first)),
        _ => format!("{} more than on {}.", bytes(grown), day(first)),
    };
    html! {
        @if days.len() > 1 { div.after { (trend("all tables", &days)) } }
        p."small soft" { (words) }
        @if days.len() > 1 {
            details { summary { "Sizes by day" } table.sums { tbody { @for size in days.iter().rev() { tr { td { (day(size)) } td.num { (bytes(size.bytes)) } } } } } }
        }
    }
}

fn day(size: &DaySize) -> String {
    size.day.format("%-d %B").to_string()
}

/// Describes the growth in rows since the statistics began, by day if they cover at least one.
fn growth(rows: i64, n_days: f64) -> String {
    let a_day = (rows as f64 / n_days.max(1.0)).round() as i64;
    let period = if n_days < 1.0 { "so far" } else { "a day" };
    match a_day {
        0 if rows == 0 => "none".to_owned(),
        0 => format!("less than 1 {period}"),
        n if n > 0 => format!("+{n} {period}"),
        n => format!("−{} {period}", -n),
    }
}

fn migrations(page: &Page, migrations: &[AppliedMigration]) -> Markup {
    let rows = |migrations: &[AppliedMigration]| {
        html! {
            table.sums {
                tbody { @for migration in migrations { tr { td.text { (migration.description.replace('_', " ")) div."tiny faint" { (migration.version) } } td.num { (page.view.time(migration.installed_on)) } } } }
            }
        }
    };
    let body = html! {
        (rows(&migrations[..migrations.len().min(FIRST)]))
        @if migrations.len() > FIRST { details.after { summary { (migrations.len() - FIRST) " older" } (rows(&migrations[FIRST..])) } }
    };
    section("Migrations", &html! { (counted(migrations.len(), "applied", "applied")) }, &body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_in_rows_a_day() {
        assert_eq!(growth(3_000, 30.0), "+100 a day");
        assert_eq!(growth(-3_000, 30.0), "−100 a day");
        assert_eq!(growth(3, 30.0), "less than 1 a day");
        assert_eq!(growth(3, 0.25), "+3 so far");
        assert_eq!(growth(0, 30.0), "none");
    }
}
