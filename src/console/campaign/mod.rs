//! The page of a campaign: its agents, its board, and what belongs to it.

mod blackboard;
mod board;
mod budget;
mod flows;
mod memory;
mod texts;

use axum::extract::{Path, Query};
use maud::{Markup, html};
use serde::Deserialize;
use uuid::Uuid;

use super::{
    layout::{Content, campaign_tone, campaign_word},
    lists::{session_table, task_table},
    page::{Page, PageResult},
    parts::{Action, Confirmation, Tone, agent, counted, empty, id, next_page, section, url_text},
};
use crate::{
    domain::{
        campaign_overview::Overview,
        campaigns::Status,
        statuses::{AgentOverview, State},
    },
    operations::{
        ListAgentStatuses, ListSessions, ListTasks, PauseCampaign, ResumeCampaign, ShowCampaign,
    },
};

const TABS: [(&str, &str); 6] = [
    ("", "Board"),
    ("tasks", "Tasks"),
    ("conversations", "Conversations"),
    ("brief", "Brief"),
    ("memory", "Memory"),
    ("blackboard", "Blackboard"),
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
}

pub(super) async fn show(
    Path(given): Path<Uuid>,
    Query(query): Query<PageQuery>,
    page: Page,
) -> PageResult {
    let overview = page.caller.run(ShowCampaign { id: given, summary: true }).await?;
    let agents = page.caller.run_if_allowed(ListAgentStatuses { id: given }).await?;
    let agents = agents.map(|statuses| statuses.items).unwrap_or_default();
    let part = match query.part.as_str() {
        "tasks" => tasks(&page, given, &query.cursor).await?,
        "conversations" => conversations(&page, given, &query.cursor).await?,
        "brief" => texts::show(&page, &overview.campaign, &query).await?,
        "memory" => memory::show(&page, given, &query).await?,
        "blackboard" => blackboard::show(&page, given, &query).await?,
        _ => board::show(&page, given, &query.cursor, overview.campaign.status).await?,
    };
    let name = overview.campaign.name.clone();
    let body = html! {
        (head(&page, &overview, &agents))
        @if let Some(reason) = &overview.pause_reason {
            section."explain paused" #explain { (super::parts::icon("paused")) div { p.lede { "The campaign is paused: no turn starts until it is resumed." } p.next dir="auto" { (reason) } } }
        }
        (cards(given, &agents))
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

fn tab(campaign: Uuid, part: &str) -> String {
    match part {
        "" => format!("/campaigns/{campaign}"),
        part => format!("/campaigns/{campaign}?part={part}"),
    }
}

fn head(page: &Page, overview: &Overview, agents: &[AgentOverview]) -> Markup {
    let campaign = &overview.campaign;
    let n_open = agents.iter().filter(|it| it.status.session_id.is_some()).count();
    let given = campaign.id.to_string();
    let here = format!("/campaigns/{given}");
    let fields = [("id", given.as_str())];
    let resume = Action::of::<ResumeCampaign>("Resume", "running", &fields, &here);
    let pause = Confirmation {
        action: Action::of::<PauseCampaign>("Pause", "paused", &fields, &here),
        id: "confirm-pause",
        heading: "Pause this campaign",
        consequences: html! { p { "No further turn starts. Turns that run go on to their end; tasks can still be added." } },
        fields: html! { div.field { label for="pause-reason" { "Reason, shown with each waiting task" } input #pause-reason name="reason" maxlength="300"; } },
        command: format!("dalsegno campaign pause {given}"),
    };
    html! {
        div.head {
            div {
                h1 { bdi { (campaign.name) } }
                div.meta {
                    (campaign_tone(campaign.status).badge(campaign_word(campaign.status), None))
                    span { "since " (page.view.date(campaign.created_at)) }
                    span { (counted(n_open, "open conversation", "open conversations")) }
                    (id("campaign", campaign.id))
                }
            }
            div.actions {
                @match campaign.status {
                    Status::Active => (pause.button(&page.view, &page.caller)),
                    Status::Paused => (resume.button(&page.view, &page.caller)),
                    Status::Closed => {},
                }
            }
        }
    }
}

fn cards(campaign: Uuid, agents: &[AgentOverview]) -> Markup {
    let is_used = |it: &&AgentOverview| {
        it.status.state != State::Idle || it.status.session_id.is_some() || it.pause.is_some()
    };
    let used: Vec<_> = agents.iter().filter(is_used).collect();
    let card = |it: &AgentOverview| {
        let status = &it.status;
        let (tone, word) = match (&it.pause, status.state) {
            (Some(_), _) => (Tone::Paused, "paused"),
            (None, State::Working) => (Tone::Running, "running"),
            (None, State::Waiting) => (Tone::Queued, "waiting"),
            (None, State::Limited) => (Tone::Waiting, "limited"),
            (None, State::Error) => (Tone::Failed, "failed"),
            (None, State::Idle) => (Tone::Done, "idle"),
        };
        html! {
            article.card {
                header { (agent(&status.agent, &status.instance)) (tone.badge(word, None)) }
                p."small soft" dir="auto" {
                    @if let Some(pause) = &it.pause { (pause.reason) }
                    @else if let Some(task) = status.task_id { a href={ "/tasks/" (task) } { "works on its task" } }
                    @else if status.state == State::Error { a href={ "/tasks?campaign_id=" (campaign) "&state=failed&agent=" (url_text(&status.agent)) } { "its last task failed" } }
                    @else if status.waiting > 0 { (status.waiting) " waiting" }
                    @else { "nothing to do" }
                }
                footer {
                    @if let Some(session) = status.session_id { a href={ "/sessions/" (session) } { "conversation" } } @else { span { "no conversation" } }
                    span { (status.waiting) " waiting" }
                }
            }
        }
    };
    html! { @if !used.is_empty() { div.cards { @for it in used { (card(it)) } } } }
}

async fn tasks(
    page: &Page,
    given: Uuid,
    cursor: &str,
) -> Result<Markup, crate::operations::Refusal> {
    let list = ListTasks {
        campaign_id: Some(given),
        agent: None,
        instance: None,
        state: None,
        created_after: None,
        created_before: None,
        text: None,
        tags: None,
        metadata: None,
        cursor: cursor.parse().ok(),
        limit: None,
    };
    let listing = page.caller.run(list).await?;
    let here = format!("/campaigns/{given}");
    let filter = html! { a href={ "/tasks?campaign_id=" (given) } { "filter" } };
    Ok(html! {
        @if listing.items.is_empty() {
            (empty("The campaign has no task yet.", &format!("dalsegno task add --campaign {given} --agent AGENT \"Write part one.\"")))
        } @else { (section("Tasks, newest first", &filter, &task_table(page, &listing.items))) }
        (next_page(&here, &[("part", "tasks")], listing.next.as_deref()))
    })
}

async fn conversations(
    page: &Page,
    given: Uuid,
    cursor: &str,
) -> Result<Markup, crate::operations::Refusal> {
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
            (empty("No conversation is open.", &format!("dalsegno session ls --campaign {given}")))
        } @else { (section("Open conversations", &all, &session_table(page, &listing.items))) }
        (next_page(&here, &[("part", "conversations")], listing.next.as_deref()))
    })
}
