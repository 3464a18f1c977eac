//! The pages of the files of an installation: agents, skills, nodes and flow templates.

pub(super) mod prompt;
mod source;
mod uses;
pub(super) mod versions;

use axum::extract::{Path, Query};
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::Value;

use super::{
    layout::Content,
    names::Names,
    page::{Page, PageResult},
    parts::{Tone, capital, counted, empty, facts, section, wide},
    problem,
};
use crate::{
    domain::{
        agent_pauses::Pause,
        files::{SourceFile, SourceKind},
    },
    operations::{Agents, ListAgents, ListFiles, ListFlowTemplates, ShowFile},
};

const KINDS: [SourceKind; 4] =
    [SourceKind::Agent, SourceKind::Skill, SourceKind::Node, SourceKind::Flow];

#[derive(Debug, Default, Deserialize)]
pub(super) struct PageQuery {
    /// The part of the page; empty for the file.
    #[serde(default)]
    part: String,
    /// `source` or `text`; empty for the one that fits.
    #[serde(default)]
    view: String,
    #[serde(default)]
    campaign_id: String,
    #[serde(default)]
    prompt: String,
    #[serde(default)]
    version: String,
    /// The version with which that one is compared.
    #[serde(default)]
    with: String,
}

pub(super) async fn list(page: Page) -> PageResult {
    let files = page.caller.run(ListFiles {}).await?;
    let agents = page.caller.run(ListAgents {}).await?;
    let pauses = uses::load_pauses(&page).await?;
    let flows = page.caller.run_if_allowed(ListFlowTemplates {}).await;
    let flows = flows.ok().flatten().map(|all| all.items).unwrap_or_default();
    let about = |file: &SourceFile| -> String {
        match file.kind {
            SourceKind::Agent => text_of(agent_of(&agents, &file.name), "description"),
            SourceKind::Skill => agents
                .skills
                .iter()
                .find(|it| it.name == file.name)
                .map(|it| it.description.clone())
                .unwrap_or_default(),
            SourceKind::Node => agents
                .nodes
                .iter()
                .find(|it| it.name == file.name)
                .map(|it| it.description.clone())
                .unwrap_or_default(),
            SourceKind::Flow => flows
                .iter()
                .find(|it| it.name == file.name)
                .map(|it| it.description.clone())
                .unwrap_or_default(),
        }
    };
    let names = Names::load(&page).await?;
    let why_paused = |pauses: &[Pause]| uses::pause_lines(&page, pauses, &names);
    let n_broken = files.items.iter().filter(|file| !file.problems.is_empty()).count();
    let body = html! {
        div.head { div { h1 { "Agents" } } }
        p.lede {
            @for (place, kind) in KINDS.into_iter().enumerate() {
                @if place > 0 { ", " }
                (counted(files.items.iter().filter(|file| file.kind == kind).count(), one(kind), many(kind)))
            }
            ". "
            @match n_broken {
                0 if !files.warnings.is_empty() => { b { (counted(files.warnings.len(), "key has", "keys have")) " no effect" } " or cannot work; the files are in use." }
                0 => "All files are in order.",
                n => { b { (counted(n, "file has", "files have")) " problems" } " and " @if n == 1 { "is" } @else { "are" } " refused." }
            }
        }
        @if !files.problems.is_empty() { (section("Folders that cannot be used", &html! { (files.problems.len()) }, &source::problem_list(&files.problems))) }
        @if !files.warnings.is_empty() { (section("Keys that cannot work as written", &html! { (files.warnings.len()) }, &source::problem_list(&files.warnings))) }
        div.stack {
            @for kind in KINDS { (group(kind, &files.items, &agents, &pauses, &about, &why_paused)) }
        }
        p."small soft after" { "In a terminal: " code { "dalsegno agent check" } ", which also warns of tools, windows and budgets that cannot work, and " code { "dalsegno flow check" } "." }
    };
    let path = html! { span { "Agents" } };
    Ok(page.respond(Content { title: "Agents", path, body, watch: String::new() }).await?)
}

