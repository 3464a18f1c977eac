//! The versions of an agent's prompt that calls have seen.

use maud::{Markup, html};

use super::PageQuery;
use crate::{
    console::{
        page::Page,
        parts::{Tone, counted, empty, section, wide, word_diff},
    },
    domain::{class::Kind, files::SourceFile, sessions::PromptVersion},
    operations::{ListPromptVersions, Refusal, ShowContext, diff_words},
};

/// Digits of a hash that are shown.
const HASH_CHARS: usize = 12;
/// Longest prompt that is compared.
const DIFF_MAX_BYTES: usize = 256 * 1024;

pub(super) async fn show(
    page: &Page,
    file: &SourceFile,
    query: &PageQuery,
) -> Result<Markup, Refusal> {
    let versions = page.caller.run(ListPromptVersions { name: file.name.clone() }).await?.items;
    if versions.is_empty() {
        let command = format!(
            "dalsegno task add --campaign CAMPAIGN --agent {} \"Write part one.\"",
            file.name
        );
        return Ok(empty(
            "No call has seen this prompt: the agent has no conversation yet.",
            &command,
        ));
    }
    let chosen = versions.iter().position(|version| version.prompt_hash == query.version);
    let text = match chosen {
        Some(place) => one(page, &versions[place], versions.get(place + 1)).await?,
        None => html! {},
    };
    let here = format!("/catalogue/agent/{}?part=versions", file.name);
    let table = table(page, &versions, &here, chosen);
    Ok(html! {
        (section("Versions that calls have seen", &html! { (versions.len()) ", the last used first" }, &html! {
            (wide("Versions", &table))
            p."small soft after" { "A version is the hash of the prompt with which a conversation was opened; another prompt opens a new one. Versions go with the last of their conversations." }
        }))
        (text)
    })
}

fn table(page: &Page, versions: &[PromptVersion], here: &str, chosen: Option<usize>) -> Markup {
    html! {
        table.folds {
            thead { tr { th { "State" } th { "Version" } th { "First used" } th { "Last used" } th.num { "Conversations" } th.num { "Turns" } th { "Last conversation" } } }
            tbody {
                @for (place, version) in versions.iter().enumerate() {
                    tr {
                        td { @if version.is_current { (Tone::Running.state("current", None)) } @else { (Tone::Done.state("earlier", None)) } }
                        td.text { a href={ (here) "&version=" (version.prompt_hash) "#version" } aria-current=[(chosen == Some(place)).then_some("true")] { code { (short(version)) } } }
                        td.nowrap { (page.view.calendar(version.first_used_at)) }
                        td.nowrap { (page.view.calendar(version.last_used_at)) }
                        td.num { (version.sessions) }
                        td.num { (version.turns) }
                        td { a href={ "/sessions/" (version.last_session_id) } { (crate::console::parts::id("", version.last_session_id)) } @if version.last_session_turns > 0 { ", " a href={ "/sessions/" (version.last_session_id) "/turns/" (version.last_session_turns) } { "turn " (version.last_session_turns) } } }
                    }
                }
            }
        }
    }
}

fn short(version: &PromptVersion) -> String {
    version.prompt_hash.chars().take(HASH_CHARS).collect()
}

/// Shows the system prompt of a version as its last call was sent it, and what changed since the version before.
async fn one(
    page: &Page,
    version: &PromptVersion,
    before: Option<&PromptVersion>,
) -> Result<Markup, Refusal> {
    let text = system_of(page, version).await?;
    let earlier = match before {
        Some(before) => system_of(page, before).await?,
        None => None,
    };
    let body = html! {
        @match &text {
            Some(text) => {
                @match (before, &earlier) {
                    (Some(before), Some(earlier)) if earlier.len() + text.len() < DIFF_MAX_BYTES => {
                        p."small soft" { "Compared with version " code { (short(before)) } ", as their last calls were sent:" }
                        (word_diff(&diff_words(earlier, text)))
                    }
                    _ => {}
                }
                details.after open[earlier.is_none()] { summary { "The whole system prompt" } pre."code wrap" tabindex="0" dir="auto" { (text) } }
            }
            None => (empty("The text of this version is not stored: no call of its last conversation has a stored context.", &format!("dalsegno context show {}", version.last_session_id))),
        }
    };
    let heading = format!("Version {}", short(version));
    Ok(
        html! { div #version { (section(&heading, &html! { (counted(usize::try_from(version.turns).unwrap_or(0), "turn", "turns")) }, &body)) } },
    )
}

/// Returns the system prompt of the newest call of a version's last conversation, if it is stored.
async fn system_of(page: &Page, version: &PromptVersion) -> Result<Option<String>, Refusal> {
    let ask = ShowContext { id: version.last_session_id, turn: None, call: None };
    match page.caller.run_if_allowed(ask).await {
        Ok(sent) => Ok(sent.and_then(|sent| sent.system)),
        Err(refusal) if matches!(refusal.kind, Kind::NotFound | Kind::Conflict) => Ok(None),
        Err(refusal) => Err(refusal),
    }
}
