//! Lists of campaigns, tasks and sessions, with their filters in the URL.

use std::collections::HashMap;

use axum::extract::Query;
use chrono::TimeDelta;
use maud::{Markup, html};
use serde::Deserialize;
use uuid::Uuid;

use super::{
    campaign::create,
    layout::{Content, campaign_tone, campaign_word},
    live_jobs::LiveJobs,
    names::Names,
    page::{Page, PageResult},
    parts::{
        Tone, agent, campaign_id, counted, empty, icon, id, next_page, optional, refused_retry,
        section, title, tokens, url_text, wide,
    },
    range::{TimeRange, choice},
    selection,
};
use crate::{
    domain::{
        costs::{Costs, Dimension},
        sessions::{self, Session},
        tasks::{ListedTask, RefusedRetry, State},
    },
    http::pages::see_other,
    operations::{
        AddTask, ListCampaigns, ListSessions, ListTasks, Operation as _, Refusal, ReportCosts,
    },
};

/// Days of which the list of campaigns has the cost.
const COST_DAYS: i64 = 30;

/// Tasks of a page. More would make the first load of failed tasks, whose rows have an error, larger than 150 KB.
pub(super) const TASKS_PER_PAGE: i64 = 40;

/// States by which tasks are filtered.
const STATES: [State; 5] =
    [State::Queued, State::Running, State::Done, State::Failed, State::Cancelled];

#[derive(Debug, Deserialize)]
pub(super) struct CampaignsAsked {
    cursor: Option<Uuid>,
}

