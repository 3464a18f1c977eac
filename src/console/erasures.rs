//! Erasures of campaigns, with their receipts.

use axum::{
    extract::{Path, Query},
    http::header::{CONTENT_DISPOSITION, CONTENT_TYPE},
    response::IntoResponse as _,
};
use maud::{Markup, html};
use serde::Deserialize;
use uuid::Uuid;

use super::{
    groups,
    layout::Content,
    page::{Page, PageResult},
    parts::{Tone, counted, duration, empty, facts, icon, id, next_page, section, wide},
};
use crate::{
    domain::erasures::Erasure,
    operations::{ListErasures, ShowErasure},
};

const HERE: &str = "/erasures";

#[derive(Debug, Deserialize)]
pub(super) struct PageQuery {
    cursor: Option<Uuid>,
}

pub(super) async fn list(Query(query): Query<PageQuery>, page: Page) -> PageResult {
    let listing = page.caller.run(ListErasures { cursor: query.cursor, limit: Some(30) }).await?;
    let more = if listing.next.is_some() { "first " } else { "" };
    let end = html! { (more) (counted(listing.items.len(), "erasure", "erasures")) };
    let body = html! {
        div.head { div { h1 { "Erasures" } div.meta { span { "Campaigns whose texts are removed for good; the costs stay" } } } }
        (groups::cleanup(HERE))
        @if listing.items.is_empty() {
            (empty("No campaign has been erased.", "dalsegno campaign erase CAMPAIGN --reason \"the contract has ended\""))
        } @else {
            (section("Newest first", &end, &table(&page, &listing.items)))
        }
        (next_page(HERE, &[], listing.next.as_deref()))
    };
    let path = html! { a href="/cleanup" { "Cleanup" } span { "/" } span { "Erasures" } };
    Ok(page.respond(Content { title: "Erasures", path, body, watch: String::new() }).await?)
}

pub(super) async fn show(Path(campaign): Path<Uuid>, page: Page) -> PageResult {
    let erasure = page.caller.run(ShowErasure { id: campaign }).await?;
    let body = html! {
        div.head {
            div { h1 { "Erasure of a campaign" } div.meta { (state(&erasure)) a href={ "/campaigns/" (campaign) } { (id("campaign", campaign)) } } }
            div.actions { a.btn href={ (HERE) "/" (campaign) "/receipt.json" } { "Receipt as JSON" } }
        }
        (explain(&page, &erasure))
        div.cols {
            div.stack { (contents(&erasure)) (signature(&erasure)) }
            aside."stack side" { (section("Facts", &html! {}, &erasure_facts(&page, &erasure))) }
        }
    };
    let path = html! { a href=(HERE) { "Erasures" } };
    let title = "Erasure of a campaign";
    Ok(page.respond(Content { title, path, body, watch: campaign.to_string() }).await?)
}

/// Serves the receipt as a file, as `campaign erase --json` prints it.
pub(super) async fn receipt(Path(campaign): Path<Uuid>, page: Page) -> PageResult {
    let erasure = page.caller.run(ShowErasure { id: campaign }).await?;
    let text = serde_json::to_string_pretty(&erasure).unwrap_or_default();
    let name = format!("attachment; filename=\"receipt-{campaign}.json\"");
    let headers = [(CONTENT_TYPE, "application/json".to_owned()), (CONTENT_DISPOSITION, name)];
    Ok((headers, text).into_response())
}

fn state(erasure: &Erasure) -> Markup {
    match (erasure.ended_at, &erasure.step) {
        (Some(_), _) if erasure.signed.is_some() => Tone::Done.state("erased", Some("signed")),
        (Some(_), _) => Tone::Done.state("erased", None),
        (None, Some(step)) => Tone::Running.state("running", Some(step)),
        (None, None) => Tone::Waiting.state("waiting", None),
    }
}

