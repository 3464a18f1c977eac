//! The blackboard of a campaign: its document, its changes, and the difference that each of them made.

use maud::{Markup, html};
use uuid::Uuid;

use super::{PageQuery, blackboard_forms};
use crate::{
    console::{
        page::Page,
        parts::{beginning, empty, next_page, section, wide, word_diff},
    },
    domain::{blackboard, class::Kind},
    operations::{ListBlackboardChanges, Refusal, ShowBlackboard, diff_words},
};

/// Changes of a page.
const PAGE: i64 = 20;
/// Paths that are shown of a change.
const MAX_PATHS: usize = 5;

pub(super) async fn show(
    page: &Page,
    campaign: Uuid,
    query: &PageQuery,
) -> Result<Markup, Refusal> {
    let current = page.caller.run(ShowBlackboard { id: campaign, version: None }).await?;
    let document = pretty(&current);
    let forms = blackboard_forms::show(page, campaign, &document, current.version);
    if current.version == 0 {
        let command =
            format!("dalsegno blackboard set --campaign {campaign} '{{\"status\": \"draft\"}}'");
        return Ok(html! { div.stack { (empty("The blackboard is empty.", &command)) (forms) } });
    }
    let list = ListBlackboardChanges {
        id: campaign,
        cursor: query.cursor.parse().ok(),
        limit: Some(PAGE),
    };
    let changes = page.caller.run(list).await?;
    let version = query.version.filter(|version| *version > 0).unwrap_or(current.version);
    let whole = format!("/campaigns/{campaign}?part=blackboard&whole=true");
    let shown = match query.whole.as_str() {
        "true" => code(&document),
        _ => beginning(&document, &whole, code),
    };
    Ok(html! {
        div.stack {
            (section("Blackboard", &html! { "version " (current.version) }, &shown))
            (forms)
            (difference(page, campaign, version).await?)
            (section("Changes", &html! { "newest first" }, &html! {
                (wide("Changes", &table(page, campaign, version, &changes.items)))
                (next_page(&format!("/campaigns/{campaign}"), &[("part", "blackboard")], changes.next.as_deref()))
            }))
        }
    })
}

fn code(text: &str) -> Markup {
    html! { pre."code wrap" tabindex="0" dir="auto" { (text) } }
}

fn pretty(shown: &blackboard::Blackboard) -> String {
    serde_json::to_string_pretty(&shown.document).unwrap_or_default()
}

/// The difference between a version and the one before it.
async fn difference(page: &Page, campaign: Uuid, version: i64) -> Result<Markup, Refusal> {
    let body =
        match (read(page, campaign, version - 1).await?, read(page, campaign, version).await?) {
            (Some(old), Some(new)) if old != new => word_diff(&diff_words(&old, &new)),
            (Some(_), Some(_)) => empty("Both versions have the same document.", ""),
            _ => empty(
                "This version or the one before it is not stored.",
                &format!("dalsegno blackboard history --campaign {campaign}"),
            ),
        };
    let end = html! { "version " (version - 1) " → " (version) };
    Ok(html! { div #compared { (section("What changed", &end, &body)) } })
}

/// Reads the document of a version. `None`: old versions are removed, and a number in the address may be wrong.
async fn read(page: &Page, campaign: Uuid, version: i64) -> Result<Option<String>, Refusal> {
    match page.caller.run(ShowBlackboard { id: campaign, version: Some(version) }).await {
        Ok(shown) => Ok(Some(pretty(&shown))),
        Err(refusal) if refusal.kind == Kind::NotFound => Ok(None),
        Err(refusal) => Err(refusal),
    }
}

fn table(page: &Page, campaign: Uuid, shown: i64, changes: &[blackboard::Entry]) -> Markup {
    let row = |change: &blackboard::Entry| {
        let target =
            format!("/campaigns/{campaign}?part=blackboard&version={}#compared", change.version);
        let n_more = change.paths.len().saturating_sub(MAX_PATHS);
        html! {
            tr {
                td.num { a href=(target) aria-current=[(change.version == shown).then_some("true")] { (change.version) } }
                td { (page.view.time(change.changed_at)) }
                td { bdi { (change.actor) } @if let Some(task) = change.task_id { ", " a href={ "/tasks/" (task) } { "task" } } }
                td.text { @for path in change.paths.iter().take(MAX_PATHS) { code { bdi { (path) } } " " } @if n_more > 0 { span.soft { "and " (n_more) " more" } } }
            }
        }
    };
    html! {
        table.folds {
            thead { tr { th.num { "Version" } th { "Changed" } th { "By" } th { "Paths" } } }
            tbody { @for change in changes { (row(change)) } }
        }
    }
}
