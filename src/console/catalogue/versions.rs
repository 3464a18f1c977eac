//! The versions of an agent's prompt that calls have seen.

use maud::{Markup, html};

use super::PageQuery;
use crate::{
    console::{
        page::Page,
        parts::{Tone, counted, empty, section, wide, word_diff},
    },
    domain::{class::Kind, files::SourceFile, prompt_versions::PromptVersion},
    operations::{CompareContexts, ListPromptVersions, PartDiff, Refusal, ShowContext},
};

/// Digits of a hash that are shown.
const HASH_CHARS: usize = 12;
/// Parts of a context that are written in the files of an agent and of its skills. Others belong to a campaign or to a turn.
const FROM_FILES: [&str; 2] = ["agent_prompt", "skill"];

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

/// Shows the system prompt of a version as its last call was sent it, and the parts from files that changed since the version before.
async fn one(
    page: &Page,
    version: &PromptVersion,
    before: Option<&PromptVersion>,
) -> Result<Markup, Refusal> {
    let text = system_of(page, version).await?;
    let changes = match before {
        Some(before) => changes_since(page, before, version).await?,
        None => None,
    };
    let body = html! {
        @match &text {
            Some(text) => {
                @if let (Some(before), Some(changes)) = (before, &changes) {
                    p."small soft" { "Prompt and skills since version " code { (short(before)) } ", as the last calls of both were sent:" }
                    @for part in changes { (word_diff(&part.words)) }
                    @if changes.is_empty() { p { "They are the same; the roster of the lead has changed." } }
                }
                details.after open[changes.is_none()] { summary { "The whole system prompt" } pre."code wrap" tabindex="0" dir="auto" { (text) } }
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

/// Lists the parts from files that differ between the last calls of two versions, if both are stored.
async fn changes_since(
    page: &Page,
    before: &PromptVersion,
    version: &PromptVersion,
) -> Result<Option<Vec<PartDiff>>, Refusal> {
    let ask = CompareContexts {
        id: before.last_session_id,
        from: before.last_session_turns,
        to: version.last_session_turns,
        to_session: Some(version.last_session_id),
    };
    match page.caller.run_if_allowed(ask).await {
        Ok(diff) => Ok(diff.map(|diff| {
            let of_files = diff.parts.into_iter();
            of_files.filter(|part| FROM_FILES.contains(&part.kind.as_str())).collect()
        })),
        Err(refusal) if matches!(refusal.kind, Kind::NotFound | Kind::Conflict) => Ok(None),
        Err(refusal) => Err(refusal),
    }
}
