//! The page of a campaign: its agents, its board, and what belongs to it.

mod agents;
mod archive;
mod blackboard;
mod blackboard_forms;
mod board;
mod budget;
mod control;
pub(super) mod create;
mod fidelity;
mod flows;
mod memory;
pub(super) mod memory_export;
mod memory_forms;
pub(super) mod new_task;
mod people;
mod texts;

use std::borrow::Cow;

use axum::extract::{Path, Query};
use maud::{Markup, html};
use serde::Deserialize;
use uuid::Uuid;

use super::{
    layout::{Content, campaign_tone, campaign_word},
    lists::{TASKS_PER_PAGE, session_table, task_table},
    page::{Page, PageResult},
    parts::{Tone, agent, capital, counted, empty, id, next_page, section, sentence, url_text},
    pauses::pause_words,
    selection,
};
use crate::{
    domain::{
        campaign_overview::Overview,
        campaigns::{Campaign, Status},
        statuses::{AgentOverview, State},
    },
    operations::{
        AddTask, ListAgentStatuses, ListSessions, ListTasks, Operation as _, Refusal, ShowCampaign,
        ShowErasure,
    },
};

const TABS: [(&str, &str); 9] = [
    ("", "Board"),
    ("tasks", "Tasks"),
    ("sessions", "Sessions"),
    ("agents", "Agents"),
    ("brief", "Brief"),
    ("memory", "Memory"),
    ("facts", "Facts"),
    ("blackboard", "Blackboard"),
    ("fidelity", "Fidelity"),
];

#[derive(Debug, Deserialize)]
pub(super) struct PageQuery {
    #[serde(default)]
    part: String,
    #[serde(default)]
    cursor: String,
    /// A version of the part that is shown.
    version: Option<i64>,
    /// The version to compare it with.
    from: Option<i64>,
    /// An item of the memory.
    item: Option<Uuid>,
    /// `true` shows long texts as a whole.
    #[serde(default)]
    whole: String,
    /// `true` lists revoked and expired items of the memory, too.
    #[serde(default)]
    ended: String,
    /// Words to search the memory for.
    #[serde(default)]
    q: String,
    /// The proof by which turns are filtered.
    #[serde(default)]
    check: String,
}

pub(super) async fn show(
    Path(given): Path<Uuid>,
    Query(query): Query<PageQuery>,
    page: Page,
) -> PageResult {
    let overview = page.caller.run(ShowCampaign { id: given, summary: true }).await?;
    if overview.campaign.is_erased {
        return erased(&page, &overview.campaign).await;
    }
    let agents = page.caller.run_if_allowed(ListAgentStatuses { id: given }).await?;
    let agents = agents.map(|statuses| statuses.items).unwrap_or_default();
    let part = match query.part.as_str() {
        "tasks" => tasks(&page, given, &query.cursor, overview.campaign.status).await?,
        "agents" => agents::show(&page, given, &agents),
        "facts" => people::show(&page, given, &query.cursor).await?,
        "fidelity" => fidelity::show(&page, given, &query).await?,
        "archive" => archive::show(&page, given).await?,
        "sessions" => sessions(&page, given, &query.cursor).await?,
        "brief" => texts::show(&page, &overview.campaign, &query).await?,
        "memory" => memory::show(&page, given, &query).await?,
        "blackboard" => blackboard::show(&page, given, &query).await?,
        _ => board::show(&page, given, &query.cursor, overview.campaign.status).await?,
    };
    let name = overview.campaign.name.clone();
    let body = html! {
        (head(&page, &overview, &agents))
        @if let Some(reason) = &overview.pause_reason {
            section."explain paused" #explain { (super::parts::icon("paused")) div { p.lede { "The campaign is paused: no turn starts until it is resumed." } p.next dir="auto" { (pause_words(&page.view, reason, overview.paused_by.as_deref(), overview.paused_at)) } } }
        }
        (cards(&page, given, &agents))
        nav.tabs aria-label="Parts of the campaign" {
            @for (key, words) in TABS {
                a href=(tab(given, key)) aria-current=[(query.part == key).then_some("page")] { (words) }
            }
        }
        div.cols {
            div { (part) }
            aside."stack side" {
                (budget::show(&page, &overview))
                @if query.part != "flows" { (flows::short(&page, given).await?) }
                @if query.part != "brief" { (texts::short(&overview.campaign)) }
            }
        }
    };
    let path = html! { a href="/campaigns" { "Campaigns" } };
    Ok(page.respond(Content { title: &name, path, body, watch: given.to_string() }).await?)
}

/// Shows a campaign whose texts are erased or about to be: the way to its receipt.
async fn erased(page: &Page, campaign: &Campaign) -> PageResult {
    let body = html! {
        div.head {
            div { h1 { bdi { (campaign.name) } } div.meta { (id("campaign", campaign.id)) } }
            @if page.caller.may(&ShowErasure::SPEC) { div.actions { a.btn href={ "/erasures/" (campaign.id) } { "Receipt of its erasure" } } }
        }
        p { "The erasure of this campaign was requested: the receipt says how far it is. Costs remain, and tasks without their texts." }
    };
    let path = html! { a href="/campaigns" { "Campaigns" } };
    let content = Content { title: &campaign.name, path, body, watch: campaign.id.to_string() };
    Ok(page.respond(content).await?)
}

fn tab(campaign: Uuid, part: &str) -> String {
    match part {
        "" => format!("/campaigns/{campaign}"),
        part => format!("/campaigns/{campaign}?part={part}"),
    }
}

