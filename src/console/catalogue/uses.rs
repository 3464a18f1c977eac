//! Where a file is used: by which agents, flow templates and sessions.

use maud::{Markup, html};

use super::list_of;
use crate::{
    console::{
        names::Names,
        page::Page,
        parts::{Action, Confirmation, counted, empty, section},
        pauses::pause_words,
    },
    domain::{
        agent_pauses::Pause,
        agents::Node,
        files::{SourceFile, SourceKind},
        flows::Template,
        sessions::Session,
    },
    operations::{
        Agents, AllTemplates, ListAgentPauses, ListFlowTemplates, ListFlows, ListSessions,
        PauseAgentEverywhere, Refusal, ResumeAgent, ResumeAgentEverywhere,
    },
};

/// Open sessions in the list.
const MAX_SESSIONS: i64 = 8;
const MAX_FLOWS: i64 = 200;
/// Pauses of an agent in its row of the list.
const MAX_PAUSES: usize = 3;

/// Pause or resume of an agent everywhere; the start of a flow.
pub(super) fn actions(page: &Page, file: &SourceFile, pauses: &[Pause]) -> Markup {
    let here = format!("/catalogue/{}/{}", file.kind.as_str(), file.name);
    let fields = [("name", file.name.as_str())];
    let pause = Confirmation {
        action: Action::of::<PauseAgentEverywhere>("Pause everywhere", "paused", &fields, &here),
        id: "pause-everywhere",
        heading: "Pause this agent in all campaigns",
        consequences: html! { p { "No further turn of it starts, in present and future campaigns. Turns that run go on; new tasks wait." } },
        fields: html! { div.field { label for="pause-reason" { "Reason, shown with each waiting task" } input #pause-reason name="reason" data-flag="--reason" maxlength="300"; } },
        command: format!("dalsegno agent pause {} --everywhere", file.name),
    };
    let resume = Action::of::<ResumeAgentEverywhere>("Resume", "running", &fields, &here);
    match file.kind {
        SourceKind::Agent if find_everywhere(pauses).is_some() => {
            resume.button(&page.view, &page.caller)
        }
        SourceKind::Agent => pause.button(&page.view, &page.caller),
        SourceKind::Flow if file.problems.is_empty() => {
            html! { a."btn primary" href={ "/flows/start?template=" (file.name) } { "Start a flow" } }
        }
        _ => html! {},
    }
}

pub(super) async fn show(
    page: &Page,
    file: &SourceFile,
    agents: &Agents,
) -> Result<Markup, Refusal> {
    let templates = page.caller.run_if_allowed(ListFlowTemplates {}).await;
    // A folder that cannot be read has its problem on the list of files.
    let all = templates.ok().flatten();
    let all = all.unwrap_or(AllTemplates { items: Vec::new(), broken: Vec::new() });
    let name = file.name.as_str();
    Ok(match file.kind {
        SourceKind::Agent => html! {
            (in_templates(&all, |agent, _| agent == name))
            (sessions(page, name).await?)
        },
        SourceKind::Skill => by_agents(agents, name),
        SourceKind::Node => html! {
            (in_templates(&all, |_, node| node == Some(name)))
            (readings(agents.nodes.iter().find(|node| node.name == name)))
        },
        SourceKind::Flow => {
            html! { (agents_of(all.items.iter().find(|it| it.name == name))) (flows(page, name).await?) }
        }
    })
}

/// Loads the pauses of all agents that are in force.
pub(super) async fn load_pauses(page: &Page) -> Result<Vec<Pause>, Refusal> {
    let pauses = page.caller.run_if_allowed(ListAgentPauses {}).await?;
    Ok(pauses.map(|all| all.items).unwrap_or_default())
}

/// Returns the pause in all campaigns among those of an agent.
fn find_everywhere(pauses: &[Pause]) -> Option<&Pause> {
    pauses.iter().find(|pause| pause.campaign_id.is_none())
}

/// Says where an agent is paused, if it is.
pub(super) fn paused_where(pauses: &[Pause]) -> Option<String> {
    match (find_everywhere(pauses), pauses.len()) {
        (Some(_), _) => Some("in all campaigns".to_owned()),
        (None, 0) => None,
        (None, n) => Some(format!("in {}", counted(n, "campaign", "campaigns"))),
    }
}

/// Describes the newest pauses of an agent in its row of the list: where, why, since when and by whom.
pub(super) fn pause_lines(page: &Page, pauses: &[Pause], names: &Names) -> Markup {
    html! {
        @for pause in pauses.iter().take(MAX_PAUSES) { div."tiny faint" { (pause_line(page, pause, names)) } }
        @if pauses.len() > MAX_PAUSES { div."tiny faint" { "and " (pauses.len() - MAX_PAUSES) " more" } }
    }
}

fn pause_line(page: &Page, pause: &Pause, names: &Names) -> Markup {
    html! {
        @match pause.campaign_id { Some(id) => { "In " (names.campaign(id)) }, None => "In all campaigns" }
        ": " (pause_words(&page.view, &pause.reason, Some(&pause.paused_by), Some(pause.paused_at)))
    }
}

/// The pauses of the agent. The button that ends the one in all campaigns is in the head of the page.
pub(super) async fn paused(page: &Page, name: &str, pauses: &[Pause]) -> Result<Markup, Refusal> {
    if pauses.is_empty() {
        return Ok(html! {});
    }
    let names = Names::load(page).await?;
    let here = format!("/catalogue/agent/{name}");
    let resume = |campaign: uuid::Uuid| {
        let given = campaign.to_string();
        let fields = [("id", given.as_str()), ("name", name)];
        let resume = Action::of::<ResumeAgent>("Resume", "", &fields, &here).class("btn slim");
        resume.button(&page.view, &page.caller)
    };
    let body = html! {
        ul."rows small" {
            @for pause in pauses {
                li {
                    (pause_line(page, pause, &names))
                    @if let Some(id) = pause.campaign_id { div."actions after" { (resume(id)) } }
                }
            }
        }
    };
    Ok(section("Paused", &html! { (pauses.len()) }, &body))
}

/// Lists the steps for whose agent and node `is_use` is true, also those of broken templates: the file itself may have broken them.
fn in_templates(all: &AllTemplates, is_use: impl Fn(&str, Option<&str>) -> bool) -> Markup {
    let usable = all.items.iter().flat_map(|it| {
        let steps = it.steps.iter().filter(|step| is_use(&step.agent, step.node.as_deref()));
        steps.map(|step| (it.name.as_str(), step.name.as_str(), false))
    });
    let broken = all.broken.iter().flat_map(|it| {
        let steps = it.steps.iter().filter(|step| is_use(&step.agent, step.node.as_deref()));
        steps.map(|step| (it.name.as_str(), step.name.as_str(), true))
    });
    let uses: Vec<(&str, &str, bool)> = usable.chain(broken).collect();
    let body = html! {
        @if uses.is_empty() { p."small soft" { "No flow template names it." } }
        @else { ul."rows small" { @for (template, step, is_broken) in &uses { li { a href={ "/catalogue/flow/" (template) } { bdi { (template) } } ", step " bdi { (step) } @if *is_broken { span.faint { ", cannot be started" } } } } } }
    };
    section("In flow templates", &html! { (uses.len()) }, &body)
}

async fn sessions(page: &Page, name: &str) -> Result<Markup, Refusal> {
    let list = ListSessions {
        campaign_id: None,
        agent: Some(name.to_owned()),
        open: true,
        created_after: None,
        cursor: None,
        limit: Some(MAX_SESSIONS),
    };
    let Some(listing) = page.caller.run_if_allowed(list).await? else { return Ok(html! {}) };
    let names = Names::load(page).await?;
    let row = |session: &Session| html! { li { a href={ "/sessions/" (session.id) } { "instance " bdi { (session.instance) } ", turn " (session.turns) } " in " (names.campaign(session.campaign_id)) " " span.faint { (page.view.time(session.used_at)) } } };
    let body = html! {
        @if listing.items.is_empty() { (empty("No session of the agent is open.", &format!("dalsegno task add --campaign CAMPAIGN --agent {name} \"Write part one.\""))) }
        @else { ul."rows small" { @for session in &listing.items { (row(session)) } } }
    };
    let end = html! { (listing.items.len()) @if listing.next.is_some() { " of more" } };
    Ok(section("Open sessions", &end, &body))
}

fn by_agents(agents: &Agents, name: &str) -> Markup {
    let lists =
        |agent: &&serde_json::Value| list_of(Some(agent), "skills").iter().any(|it| it == name);
    let users: Vec<&str> =
        agents.items.iter().filter(lists).filter_map(|agent| agent["name"].as_str()).collect();
    let body = html! {
        @if users.is_empty() { (empty("No agent lists the skill. An agent's file names it under `skills`.", "dalsegno agent ls")) }
        @else { ul."rows small" { @for agent in &users { li { a href={ "/catalogue/agent/" (agent) } { bdi { (agent) } } } } } }
    };
    section("Used by agents", &html! { (users.len()) }, &body)
}

fn readings(node: Option<&Node>) -> Markup {
    let Some(node) = node.filter(|node| !node.readings.is_empty()) else { return html! {} };
    let body = html! { ul."rows small" { @for reading in &node.readings { li { code { bdi { (reading) } } } } } };
    section("Required readings", &html! { (node.readings.len()) }, &body)
}

fn agents_of(template: Option<&Template>) -> Markup {
    let Some(template) = template else { return html! {} };
    let body = html! {
        ul."rows small" {
            @for step in &template.steps { li { bdi { (step.name) } ": " a href={ "/catalogue/agent/" (step.agent) } { bdi { (step.agent) } } @if let Some(node) = &step.node { " at " a href={ "/catalogue/node/" (node) } { bdi { (node) } } } } }
        }
    };
    section("Agents of the steps", &html! { (template.steps.len()) }, &body)
}

async fn flows(page: &Page, name: &str) -> Result<Markup, Refusal> {
    let list = ListFlows { campaign_id: None, state: None, cursor: None, limit: Some(MAX_FLOWS) };
    let Some(listing) = page.caller.run_if_allowed(list).await? else { return Ok(html! {}) };
    let own: Vec<_> = listing.items.iter().filter(|flow| flow.template == name).collect();
    let body = html! {
        @if own.is_empty() { (empty("No flow among the newest was started from it.", &format!("dalsegno flow start {name} --campaign CAMPAIGN"))) }
        @else { ul."rows small" { @for flow in own.iter().take(8) { li { a href={ "/flows/" (flow.id) } { (crate::console::flow::state(flow)) } " " span.faint { (page.view.time(flow.created_at)) } } } } }
    };
    Ok(section("Flows from it", &html! { (own.len()) }, &body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_in_all_campaigns_comes_before_those_of_single_ones() {
        let pause = |campaign_id| Pause {
            id: uuid::Uuid::nil(),
            campaign_id,
            agent: "copywriter".to_owned(),
            reason: String::new(),
            paused_at: chrono::DateTime::UNIX_EPOCH,
            paused_by: "cli:ann".to_owned(),
            resumed_at: None,
            resumed_by: None,
        };
        let own = pause(Some(uuid::Uuid::nil()));
        assert_eq!(paused_where(&[]), None);
        assert_eq!(paused_where(std::slice::from_ref(&own)).as_deref(), Some("in 1 campaign"));
        assert_eq!(paused_where(&[own, pause(None)]).as_deref(), Some("in all campaigns"));
    }
}
