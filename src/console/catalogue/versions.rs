//! The versions of an agent's prompt that calls have seen.

use maud::{Markup, html};

use super::PageQuery;
use crate::{
    console::{
        page::Page,
        parts::{Tone, counted, empty, id, marks_words, section, url_text, wide, word_diff},
    },
    domain::{
        class::Kind,
        files::SourceFile,
        prompt_versions::{PromptVersion, short_hash},
    },
    operations::{
        ListPromptVersions, Refusal, ShowPromptVersion, WordChange, WordChangeKind, diff_words,
    },
};

/// Returns the address of a version on the page of its agent.
pub(in crate::console) fn address(agent: &str, prompt_hash: &str) -> String {
    let agent = url_text(agent);
    format!("/catalogue/agent/{agent}?part=versions&version={prompt_hash}#version")
}

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
        return Ok(empty("No call has seen this prompt: the agent has no session yet.", &command));
    }
    let place = |hash: &str| versions.iter().position(|version| version.prompt_hash == hash);
    let chosen = place(&query.version);
    let here = format!("/catalogue/agent/{}?part=versions", file.name);
    let text = match chosen {
        Some(chosen) => {
            let pair = Pair::of(&versions, chosen, place(&query.with), &here);
            one(page, &file.name, &pair).await?
        }
        None => html! {},
    };
    let table = table(page, &versions, &here, chosen);
    Ok(html! {
        (section("Versions that calls have seen", &html! { (versions.len()) ", the last used first" }, &html! {
            (wide("Versions", &table))
            p."small soft after" { "A version is the hash of the text of the agent's file with which a session was opened; another text opens a new session. Skills and edicts belong to no version: they may change from turn to turn. Versions go with the last of their sessions." }
        }))
        (text)
    })
}

/// A version, and the one with which it is compared.
struct Pair<'a> {
    versions: &'a [PromptVersion],
    /// Places among the versions, of which the last used one is the first.
    chosen: usize,
    with: Option<usize>,
    here: &'a str,
}

impl<'a> Pair<'a> {
    /// Takes the version before, unless another one is given; for the oldest one the version after it.
    fn of(
        versions: &'a [PromptVersion],
        chosen: usize,
        with: Option<usize>,
        here: &'a str,
    ) -> Self {
        let before = Some(chosen + 1).filter(|place| *place < versions.len());
        let after = chosen.checked_sub(1);
        let with = with.filter(|place| *place != chosen).or(before).or(after);
        Self { versions, chosen, with, here }
    }

    fn version(&self) -> &'a PromptVersion {
        &self.versions[self.chosen]
    }

    /// Returns both versions, the older one first, whichever of them was chosen.
    fn older_and_newer(&self) -> Option<(&'a PromptVersion, &'a PromptVersion)> {
        let with = self.with?;
        Some((&self.versions[self.chosen.max(with)], &self.versions[self.chosen.min(with)]))
    }

    /// Links to the comparisons with the version before, the one after and the current one.
    fn choices(&self) -> Markup {
        let place = |at: Option<usize>| at.filter(|at| *at < self.versions.len());
        let current = self.versions.iter().position(|version| version.is_current);
        let mut all = vec![
            ("the version before", place(Some(self.chosen + 1))),
            ("the version after", self.chosen.checked_sub(1)),
            ("the current version", current.filter(|at| *at != self.chosen)),
        ];
        // The version after or before may be the current one.
        if current.is_some() && all[..2].iter().any(|(_, at)| *at == current) {
            all.retain(|(words, at)| *at != current || *words == "the current version");
        }
        let all: Vec<_> = all.into_iter().filter_map(|(words, at)| Some((words, at?))).collect();
        html! {
            @if !all.is_empty() {
                nav.choice aria-label="Compare with" {
                    @for (words, at) in &all { a href=(link(self.here, self.version(), &self.versions[*at])) aria-current=[(self.with == Some(*at)).then_some("page")] { "compare with " (words) } }
                }
            }
        }
    }
}

/// Returns the address of a comparison.
fn link(here: &str, version: &PromptVersion, with: &PromptVersion) -> String {
    format!("{here}&version={}&with={}#version", version.prompt_hash, with.prompt_hash)
}