fn head(page: &Page, overview: &Overview, agents: &[AgentOverview]) -> Markup {
    let campaign = &overview.campaign;
    let n_open = agents.iter().filter(|it| it.status.session_id.is_some()).count();
    html! {
        div.head {
            div {
                h1 { bdi { (campaign.name) } }
                div.meta {
                    (campaign_tone(campaign.status).badge(campaign_word(campaign.status), None))
                    span { "since " (page.view.date(campaign.created_at)) }
                    span { (counted(n_open, "open session", "open sessions")) }
                    (id("campaign", campaign.id))
                }
            }
            (control::show(page, campaign.id, campaign.status))
        }
    }
}

/// Returns the state of an agent as it is shown.
fn card_state(it: &AgentOverview) -> (Tone, Cow<'static, str>) {
    let (tone, word) = match (&it.pause, it.status.state, &it.wait) {
        (Some(_), _, _) => (Tone::Paused, "paused"),
        (None, State::Working, _) => (Tone::Running, "running"),
        (None, State::Waiting, _) => (Tone::Queued, "waiting"),
        (None, State::Limited, Some(wait)) => return (Tone::Waiting, wait.state_word().into()),
        (None, State::Limited, None) => (Tone::Waiting, "at a limit"),
        (None, State::Error, _) => (Tone::Failed, "failed"),
        (None, State::Idle, _) => (Tone::Done, "idle"),
    };
    (tone, word.into())
}

/// Says why an agent is limited, and until when.
fn limit_words(page: &Page, it: &AgentOverview) -> Markup {
    html! {
        @if let Some(wait) = &it.wait { (sentence(&page.view, &capital(&wait.because()))) }
        @if let Some(until) = it.status.until { ", until " (page.view.time(until)) }
    }
}

fn cards(page: &Page, campaign: Uuid, agents: &[AgentOverview]) -> Markup {
    let is_used = |it: &&AgentOverview| {
        it.status.state != State::Idle
            || it.status.session_id.is_some()
            || it.status.later > 0
            || it.pause.is_some()
    };
    let used: Vec<_> = agents.iter().filter(is_used).collect();
    let card = |it: &AgentOverview| {
        let status = &it.status;
        let (tone, word) = card_state(it);
        html! {
            article.card {
                header { (agent(&status.agent, &status.instance)) (tone.badge(&word, None)) }
                p."small soft" dir="auto" {
                    @if let Some(pause) = &it.pause { (pause_words(&page.view, &pause.reason, Some(&pause.paused_by), Some(pause.paused_at))) }
                    @else if it.wait.is_some() { (limit_words(page, it)) }
                    @else if let Some(task) = status.task_id { a href={ "/tasks/" (task) } { "works on its task" } }
                    @else if status.state == State::Error { a href={ "/tasks?campaign_id=" (campaign) "&state=failed&agent=" (url_text(&status.agent)) } { "its last task failed" } }
                    @else if status.waiting > 0 { (status.waiting) " waiting" }
                    @else if let Some(at) = status.later_at { "next task " (page.view.calendar(at)) }
                    @else { "nothing to do" }
                }
                footer {
                    @if let Some(session) = status.session_id { a href={ "/sessions/" (session) } { "session" } } @else { span { "no session" } }
                    span { (status.waiting) " waiting" @if status.later > 0 { ", " (status.later) " later" } }
                }
            }
        }
    };
    html! { @if !used.is_empty() { div.cards { @for it in used { (card(it)) } } } }
}

async fn tasks(page: &Page, given: Uuid, cursor: &str, status: Status) -> Result<Markup, Refusal> {
    let list = ListTasks {
        campaign_id: Some(given),
        cursor: cursor.parse().ok(),
        limit: Some(TASKS_PER_PAGE),
        ..ListTasks::default()
    };
    let listing = page.caller.run(list).await?;
    let here = format!("/campaigns/{given}");
    let filter = html! { a href={ "/tasks?campaign_id=" (given) } { "filter" } };
    let is_selectable = selection::is_allowed(page);
    let table = task_table(page, &listing.items, None, is_selectable, &[]).await?;
    Ok(html! {
        @if status != Status::Closed && page.caller.may(&AddTask::SPEC) { div.filters { a."btn primary" href={ (here) "/tasks/new" } { "Add a task" } } }
        @if listing.items.is_empty() {
            (empty("The campaign has no task yet.", &format!("dalsegno task add --campaign {given} --agent AGENT \"Write part one.\"")))
        } @else { (section("Tasks, newest first", &filter, &table)) }
        (next_page(&here, &[("part", "tasks")], listing.next.as_deref()))
    })
}

async fn sessions(page: &Page, given: Uuid, cursor: &str) -> Result<Markup, Refusal> {
    let list = ListSessions {
        campaign_id: Some(given),
        agent: None,
        open: true,
        created_after: None,
        cursor: cursor.parse().ok(),
        limit: None,
    };
    let listing = page.caller.run(list).await?;
    let here = format!("/campaigns/{given}");
    let all = html! { a href={ "/sessions?campaign_id=" (given) } { "with closed ones" } };
    Ok(html! {
        @if listing.items.is_empty() {
            (empty("No session is open.", &format!("dalsegno session ls --campaign {given}")))
        } @else { (section("Open sessions", &all, &session_table(page, &listing.items, None))) }
        (next_page(&here, &[("part", "sessions")], listing.next.as_deref()))
    })
}
