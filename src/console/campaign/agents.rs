//! The agents of a campaign as a table, with the actions on each of them and on all.

use maud::{Markup, html};
use uuid::Uuid;

use super::{card_state, limit_words};
use crate::{
    console::{
        page::Page,
        parts::{Action, Confirmation, agent, empty, section, wide},
    },
    domain::{
        audit::describe_label,
        statuses::{AgentOverview, State},
    },
    operations::{
        InterruptAgent, Operation as _, PauseAgent, ResetAgent, ResetAgents, ResumeAgent, ShowFile,
    },
};

pub(super) fn show(page: &Page, campaign: Uuid, agents: &[AgentOverview]) -> Markup {
    if agents.is_empty() {
        return empty("No agent has a valid file.", "dalsegno agent check");
    }
    let table = html! {
        table.folds {
            thead { tr { th { "State" } th { "Agent" } th { "Session" } th.num { "Waiting" } th {} } }
            tbody { @for (n, it) in agents.iter().enumerate() { (row(page, campaign, n, it, is_busy(agents, it))) } }
        }
    };
    html! {
        (section("Agents", &html! { (agents.len()) }, &wide("Agents", &table)))
        p."small soft after" { "A pause, an interruption and a reset concern all instances of an agent in this campaign." }
        (reset_all(page, campaign))
    }
}

/// Returns true if any instance of the agent works or waits.
fn is_busy(agents: &[AgentOverview], it: &AgentOverview) -> bool {
    let is_own = |other: &&AgentOverview| other.status.agent == it.status.agent;
    agents.iter().filter(is_own).any(|other| other.status.state != State::Idle)
}

fn row(page: &Page, campaign: Uuid, n: usize, it: &AgentOverview, is_busy: bool) -> Markup {
    let (tone, word) = card_state(it);
    let status = &it.status;
    html! {
        tr {
            td {
                (tone.state(&word, it.pause.as_ref().map(|pause| pause.reason.as_str())))
                @for pause in it.pause.iter().chain(&it.also_paused) { div."tiny faint" { @if pause.campaign_id.is_none() { "in all campaigns, " } "since " (page.view.calendar(pause.paused_at)) " by " bdi title=(pause.paused_by) { (describe_label(&pause.paused_by)) } } }
                @if it.pause.is_none() && it.wait.is_some() { div."tiny faint" { (limit_words(page, it)) } }
            }
            td.name { (agent(&status.agent, &status.instance)) }
            td { @if let Some(session) = status.session_id { a href={ "/sessions/" (session) } { "open" } } @else { span.faint { "none" } } }
            td.num { (status.waiting) @if let Some(at) = status.later_at { div."tiny faint" { (status.later) " later, next " (page.view.calendar(at)) } } }
            td { @if status.instance == "main" { (actions(page, campaign, n, it, is_busy)) } }
        }
    }
}

fn actions(page: &Page, campaign: Uuid, n: usize, it: &AgentOverview, is_busy: bool) -> Markup {
    let (given, name) = (campaign.to_string(), it.status.agent.as_str());
    let here = format!("/campaigns/{given}?part=agents");
    let fields = [("id", given.as_str()), ("name", name)];
    let ids = ["pause", "interrupt", "reset"].map(|verb| format!("{verb}-agent-{n}"));
    let [pause_id, interrupt_id, reset_id] = &ids;
    let reason = |id: &str, words: &str| {
        let id = format!("{id}-reason");
        html! { div.field { label for=(id) { (words) } input id=(id) name="reason" data-flag="--reason" maxlength="300"; } }
    };
    let resume = Action::of::<ResumeAgent>("Resume", "", &fields, &here).class("btn slim");
    let pause = Confirmation {
        action: Action::of::<PauseAgent>("Pause", "", &fields, &here).class("btn slim"),
        id: pause_id,
        heading: "Pause this agent in this campaign",
        consequences: html! { p { "No further turn of it starts here. Turns that run go on; its tasks wait, and new ones, too." } },
        fields: reason(pause_id, "Reason, shown with each waiting task"),
        command: format!("dalsegno agent pause {name} --campaign {given}"),
    };
    let interrupt = Confirmation {
        action: Action::of::<InterruptAgent>("Interrupt", "", &fields, &here).class("btn slim"),
        id: interrupt_id,
        heading: "Interrupt this agent",
        consequences: html! { p { "Its running turns stop now, and their tasks are cancelled; what has arrived is kept. Its other tasks go on, unless it is paused first." } },
        fields: reason(interrupt_id, "Reason"),
        command: format!("dalsegno agent interrupt {name} --campaign {given}"),
    };
    let reset = Confirmation {
        action: Action::of::<ResetAgent>("Reset", "", &fields, &here).class("btn slim danger"),
        id: reset_id,
        heading: "Reset the conversations of this agent",
        consequences: html! { p { "The next task of each of its conversations begins a new session. Transcripts stay, and the model is told that it was reset." } },
        fields: fresh(),
        command: format!("dalsegno agent reset {name} --campaign {given}"),
    };
    let (view, caller) = (&page.view, &page.caller);
    html! {
        div.actions {
            @match &it.pause {
                None => (pause.button(view, caller)),
                Some(pause) if pause.campaign_id.is_some() => (resume.button(view, caller)),
                Some(_) if caller.may_reach(&ShowFile::SPEC) => a."btn quiet slim" href={ "/catalogue/agent/" (name) } { "Paused everywhere" },
                Some(_) => span.soft { "Paused everywhere" },
            }
            @if is_busy { (interrupt.button(view, caller)) }
            (reset.button(view, caller))
        }
    }
}

fn reset_all(page: &Page, campaign: Uuid) -> Markup {
    let given = campaign.to_string();
    let here = format!("/campaigns/{given}?part=agents");
    let fields = [("id", given.as_str())];
    let reset = Confirmation {
        action: Action::of::<ResetAgents>("Reset all agents", "", &fields, &here)
            .class("btn danger"),
        id: "reset-agents",
        heading: "Reset all conversations of this campaign",
        consequences: html! { p { "The next task of each conversation begins a new session. Transcripts stay, and the models are told that they were reset." } },
        fields: fresh(),
        command: format!("dalsegno agent reset --campaign {given} --all"),
    };
    html! { div."actions after" { (reset.button(&page.view, &page.caller)) } }
}

fn fresh() -> Markup {
    html! { label.small { input type="checkbox" name="flag:fresh" value="true"; " Begin without any earlier message" } }
}