fn table(page: &Page, versions: &[PromptVersion], here: &str, chosen: Option<usize>) -> Markup {
    html! {
        table.folds {
            thead { tr { th { "State" } th { "Version" } th { "First used" } th { "Last used" } th.num { "Sessions" } th.num { "Turns" } } }
            tbody {
                @for (place, version) in versions.iter().enumerate() {
                    tr {
                        td { @if version.is_current { (Tone::Running.state("current", None)) } @else { (Tone::Done.state("earlier", None)) } }
                        td.text { a href={ (here) "&version=" (version.prompt_hash) "#version" } aria-current=[(chosen == Some(place)).then_some("true")] { code { (short(version)) } } (comparisons(versions, place, here)) }
                        td.nowrap { (page.view.calendar(version.first_used_at)) }
                        td { span.nowrap { (page.view.calendar(version.last_used_at)) } div.small { "in " (last_use(version)) } }
                        td.num { (version.sessions) }
                        td.num { (version.turns) }
                    }
                }
            }
        }
    }
}

/// The session that was used last, with its last turn.
fn last_use(version: &PromptVersion) -> Markup {
    let (session, turn) = (version.last_session_id, version.last_session_turns);
    html! {
        a href={ "/sessions/" (session) } { (id("", session)) }
        @if turn > 0 { ", " a href={ "/sessions/" (session) "/turns/" (turn) } { "turn " (turn) } }
    }
}

/// Links from a row to the comparisons with the version before and with the current one, each from the earlier to the later one.
fn comparisons(versions: &[PromptVersion], place: usize, here: &str) -> Markup {
    let version = &versions[place];
    let before = versions.get(place + 1).filter(|it| !it.is_current);
    let current = versions.iter().position(|it| it.is_current).filter(|at| *at != place);
    let (later, earlier) = (current.map(|at| at.min(place)), current.map(|at| at.max(place)));
    let pair = later.zip(earlier).map(|(later, earlier)| (&versions[later], &versions[earlier]));
    html! {
        @if let Some(before) = before { div."small compare" { a href=(link(here, version, before)) { "Compare with the one before" } } }
        @if let Some((later, earlier)) = pair { div."small compare" { a href=(link(here, later, earlier)) { "Compare with the current one" } } }
    }
}

fn short(version: &PromptVersion) -> &str {
    short_hash(&version.prompt_hash)
}