fn explain(page: &Page, erasure: &Erasure) -> Markup {
    let (tone, words, next) = match (erasure.ended_at, erasure.vacuumed_at) {
        (Some(_), Some(_)) => {
            (Tone::Done, "The database holds no text of this campaign any more.", None)
        }
        (Some(_), None) => (
            Tone::Done,
            "No row of this campaign has a text any more. The server still has to free their space.",
            Some("The owner of the tables runs `dalsegno erasure vacuum`."),
        ),
        (None, _) if erasure.open_tasks > 0 => (
            Tone::Waiting,
            "The erasure waits until the open tasks have ended. A worker cancels them.",
            None,
        ),
        (None, _) => (Tone::Running, "A worker of the upkeep pool removes the texts.", None),
    };
    html! {
        section class={ "explain " (tone.class()) } #explain tabindex="-1" {
            (icon(tone.icon()))
            div {
                p.lede { (words) }
                p.next { @if let Some(next) = next { (super::parts::sentence(&page.view, next)) } @else if let Some(at) = erasure.ended_at { "Ended " (page.view.time(at)) ", after " (duration(at - erasure.asked_at)) "." } }
            }
        }
    }
}

fn erasure_facts(page: &Page, erasure: &Erasure) -> Markup {
    let time = |at: Option<chrono::DateTime<chrono::Utc>>| html! { @if let Some(at) = at { (page.view.time(at)) } @else { span.faint { "not yet" } } };
    facts(&[
        ("Reason", html! { bdi { (erasure.reason) } }),
        ("Requested", page.view.time(erasure.asked_at)),
        ("Ended", time(erasure.ended_at)),
        ("Vacuumed", time(erasure.vacuumed_at)),
        ("Rewritten", time(erasure.rewritten_at)),
        ("Open tasks", html! { (erasure.open_tasks) }),
        (
            "Hosts",
            html! { @if erasure.hosts.is_empty() { span.faint { "none has checked its folders yet" } } @else { bdi { (erasure.hosts.join(", ")) } } },
        ),
        ("Receipt", id("", erasure.id)),
    ])
}

/// Lists the rows before the removal with the hash of their texts, and what the worker has removed so far.
fn contents(erasure: &Erasure) -> Markup {
    let counted_rows = erasure.contents.iter().flatten();
    let body = html! {
        @if erasure.contents.is_none() && erasure.removed.is_empty() {
            (empty("Nothing has been counted yet: the removal has not begun.", "dalsegno worker upkeep"))
        } @else if erasure.contents.is_some() {
            (wide("Contents", &html! {
                table.folds {
                    thead { tr { th { "Kind" } th.num { "Rows" } th.num { "Removed" } th { "SHA-256 of their texts" } } }
                    tbody { @for (kind, rows) in counted_rows { tr { td { (kind.replace('_', " ")) } td.num { (rows.rows) } td.num { (erasure.removed.get(kind).copied().unwrap_or(0)) } td.text { code.tiny { (rows.sha256) } } } } }
                }
            }))
        } @else {
            (wide("Removed", &html! { table.sums { tbody { @for (kind, n) in &erasure.removed { tr { td { (kind.replace('_', " ")) } td.num { (n) } } } } } }))
        }
    };
    section("What there was", &html! { "counted before the removal" }, &body)
}

fn signature(erasure: &Erasure) -> Markup {
    let body = html! {
        @match &erasure.signed {
            Some(signed) => {
                (facts(&[("Signature", html! { code { (signed.signature) } }), ("Public key", html! { code { (signed.public_key) } })]))
                pre."code wrap after" { "dalsegno erasure verify receipt.json --public-key " (signed.public_key) }
            },
            None => (empty("The receipt is signed when the erasure has ended, with the key in erasures.key_file.", "dalsegno doctor")),
        }
    };
    section("Signature", &html! { "Ed25519" }, &body)
}

fn table(page: &Page, erasures: &[Erasure]) -> Markup {
    let table = html! {
        table.folds {
            thead { tr { th { "State" } th { "Campaign" } th { "Reason" } th { "Requested" } th { "Ended" } } }
            tbody {
                @for erasure in erasures {
                    tr {
                        td { (state(erasure)) }
                        td { a href={ (HERE) "/" (erasure.campaign_id) } { (id("campaign", erasure.campaign_id)) } }
                        td.text { bdi { (erasure.reason) } }
                        td { (page.view.time(erasure.asked_at)) }
                        td { @if let Some(at) = erasure.ended_at { (page.view.time(at)) } }
                    }
                }
            }
        }
    };
    wide("Erasures", &table)
}
