//! Brief and client context of a campaign: as they are, their versions, and the form for the next one.

use maud::{Markup, html};
use uuid::Uuid;

use super::PageQuery;
use crate::{
    console::{
        page::Page,
        parts::{Action, beginning, empty, rendered, section, title, wide, word_diff},
    },
    domain::{
        campaigns::{Campaign, VersionSummary},
        class::Kind,
    },
    operations::{
        CampaignDiff, CompareCampaignVersions, EditCampaign, ListCampaignVersions, Refusal,
        ShowCampaignVersion,
    },
};

/// Versions in the list.
const MAX_VERSIONS: i64 = 50;

/// The beginning of the brief, beside the other parts of the page.
pub(super) fn short(campaign: &Campaign) -> Markup {
    let body = html! {
        @if campaign.brief.trim().is_empty() { p."small soft" { "The campaign has no brief." } }
        @else { p.small { bdi { (title(&campaign.brief)) } } }
        p."small after" { a href=(here(campaign.id)) { "Brief, client context and versions" } }
    };
    section("Brief", &html! { "version " (campaign.version) }, &body)
}

pub(super) async fn show(
    page: &Page,
    campaign: &Campaign,
    query: &PageQuery,
) -> Result<Markup, Refusal> {
    let list = ListCampaignVersions { id: campaign.id, cursor: None, limit: Some(MAX_VERSIONS) };
    let versions = page.caller.run_if_allowed(list).await?.map(|listing| listing.items);
    let parameters = &campaign.parameters.0;
    Ok(html! {
        div.stack {
            (compared(page, campaign, query).await?)
            (text(query, campaign.id, "Brief", &campaign.brief, "The campaign has no brief.", &format!("dalsegno campaign edit {} --brief-file brief.md", campaign.id)))
            (text(query, campaign.id, "Client context", campaign.client_context.as_deref().unwrap_or_default(), "There is no client context: tone, audience and facts of the client.", ""))
            @if !parameters.is_empty() {
                (section("Parameters", &html! { (parameters.len()) }, &html! { pre."code wrap" tabindex="0" dir="auto" { (serde_json::to_string_pretty(parameters).unwrap_or_default()) } }))
            }
            (edit(page, campaign))
            @if let Some(versions) = &versions { (history(page, campaign, versions)) }
        }
    })
}

fn here(campaign: Uuid) -> String {
    format!("/campaigns/{campaign}?part=brief")
}

fn text(
    query: &PageQuery,
    campaign: Uuid,
    heading: &str,
    text: &str,
    none: &str,
    command: &str,
) -> Markup {
    let body = match (text.trim().is_empty(), query.whole.as_str()) {
        (true, _) => empty(none, command),
        (false, "true") => rendered(text),
        (false, _) => beginning(text, &format!("{}&whole=true", here(campaign)), rendered),
    };
    let n_words = text.split_whitespace().count();
    section(heading, &html! { @if n_words > 0 { (n_words) " words" } }, &body)
}