fn one(kind: SourceKind) -> &'static str {
    match kind {
        SourceKind::Agent => "agent",
        SourceKind::Skill => "skill",
        SourceKind::Node => "node",
        SourceKind::Flow => "flow template",
    }
}

fn many(kind: SourceKind) -> &'static str {
    match kind {
        SourceKind::Agent => "agents",
        SourceKind::Skill => "skills",
        SourceKind::Node => "nodes",
        SourceKind::Flow => "flow templates",
    }
}

fn heading(kind: SourceKind) -> &'static str {
    match kind {
        SourceKind::Agent => "Agents",
        SourceKind::Skill => "Skills",
        SourceKind::Node => "Nodes",
        SourceKind::Flow => "Flow templates",
    }
}

/// Says where files of a kind are read from.
fn advice(kind: SourceKind) -> (&'static str, &'static str) {
    match kind {
        SourceKind::Agent => {
            ("No agent has a file. An agent is NAME.md in agents.folder.", "dalsegno config show")
        }
        SourceKind::Skill => (
            "No skill exists. A skill is NAME/SKILL.md in agents.skills_folder, and agents list it in their files.",
            "dalsegno config show",
        ),
        SourceKind::Node => (
            "No node exists. A node is NAME.md in agents.nodes_folder: instructions and required readings.",
            "dalsegno agent nodes",
        ),
        SourceKind::Flow => (
            "No flow template exists. A template is NAME.md in flows.folder: inputs and steps.",
            "dalsegno flow templates",
        ),
    }
}

fn group(
    kind: SourceKind,
    files: &[SourceFile],
    agents: &Agents,
    pauses: &[Pause],
    about: &dyn Fn(&SourceFile) -> String,
    why_paused: &dyn Fn(&[Pause]) -> Markup,
) -> Markup {
    let own: Vec<&SourceFile> = files.iter().filter(|file| file.kind == kind).collect();
    let is_agent = kind == SourceKind::Agent;
    let table = html! {
        table.folds {
            thead { tr { th { "State" } th { "Name" } th { "For" } @if is_agent { th { "Model" } th { "Skills" } } th { "File" } } }
            tbody {
                @for file in &own {
                    tr {
                        td.text { @let own = pauses_of(pauses, file); @let (tone, word, why) = state(file, &own); (tone.state(word, why.as_deref())) (why_paused(&own)) }
                        td.text.name { a href=(target(file)) { b { bdi { (file.name) } } } }
                        td.about dir="auto" { (about(file)) }
                        @if is_agent {
                            td.narrow-off { (model(agents, &file.name)) }
                            td.narrow-off { @for (n, skill) in list_of(agent_of(agents, &file.name), "skills").iter().enumerate() { @if n > 0 { ", " } a href={ "/catalogue/skill/" (skill) } { bdi { (skill) } } } }
                        }
                        td.narrow-off { @if file.is_built_in { span.faint { "built in" } } @else { code { bdi { (short_path(&file.path)) } } } }
                    }
                }
            }
        }
    };
    let (words, command) = advice(kind);
    section(
        heading(kind),
        &html! { (own.len()) },
        &if own.is_empty() { empty(words, command) } else { wide(heading(kind), &table) },
    )
}

/// Returns the pauses of an agent, none for a file of another kind.
fn pauses_of(pauses: &[Pause], file: &SourceFile) -> Vec<Pause> {
    let is_own = |pause: &&Pause| file.kind == SourceKind::Agent && pause.agent == file.name;
    pauses.iter().filter(is_own).cloned().collect()
}

/// Returns the state of a file with its reason.
fn state(file: &SourceFile, pauses: &[Pause]) -> (Tone, &'static str, Option<String>) {
    match (file.problems.len(), uses::paused_where(pauses)) {
        (0, Some(place)) => (Tone::Paused, "paused", Some(place)),
        (0, None) => (Tone::Done, "in order", None),
        (n, _) => (Tone::Failed, "refused", Some(counted(n, "problem", "problems"))),
    }
}