/// Shows the prompt of a version, and its changes from or to another version.
async fn one(page: &Page, agent: &str, pair: &Pair<'_>) -> Result<Markup, Refusal> {
    let version = pair.version();
    let text = text_of(page, agent, version).await?;
    let compared = pair.older_and_newer();
    let changes = match compared {
        Some((older, newer)) => changes_between(page, agent, older, newer).await?,
        None => None,
    };
    let body = html! {
        (pair.choices())
        @if let Some((older, newer)) = compared {
            p."small soft after" { "From the older version " code { (short(older)) } " to the newer version " code { (short(newer)) } ". " (marks_words()) }
            @match &changes {
                Some(changes) if changes.iter().all(|it| it.kind == WordChangeKind::Same) => p { "The prompt is the same. The versions differ in the roster, which only the instance " code { "main" } " of a lead has." },
                Some(changes) => (word_diff(changes)),
                None => p { "The texts cannot be compared: no call of one of the versions has a stored context." },
            }
        }
        @match &text {
            Some(text) => {
                details.after open[changes.is_none()] { summary { "The agent's prompt of version " (short(version)) } pre."code wrap" tabindex="0" dir="auto" { (text) } }
                (whole_system_prompt(version))
            },
            None => (empty("The text of this version cannot be shown: its newest stored context is gone, or no call has one.", &format!("dalsegno turn ls {}", version.last_session_id))),
        }
    };
    let heading = format!("Version {}", short(version));
    Ok(
        html! { div #version { (section(&heading, &html! { (counted(version.turns, "turn", "turns")) }, &body)) } },
    )
}

/// Leads to the system prompt of the newest stored turn, which also has skills, edicts and texts of the campaign.
fn whole_system_prompt(version: &PromptVersion) -> Markup {
    let Some((session, turn)) = version.stored_context() else { return html! {} };
    let target = format!("/sessions/{session}/turns/{turn}?show=request#request");
    html! {
        p."small soft after" { "A turn is also sent skills, edicts and texts of its campaign. " a href=(target) { "The system prompt of turn " (turn) } ", the newest one with this version." }
    }
}

/// Returns the text of a version, if it is stored and the caller may see it.
async fn text_of(
    page: &Page,
    agent: &str,
    version: &PromptVersion,
) -> Result<Option<String>, Refusal> {
    let show = ShowPromptVersion { name: agent.to_owned(), version: version.prompt_hash.clone() };
    match page.caller.run_if_allowed(show).await {
        Ok(shown) => Ok(shown.and_then(|shown| shown.text)),
        // It is gone since the list was read.
        Err(refusal) if refusal.kind == Kind::NotFound => Ok(None),
        Err(refusal) => Err(refusal),
    }
}

/// Compares the prompts of two versions, if both texts are stored.
async fn changes_between(
    page: &Page,
    agent: &str,
    older: &PromptVersion,
    newer: &PromptVersion,
) -> Result<Option<Vec<WordChange>>, Refusal> {
    let Some(before) = text_of(page, agent, older).await? else { return Ok(None) };
    let Some(after) = text_of(page, agent, newer).await? else { return Ok(None) };
    Ok(Some(diff_words(&before, &after)))
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;

    /// Three versions, the last used one first.
    fn versions(current: usize) -> Vec<PromptVersion> {
        let version = |place: usize| PromptVersion {
            prompt_hash: format!("hash-{place}"),
            is_current: place == current,
            first_used_at: DateTime::UNIX_EPOCH,
            last_used_at: DateTime::UNIX_EPOCH,
            sessions: 1,
            turns: 1,
            last_session_id: uuid::Uuid::nil(),
            last_session_turns: 1,
            stored_session_id: None,
            stored_turn: None,
        };
        (0..3).map(version).collect()
    }

    #[test]
    fn a_version_is_compared_with_its_neighbours_and_the_current_one() {
        let all = versions(0);
        let shown = |chosen, with| Pair::of(&all, chosen, with, "?a").choices().0;
        let oldest = shown(2, None);
        for (with, words) in [(1, "the version after"), (0, "the current version")] {
            let link = format!("version=hash-2&amp;with=hash-{with}#version");
            assert!(oldest.contains(&link) && oldest.contains(words), "{words} in {oldest}");
        }
        assert!(!oldest.contains("before"), "{oldest}");
        let middle = shown(1, Some(0));
        assert!(middle.contains("hash-2") && middle.contains("the current version"), "{middle}");
        assert!(!middle.contains("the version after"), "it is the current one: {middle}");
        let current = shown(0, None);
        assert!(current.contains("the version before") && !current.contains("current version"));
        assert_eq!(Pair::of(&all, 1, Some(1), "").with, Some(2), "not with itself");
        assert_eq!(Pair::of(&all, 2, None, "").with, Some(1), "the oldest one with the one after");
        assert_eq!(Pair::of(&all[..1], 0, None, "").with, None);
    }

    #[test]
    fn a_comparison_goes_from_the_older_version_to_the_newer_one() {
        let all = versions(0);
        let hashes = |chosen, with| {
            let (older, newer) = Pair::of(&all, chosen, with, "").older_and_newer().unwrap();
            (older.prompt_hash.as_str(), newer.prompt_hash.as_str())
        };
        assert_eq!(hashes(2, None), ("hash-2", "hash-1"), "opened from the oldest one");
        assert_eq!(hashes(2, Some(0)), ("hash-2", "hash-0"));
        assert_eq!(hashes(0, Some(2)), ("hash-2", "hash-0"));
    }

    #[test]
    fn each_row_leads_to_the_version_before_and_to_the_current_one() {
        let all = versions(1);
        let shown = |place| comparisons(&all, place, "?a").0;
        assert_eq!(shown(0).matches("<a ").count(), 1, "the one before is the current one");
        assert!(
            shown(1).contains("with=hash-2#version\">Compare with the one before"),
            "{}",
            shown(1)
        );
        let from_earlier = "version=hash-1&amp;with=hash-2#version\">Compare with the current one";
        assert!(shown(2).contains(from_earlier), "{}", shown(2));
    }
}