fn edit(page: &Page, campaign: &Campaign) -> Markup {
    let (given, then) = (campaign.id.to_string(), here(campaign.id));
    let version = campaign.version.to_string();
    let fields = [("id", given.as_str()), ("number:expected_version", &version)];
    let edit = Action::of::<EditCampaign>("Save", "", &fields, &then);
    if !edit.is_allowed(&page.caller) || campaign.closed_at.is_some() {
        return html! {};
    }
    let form = html! {
        div.field { label for="brief" { "Brief" } textarea #brief name="brief" rows="12" required dir="auto" { "\n" (campaign.brief) } }
        div.field { label for="client-context" { "Client context; empty for none" } textarea #client-context name="text:client_context" rows="8" dir="auto" { "\n" (campaign.client_context.as_deref().unwrap_or_default()) } }
        p."small soft after" { "Calls contain the new texts from the next one on. The edit makes version " (campaign.version + 1) "; it is refused if another edit comes first." }
        div."actions after" { button."btn primary" { "Save" } }
    };
    let body = html! { details { summary { "Edit brief and client context" } (edit.form(&page.view, &form)) } };
    section("Edit", &html! {}, &body)
}

fn history(page: &Page, campaign: &Campaign, versions: &[VersionSummary]) -> Markup {
    let row = |version: &VersionSummary| {
        html! {
            tr {
                td.num { a href={ (here(campaign.id)) "&version=" (version.version) } { (version.version) } }
                td { (page.view.time(version.changed_at)) }
                td.text { @if let Some(by) = &version.changed_by { bdi { (by) } } @else { span.soft { "unknown" } } }
                td.num { (version.brief_bytes) }
                td.num { @if let Some(bytes) = version.client_context_bytes { (bytes) } @else { span.soft { "none" } } }
                td { @if version.version > 1 { a href={ (here(campaign.id)) "&from=" (version.version - 1) "&version=" (version.version) } { "changes" } } @else { span.soft { "first" } } }
            }
        }
    };
    let table = html! {
        table.folds {
            thead { tr { th.num { "Version" } th { "Written" } th { "By" } th.num { "Brief, bytes" } th.num { "Context, bytes" } th { "Compare" } } }
            tbody { @for version in versions { (row(version)) } }
        }
    };
    let choose = html! {
        form."filters after" action={ "/campaigns/" (campaign.id) } {
            input type="hidden" name="part" value="brief";
            label { "From version" input type="number" name="from" min="1" max=(campaign.version) value=((campaign.version - 1).max(1)) required; }
            label { "To version" input type="number" name="version" min="1" max=(campaign.version) value=(campaign.version) required; }
            button.btn { "Compare" }
        }
    };
    let body = html! { (wide("Versions", &table)) @if campaign.version > 1 { (choose) } };
    section("Versions", &html! { "newest " (versions.len()) " of " (campaign.version) }, &body)
}

/// Two versions of the texts, if the query names them.
async fn compared(page: &Page, campaign: &Campaign, query: &PageQuery) -> Result<Markup, Refusal> {
    let number = |n: Option<i64>| n.and_then(|n| i32::try_from(n).ok());
    let (from, to) = match (number(query.from), number(query.version)) {
        (Some(from), Some(to)) => (from, to),
        (None, Some(version)) => return version_of(page, campaign, version).await,
        (_, None) => return Ok(html! {}),
    };
    let ask = CompareCampaignVersions { id: campaign.id, from, to: Some(to) };
    let diff = match page.caller.run_if_allowed(ask).await {
        Ok(Some(diff)) => diff,
        Ok(None) => return Ok(html! {}),
        Err(refusal) if refusal.kind == Kind::NotFound => return Ok(empty(&refusal.detail, "")),
        Err(refusal) => return Err(refusal),
    };
    let end = html! { "version " (from) " → " (to) " · " a href=(here(campaign.id)) { "close" } };
    Ok(html! { div #compared { (section("Changes", &end, &changes(&diff))) } })
}

/// Shows the texts of a version as they were.
async fn version_of(page: &Page, campaign: &Campaign, version: i32) -> Result<Markup, Refusal> {
    let shown =
        match page.caller.run(ShowCampaignVersion { id: campaign.id, number: version }).await {
            Ok(shown) => shown,
            Err(refusal) if refusal.kind == Kind::NotFound => {
                return Ok(empty(&refusal.detail, ""));
            }
            Err(refusal) => return Err(refusal),
        };
    let end = html! { a href=(here(campaign.id)) { "close" } };
    let context = shown.client_context.as_deref().unwrap_or_default();
    let body = html! {
        pre."code wrap" tabindex="0" dir="auto" { (shown.brief) }
        @if !context.is_empty() { h3.after { "Client context" } pre."code wrap" tabindex="0" dir="auto" { (context) } }
    };
    Ok(html! { div #compared { (section(&format!("Version {version}"), &end, &body)) } })
}

fn changes(diff: &CampaignDiff) -> Markup {
    let parts = [
        ("Brief", &diff.brief),
        ("Client context", &diff.client_context),
        ("Parameters", &diff.parameters),
    ];
    html! {
        @if parts.iter().all(|(_, words)| words.is_empty()) { p."small soft" { "Both versions have the same texts." } }
        @for (heading, words) in parts { @if !words.is_empty() { h3.after { (heading) } (word_diff(words)) } }
    }
}