fn target(file: &SourceFile) -> String {
    format!("/catalogue/{}/{}", file.kind.as_str(), file.name)
}

/// Returns the end of a path: its last three names.
fn short_path(path: &str) -> String {
    let names: Vec<&str> = path.rsplit('/').take(3).collect();
    let is_cut = path.split('/').count() > names.len();
    let end = names.into_iter().rev().collect::<Vec<_>>().join("/");
    if is_cut { format!("…/{end}") } else { end }
}

fn agent_of<'a>(agents: &'a Agents, name: &str) -> Option<&'a Value> {
    agents.items.iter().find(|agent| agent["name"] == name)
}

fn text_of(agent: Option<&Value>, key: &str) -> String {
    agent.and_then(|agent| agent[key].as_str()).unwrap_or_default().to_owned()
}

fn list_of(agent: Option<&Value>, key: &str) -> Vec<String> {
    let items = agent.and_then(|agent| agent[key].as_array()).into_iter().flatten();
    items.filter_map(|item| item.as_str().map(str::to_owned)).collect()
}

/// The first model of an agent, and the number of further ones.
fn model(agents: &Agents, name: &str) -> Markup {
    let chain = chain_of(agents, name);
    html! {
        @if let Some(first) = chain.first() {
            (entry_name(agents, first))
            @if chain.len() > 1 { span.faint { " and " (chain.len() - 1) " more" } }
        }
    }
}

fn chain_of<'a>(agents: &'a Agents, name: &str) -> &'a [Value] {
    let agent = agent_of(agents, name);
    agent.and_then(|agent| agent["chain"].as_array()).map_or(&[], Vec::as_slice)
}

fn entry_name(agents: &Agents, entry: &Value) -> Markup {
    let (model, provider) = (text_of(Some(entry), "model"), text_of(Some(entry), "provider"));
    let is_default = provider.is_empty() || provider == agents.default_provider.as_str();
    let usual = match is_default && !agents.default_model.is_empty() {
        true => agents.default_model.as_str(),
        false => "default model",
    };
    html! {
        bdi { @if model.is_empty() { (usual) } @else { (model) } } span.faint { " on " @if provider.is_empty() { (agents.default_provider.as_str()) } @else { (provider) } }
    }
}

/// The models of a chain with the conditions under which turns move on.
fn chain_list(page: &Page, agents: &Agents, name: &str) -> Markup {
    let conditions = |entry: &Value| {
        let amount = |key: &str, words: &dyn Fn(&Value) -> String| {
            Some(&entry[key]).filter(|value| !value.is_null()).map(words)
        };
        let all = [
            amount("errors", &|n| format!("{n} errors")),
            amount("limit_secs", &|secs| format!("a wait of {secs} s")),
            amount("max_charge_micros", &|micros| {
                format!("a charge of {}", page.view.money(micros.as_i64().unwrap_or_default()))
            }),
            amount("latency_secs", &|secs| format!("a first token after {secs} s")),
        ];
        all.into_iter().flatten().collect::<Vec<_>>().join(", ")
    };
    html! {
        @for entry in chain_of(agents, name) {
            div {
                (entry_name(agents, entry))
                @let conditions = conditions(entry);
                @if !conditions.is_empty() { span."small soft" { ", up to " (conditions) } }
            }
        }
    }
}