/// Filters of the list of tasks. A form sends empty fields for those that are not set.
#[derive(Debug, Default, Deserialize)]
pub(super) struct TasksAsked {
    #[serde(default)]
    campaign_id: String,
    #[serde(default)]
    agent: String,
    #[serde(default)]
    state: String,
    #[serde(default)]
    text: String,
    #[serde(default)]
    range: String,
    cursor: Option<Uuid>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct SessionsAsked {
    #[serde(default)]
    campaign_id: String,
    #[serde(default)]
    agent: String,
    #[serde(default)]
    open: String,
    #[serde(default)]
    range: String,
    cursor: Option<Uuid>,
}

pub(super) async fn campaigns(Query(asked): Query<CampaignsAsked>, page: Page) -> PageResult {
    let list = ListCampaigns { tags: None, metadata: None, cursor: asked.cursor, limit: None };
    let listing = page.caller.run(list).await?;
    let live = LiveJobs::load(&page).await?;
    let costs = campaign_costs(&page).await?;
    let costs_of = |id: Uuid| -> Costs {
        costs.as_ref().and_then(|costs| costs.get(&id).copied()).unwrap_or_default()
    };
    let amounts = listing.items.iter().map(|campaign| costs_of(campaign.id).cost_micros);
    let money = page.view.column(amounts);
    let row = |campaign: &crate::domain::campaigns::Campaign| {
        let tone = campaign_tone(campaign.status);
        let waiting = format!("/tasks?state=queued&campaign_id={}", campaign.id);
        let spent = costs_of(campaign.id);
        html! {
            tr {
                td { (tone.state(campaign_word(campaign.status), None)) }
                td.fill.name { a href={ "/campaigns/" (campaign.id) } { bdi { (campaign.name) } } }
                td.num { @match live.n_waiting(campaign.id) { 0 => span.faint { "0" }, n => a href=(waiting) { (n) } } @if live.has_more { "+" } }
                td.num { @if costs.is_some() { a href={ "/cost?by=agent&campaign_id=" (campaign.id) } { @if spent.is_unpriced() { "no price" } @else { (money(spent.cost_micros)) } } } }
                td { (page.view.time(campaign.created_at)) }
                td.narrow-off { (id("", campaign.id)) }
            }
        }
    };
    let table = html! {
        table.folds {
            thead { tr { th { "State" } th { "Campaign" } th.num { "Waiting tasks" } th.num { "Cost, " (COST_DAYS) " days" } th { "Since" } th.narrow-off { "Id" } } }
            tbody { @for campaign in &listing.items { (row(campaign)) } }
        }
    };
    let body = html! {
        div.head { div { h1 { "Campaigns" } } }
        div.cols {
            div {
                @if listing.items.is_empty() {
                    (empty("No campaign exists yet. A campaign holds tasks, conversations, a board, memory and a budget.", "dalsegno campaign create \"Harbour series\""))
                } @else {
                    (section("All campaigns", &total(listing.items.len(), listing.next.is_some()), &wide("Campaigns", &table)))
                    (next_page("/campaigns", &[], listing.next.as_deref()))
                }
            }
            aside."stack side" { (create::form(&page)) }
        }
    };
    Ok(page
        .respond(Content {
            title: "Campaigns",
            path: html! { span { "Campaigns" } },
            body,
            watch: String::new(),
        })
        .await?)
}

/// Sums the costs of the last days by campaign. A caller who may not see costs gets none.
async fn campaign_costs(page: &Page) -> Result<Option<HashMap<Uuid, Costs>>, Refusal> {
    let report = ReportCosts {
        by: Dimension::Campaign,
        since: Some((page.view.midnight() - TimeDelta::days(COST_DAYS - 1)).into()),
        ..ReportCosts::default()
    };
    let report = page.caller.run_if_allowed(report).await?;
    let of = |line: &crate::domain::costs::CostLine| {
        Some((line.value.as_deref()?.parse().ok()?, line.costs))
    };
    Ok(report.map(|report| report.lines.iter().filter_map(of).collect()))
}

/// Leads to the form for a task of a campaign, which is chosen first.
pub(super) async fn new_task(Query(asked): Query<TasksAsked>, page: Page) -> PageResult {
    if let Some(id) = campaign_id(&asked.campaign_id)? {
        return Ok(see_other(&format!("/campaigns/{id}/tasks/new")));
    }
    let names = Names::load(&page).await?;
    let body = html! {
        div.head { div { h1 { "Add a task" } div.meta { span { "A task belongs to a campaign" } } } }
        form.filters action="/tasks/new" {
            label { "Campaign" select name="campaign_id" required { (names.required_options()) } }
            button."btn primary" { "Continue" }
            a."btn quiet" href="/campaigns" { "Create a campaign" }
        }
    };
    let path = html! { a href="/tasks" { "Tasks" } };
    Ok(page.respond(Content { title: "Add a task", path, body, watch: String::new() }).await?)
}

pub(super) async fn tasks(Query(asked): Query<TasksAsked>, page: Page) -> PageResult {
    let state = |text: &str| STATES.into_iter().find(|state| state.as_str() == text);
    let state = optional("the state of a task", &asked.state, state)?;
    let range = TimeRange::read(&asked.range)?;
    let list = ListTasks {
        campaign_id: campaign_id(&asked.campaign_id)?,
        agent: given(&asked.agent),
        state,
        created_after: range.map(|range| range.begin(page.view.now)),
        text: given(&asked.text),
        cursor: asked.cursor,
        limit: Some(TASKS_PER_PAGE),
        ..ListTasks::default()
    };
    let listing = page.caller.run(list).await?;
    let query = [
        ("campaign_id", asked.campaign_id.as_str()),
        ("agent", &asked.agent),
        ("state", &asked.state),
        ("text", &asked.text),
        ("range", &asked.range),
    ];
    let is_filtered = query.iter().any(|(_, value)| !value.is_empty());
    let names = Names::load(&page).await?;
    let table =
        task_table(&page, &listing.items, Some(&names), selection::is_allowed(&page), &[]).await?;
    let new = format!("/tasks/new?campaign_id={}", url_text(&asked.campaign_id));
    let body = html! {
        div.head {
            div { h1 { "Tasks" } }
            @if page.caller.may(&AddTask::SPEC) { div.actions { a."btn primary" href=(new) { (icon("plus")) "Add a task" } } }
        }
        (filters(&asked, is_filtered, &names))
        @if listing.items.is_empty() {
            @if listing.next.is_some() { div.empty { "No match among the next 2,000 tasks; older ones have not been searched yet." } }
            @else if is_filtered { div.empty { "No task matches these filters. " a href="/tasks" { "Show all tasks" } } }
            @else { (empty("No task has been added yet.", "dalsegno task add --campaign CAMPAIGN --agent AGENT \"Write part one.\"")) }
        } @else {
            (section("Newest first", &total(listing.items.len(), listing.next.is_some()), &table))
        }
        (next_page("/tasks", &query, listing.next.as_deref()))
    };
    Ok(page
        .respond(Content {
            title: "Tasks",
            path: html! { span { "Tasks" } },
            body,
            watch: "all".to_owned(),
        })
        .await?)
}

/// Renders a table of tasks with the reasons for which they wait. `names` adds the campaigns; `is_selectable` adds checkboxes, and the bar for
/// the tasks that are selected. `refused` marks those whose retry would fail again or wait.
pub(super) async fn task_table(
    page: &Page,
    tasks: &[ListedTask],
    names: Option<&Names>,
    is_selectable: bool,
    refused: &[RefusedRetry],
) -> Result<Markup, Refusal> {
    let refusal_of = |id: Uuid| refused.iter().find(|retry| retry.task_id == id);
    let live = LiveJobs::of_tasks(page, tasks).await?;
    let money = page.view.column(tasks.iter().map(|listed| listed.task.spent_micros));
    let table = html! {
        table.folds {
            thead { tr {
                @if is_selectable { th { span.sr { "Selected" } } }
                th { "State" } th { "Task" } @if names.is_some() { th { "Campaign" } } th { "Agent" } th { "Added" } th.num { "Cost" }
            } }
            tbody {
                @for ListedTask { task, .. } in tasks {
                    tr data-at=(task.created_at.to_rfc3339()) {
                        @if is_selectable { td.pick { (selection::checkbox(task.id, &title(task.subject()))) } }
                        td { (live.state_of(task.state, task.job_id)) }
                        td.fill {
                            a href={ "/tasks/" (task.id) } { bdi { (title(task.subject())) } }
                            @if let (State::Failed, Some(error)) = (task.state, &task.error) { div."tiny soft clip" { bdi { (title(error)) } } }
                            @if let Some(retry) = refusal_of(task.id) { (refused_retry(&page.caller, retry)) }
                        }
                        @if let Some(names) = names { td.campaign { (names.campaign(task.campaign_id)) } }
                        td { (agent(&task.agent, &task.instance)) }
                        td { (page.view.time(task.created_at)) @if let (State::Failed, Some(at)) = (task.state, task.ended_at) { div."tiny soft nowrap" { "failed " (page.view.time(at)) } } }
                        td.num { (money(task.spent_micros)) }
                    }
                }
            }
        }
    };
    Ok(html! { (wide("Tasks", &table)) @if is_selectable { (selection::bar(page)) } })
}

pub(super) async fn sessions(Query(asked): Query<SessionsAsked>, page: Page) -> PageResult {
    let range = TimeRange::read(&asked.range)?;
    let list = ListSessions {
        campaign_id: campaign_id(&asked.campaign_id)?,
        agent: given(&asked.agent),
        open: asked.open == "true",
        created_after: range.map(|range| range.begin(page.view.now)),
        cursor: asked.cursor,
        limit: None,
    };
    let listing = page.caller.run(list).await?;
    let (campaign, open) = (asked.campaign_id.as_str(), asked.open.as_str());
    let agent = asked.agent.as_str();
    let query =
        [("campaign_id", campaign), ("agent", agent), ("open", open), ("range", &asked.range)];
    let is_open = open == "true";
    let rest = [("campaign_id", campaign), ("agent", agent), ("range", &asked.range)];
    let rest = rest.iter().filter(|(_, value)| !value.is_empty());
    let rest: String = rest.map(|(name, value)| format!("&{name}={}", url_text(value))).collect();
    let is_filtered = query.iter().any(|(_, value)| !value.is_empty());
    let names = Names::load(&page).await?;
    let body = html! {
        div.head { div { h1 { "Sessions" } } }
        form.filters action="/sessions" role="search" {
            label { "Campaign" (names.select("campaign_id", campaign)) }
            label { "Agent" input name="agent" value=(agent) placeholder="any" size="14"; }
            input type="hidden" name="open" value=(open);
            input type="hidden" name="range" value=(asked.range);
            button.btn { "Filter" }
            @if is_filtered { a."btn quiet" href="/sessions" { "Show all" } }
        }
        div.filters {
            nav.choice aria-label="Sessions" {
                a href={ "/sessions?open=" (rest) } aria-current=[(!is_open).then_some("page")] { "All" }
                a href={ "/sessions?open=true" (rest) } aria-current=[is_open.then_some("page")] { "Open" }
            }
            (choice("/sessions", &[("campaign_id", campaign), ("agent", agent), ("open", open)], range, Some("any time")))
        }
        @if listing.items.is_empty() && is_filtered {
            div.empty { "No session matches these filters. " a href="/sessions" { "Show all sessions" } }
        } @else if listing.items.is_empty() {
            (empty("No session has begun. It begins with the first task of an agent in a campaign.", "dalsegno task add --campaign CAMPAIGN --agent AGENT \"Write part one.\""))
        } @else {
            (section("Newest first", &total(listing.items.len(), listing.next.is_some()), &session_table(&page, &listing.items, Some(&names))))
        }
        (next_page("/sessions", &query, listing.next.as_deref()))
    };
    Ok(page
        .respond(Content {
            title: "Sessions",
            path: html! { span { "Sessions" } },
            body,
            watch: "all".to_owned(),
        })
        .await?)
}

/// Renders a table of sessions. `names` adds their campaigns.
pub(super) fn session_table(page: &Page, sessions: &[Session], names: Option<&Names>) -> Markup {
    let table = html! {
        table.folds {
            thead { tr { th { "State" } th { "Agent" } @if names.is_some() { th { "Campaign" } } th { "Model" } th.num { "Turns" } th.num { "Context" } th { "Last used" } th.narrow-off { "Id" } } }
            tbody {
                @for session in sessions {
                    tr data-at=(session.created_at.to_rfc3339()) {
                        td { (session_state(session)) }
                        td { a href={ "/sessions/" (session.id) } { (agent(&session.agent, &session.instance)) } }
                        @if let Some(names) = names { td.campaign { (names.campaign(session.campaign_id)) } }
                        td { bdi { (session.model) } }
                        td.num { (session.turns) }
                        td.num { (tokens(session.context_tokens)) }
                        td { (page.view.time(session.used_at)) }
                        td.narrow-off { (id("", session.id)) }
                    }
                }
            }
        }
    };
    wide("Sessions", &table)
}

pub(super) fn session_state(session: &Session) -> Markup {
    let word = match session.closed_at {
        Some(_) => "closed".to_owned(),
        None => session_word(session.state),
    };
    let tone = match (session.closed_at, word.as_str()) {
        (Some(_), _) => Tone::Done,
        (None, "running") => Tone::Running,
        (None, _) => Tone::Queued,
    };
    tone.state(&word, None)
}

fn session_word(state: sessions::State) -> String {
    let word = serde_json::to_value(state).ok();
    word.and_then(|word| word.as_str().map(str::to_owned)).unwrap_or_default()
}

fn filters(asked: &TasksAsked, is_filtered: bool, names: &Names) -> Markup {
    html! {
        form.filters action="/tasks" role="search" {
            label { "State" select name="state" {
                option value="" { "any" }
                @for state in STATES { option value=(state.as_str()) selected[state.as_str() == asked.state] { (state.as_str()) } }
            } }
            label { "Campaign" (names.select("campaign_id", &asked.campaign_id)) }
            label { "Agent" input name="agent" value=(asked.agent) placeholder="any" size="14"; }
            label { "Words of the prompt" input type="search" name="text" value=(asked.text) placeholder="any" maxlength="200"; }
            label { "Added" select name="range" {
                option value="" { "at any time" }
                @for range in TimeRange::ALL { option value=(range.as_str()) selected[range.as_str() == asked.range] { (range.words()) } }
            } }
            button.btn { "Filter" }
            @if is_filtered {
                a."btn quiet" href="/tasks" { "Show all" }
            }
        }
    }
}

fn total(n: usize, has_more: bool) -> Markup {
    html! { @if has_more { "first " (n) } @else { (counted(n, "entry", "entries")) } }
}

fn given(text: &str) -> Option<String> {
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}