pub(super) async fn show(
    Path((kind, name)): Path<(String, String)>,
    Query(query): Query<PageQuery>,
    page: Page,
) -> PageResult {
    let Some(kind) = KINDS.into_iter().find(|known| known.as_str() == kind) else {
        return Err(problem::not_found());
    };
    let source = page.caller.run(ShowFile { kind, name: name.clone() }).await?;
    let agents = page.caller.run(ListAgents {}).await?;
    let file = &source.file;
    let here = target(file);
    let is_agent = kind == SourceKind::Agent;
    let pauses = pauses_of(&uses::load_pauses(&page).await?, file);
    let part = match (is_agent, query.part.as_str()) {
        (true, "prompt") => prompt::show(&page, file, &query).await?,
        (true, "versions") => versions::show(&page, file, &query).await?,
        _ => source::show(&source, &query.view),
    };
    let heading = format!("{} {name}", capital(one(kind)));
    let (tone, word, why) = state(file, &pauses);
    let body = html! {
        div.head {
            div {
                h1 { bdi { (heading) } }
                div.meta {
                    (tone.badge(word, why.as_deref()))
                    @if file.is_built_in { span { "built in" } } @else { code title=(file.path) { bdi { (short_path(&file.path)) } } }
                }
            }
            div.actions { (uses::actions(&page, file, &pauses)) }
        }
        @if !file.problems.is_empty() { (refused(file)) }
        (uses::paused(&page, &name, &pauses).await?)
        @if is_agent {
            nav.tabs aria-label="Parts of the agent" {
                @for (key, words) in [("", "File"), ("prompt", "Prompt and context"), ("versions", "Versions")] {
                    a href=(if key.is_empty() { here.clone() } else { format!("{here}?part={key}") }) aria-current=[(query.part == key).then_some("page")] { (words) }
                }
            }
        }
        div.cols {
            div.stack { (part) }
            aside."stack side" {
                @if is_agent { (section("Facts", &html! {}, &agent_facts(&page, &agents, &name))) }
                (uses::show(&page, file, &agents).await?)
            }
        }
    };
    let path = html! { a href="/catalogue" { "Agents" } @if !is_agent { span { "/" } span { (self::heading(kind)) } } };
    Ok(page.respond(Content { title: &heading, path, body, watch: String::new() }).await?)
}

fn refused(file: &SourceFile) -> Markup {
    let words = match file.kind {
        SourceKind::Agent => "The file is refused: tasks of this agent wait until it is fixed.",
        SourceKind::Skill => "The file is refused, with all agents that list the skill.",
        SourceKind::Node => "The file is refused: no task can be added at this node.",
        SourceKind::Flow => "The file is refused: no flow can be started from it.",
    };
    html! {
        section."explain failed" #explain tabindex="-1" aria-label="Explanation" {
            (super::parts::icon("failed"))
            div { p.lede { (words) } p.next { "Write what stands beside each problem; the file is read again when it changes." } }
        }
    }
}

/// The keys of an agent's file that decide on its calls.
fn agent_facts(page: &Page, agents: &Agents, name: &str) -> Markup {
    let Some(agent) = agent_of(agents, name) else {
        return html! { p."small soft" { "The file has problems, so none of its keys holds." } };
    };
    let text = |key: &str| html! { @match &agent[key] { Value::Null => "", Value::String(text) => bdi { (text) }, other => (other) } };
    let flag = |key: &str| html! { @if agent[key] == true { "yes" } };
    facts(&[
        ("Models", chain_list(page, agents, name)),
        (
            "Window",
            html! { @if let Some(n) = agent["window_tokens"].as_i64() { (super::parts::tokens(n)) " tokens" } },
        ),
        ("Lead", flag("lead")),
        ("Mentions", flag("mentions")),
        ("Session", text("session")),
        ("Posts", text("history_window")),
        ("Is told facts", flag("told_facts")),
        ("Learns facts", flag("learns_facts")),
        (
            "Skills",
            html! { @for skill in list_of(Some(agent), "skills") { a href={ "/catalogue/skill/" (skill) } { bdi { (skill) } } " " } },
        ),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_shown_by_their_end() {
        assert_eq!(short_path("/etc/dalsegno/config/agents/a.md"), "…/config/agents/a.md");
        assert_eq!(short_path("agents/a.md"), "agents/a.md");
        assert_eq!(capital("flow template"), "Flow template");
    }
}
