//! Bulk actions: one action on all tasks that match a filter, with a preview before it.

use std::collections::BTreeMap;

use axum::{extract::Query, http::HeaderMap, response::Response};
use maud::{Markup, html};
use serde::Deserialize;

use super::tab_bar;
use crate::{
    console::{
        actions::go_on,
        layout::Content,
        lists::task_table,
        names::Names,
        page::{Page, PageResult},
        parts::{
            Tone, View, campaign_id, coded, counted, duration, empty, next_page, optional, section,
            shell_word, time_field, url_text, wide,
        },
        range::TimeRange,
    },
    domain::{
        bulk_actions::{Action, BulkAction, Preview, State},
        class::Kind,
        tasks::{self, TaskFilter},
    },
    http::{
        Problem,
        pages::{PageCaller, PageForm},
    },
    operations::{CreateBulkAction, ListBulkActions, Operation as _, PreviewBulkAction, Refusal},
};

const HERE: &str = "/work/bulk";
/// States of tasks that can be retried.
const RETRIED: [tasks::State; 2] = [tasks::State::Failed, tasks::State::Cancelled];

/// The action and its filter. A form sends empty fields for those that are not set.
#[derive(Debug, Clone, Default, Deserialize)]
pub(in crate::console) struct PageQuery {
    #[serde(default)]
    action: String,
    #[serde(default)]
    campaign_id: String,
    #[serde(default)]
    except_campaign_id: String,
    #[serde(default)]
    agent: String,
    #[serde(default)]
    text: String,
    #[serde(default)]
    after: String,
    #[serde(default)]
    before: String,
    /// `failed` or `cancelled`; empty for both. Retries only.
    #[serde(default)]
    state: String,
    #[serde(default)]
    ended_after: String,
    /// A time range before now, instead of `ended_after`: `1h`. The form that runs the action has the moment.
    #[serde(default)]
    ended_within: String,
    cursor: Option<uuid::Uuid>,
    /// Unknown parameters, which may be misspelt conditions of the filter.
    #[serde(flatten)]
    unknown: BTreeMap<String, String>,
}

impl PageQuery {
    fn action(&self) -> Option<Action> {
        match self.action.as_str() {
            "cancel" => Some(Action::Cancel),
            "retry" => Some(Action::Retry),
            _ => None,
        }
    }

    /// Refuses unknown parameters: without a condition that was meant, the action would apply to more tasks.
    fn check(&self) -> Result<(), Refusal> {
        if self.unknown.is_empty() {
            return Ok(());
        }
        let names: Vec<_> = self.unknown.keys().map(|name| format!("`{name}`")).collect();
        let detail = format!(
            "this page has no parameter {}: its conditions are campaign_id, except_campaign_id, agent, text, state, after, before, ended_after and ended_within",
            names.join(", ")
        );
        Err(Refusal::new(Kind::Invalid, "bad_field", detail))
    }

    /// Replaces the time range by its beginning, which the form and the action have. A range that is chosen replaces an earlier moment.
    fn resolve_range(self, view: &View) -> Result<Self, Refusal> {
        let Some(range) = TimeRange::read(&self.ended_within)? else { return Ok(self) };
        let ended_after = view.form_moment(range.begin(view.now));
        Ok(Self { ended_after, ended_within: String::new(), ..self })
    }

    /// Reads the state of the tasks to retry.
    fn state(&self) -> Result<Option<tasks::State>, Refusal> {
        let read = |text: &str| RETRIED.into_iter().find(|state| state.as_str() == text);
        let state = optional("the state of a task that can be retried", &self.state, read)?;
        Ok(state.filter(|_| self.action != "cancel"))
    }

    fn filter(&self, page: &Page) -> Result<TaskFilter, Refusal> {
        let given = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
        let moment = |text: &str| optional("a time", text, |text| page.view.moment(text));
        Ok(TaskFilter {
            campaign_id: campaign_id(&self.campaign_id)?,
            except_campaign_id: campaign_id(&self.except_campaign_id)?,
            agent: given(&self.agent),
            text: given(&self.text),
            created_after: moment(&self.after)?,
            created_before: moment(&self.before)?,
            ended_after: moment(&self.ended_after)?,
            state: self.state()?,
            ..TaskFilter::default()
        })
    }
}

pub(in crate::console) async fn show(Query(query): Query<PageQuery>, page: Page) -> PageResult {
    query.check()?;
    let query = query.resolve_range(&page.view)?;
    let names = Names::load(&page).await?;
    let list = ListBulkActions { cursor: query.cursor, limit: Some(20) };
    let listing = page.caller.run(list).await?;
    let preview = match query.action() {
        Some(action) => Some(preview(&page, &query, action, &names).await?),
        None => None,
    };
    let body = html! {
        div.head { div { h1 { "Bulk actions" } div.meta { span { "One action on all tasks that match a filter, carried out by a worker" } } } }
        (tab_bar(&page, HERE, "").await?)
        (form(&page, &query, &names))
        @if let Some(preview) = &preview { (preview) }
        @if listing.items.is_empty() {
            (section("Bulk actions", &html! { "0" }, &empty("No bulk action has been requested.", "dalsegno task retry --campaign CAMPAIGN --state failed --dry-run")))
        } @else {
            (section("Bulk actions", &html! { "newest first" }, &table(&page, &listing.items, &names)))
        }
        (next_page(HERE, &[], listing.next.as_deref()))
    };
    let path = html! { a href="/work" { "Work" } };
    Ok(page.respond(Content { title: "Bulk actions", path, body, watch: String::new() }).await?)
}

/// Runs the action of the form, on exactly as many tasks as the preview has counted.
pub(in crate::console) async fn run(
    page: Page,
    headers: HeaderMap,
    form: PageForm,
) -> Result<Response, Problem> {
    let field = |name: &str| form.field(name).unwrap_or_default().to_owned();
    let query = PageQuery {
        action: field("action"),
        campaign_id: field("campaign_id"),
        except_campaign_id: field("except_campaign_id"),
        agent: field("agent"),
        text: field("text"),
        after: field("after"),
        before: field("before"),
        state: field("state"),
        ended_after: field("ended_after"),
        ..PageQuery::default()
    };
    let Some(action) = query.action() else { return Ok(go_on(&headers, HERE)) };
    let expected = optional("a number of tasks", &field("expected_count"), |n| n.parse().ok())?;
    // Without a preview, there is nothing to confirm.
    let Some(expected) = expected else { return Ok(go_on(&headers, HERE)) };
    let reason = Some(field("reason")).filter(|reason| !reason.trim().is_empty());
    let request = CreateBulkAction {
        action,
        filter: query.filter(&page)?,
        reason: reason.unwrap_or_else(|| "by a person, in the console".to_owned()),
        expected_count: Some(expected),
    };
    page.caller.run(request).await?;
    Ok(go_on(&headers, HERE))
}

fn form(page: &Page, query: &PageQuery, names: &Names) -> Markup {
    let zone = page.view.zone();
    html! {
        form.filters action=(HERE) {
            label { "Action" select name="action" {
                option value="retry" selected[query.action != "cancel"] { "retry what failed or was cancelled" }
                option value="cancel" selected[query.action == "cancel"] { "cancel what waits or runs" }
            } }
            label { "Campaign" (names.select("campaign_id", &query.campaign_id)) }
            label { "Except campaign" (names.select_except("except_campaign_id", &query.except_campaign_id)) }
            label { "Agent" input name="agent" value=(query.agent) placeholder="any" size="12"; }
            label { "Words of the prompt" input type="search" name="text" value=(query.text) placeholder="any" maxlength="200"; }
            label { "Only" select name="state" {
                option value="" { "failed or cancelled" }
                @for state in RETRIED { option value=(state.as_str()) selected[state.as_str() == query.state] { (state.as_str()) } }
            } }
            label { "Failed or ended" select name="ended_within" {
                option value="" { "at any time" }
                @for range in TimeRange::ALL { option value=(range.as_str()) { "in the " (range.words()) } }
            } }
            label { "Failed or ended after, in " (zone) input type=(time_field(&query.ended_after)) name="ended_after" value=(query.ended_after); }
            label { "Added after, in " (zone) input type=(time_field(&query.after)) name="after" value=(query.after); }
            label { "Added before, in " (zone) input type=(time_field(&query.before)) name="before" value=(query.before); }
            button.btn { "Preview" }
        }
    }
}

async fn preview(
    page: &Page,
    query: &PageQuery,
    action: Action,
    names: &Names,
) -> Result<Markup, Refusal> {
    let filter = query.filter(page)?;
    if filter == TaskFilter::default() {
        return Ok(
            html! { div.empty { "A bulk action needs a filter: choose a campaign, an agent, words or a time." } },
        );
    }
    let preview = page.caller.run(PreviewBulkAction { action, filter: filter.clone() }).await?;
    let verb = if action == Action::Cancel { "Cancel" } else { "Retry" };
    let n = usize::try_from(preview.matched).unwrap_or(usize::MAX);
    let table = task_table(page, &preview.tasks, Some(names), false, &preview.refused).await?;
    let body = html! {
        @if n == 0 { div.empty { "No task matches. Nothing would change." } }
        @else {
            @if !preview.refused.is_empty() { p.small { (preview.describe_refused()) "." } }
            (table)
            @if preview.tasks.len() < n { p."small faint after" { "and " (n - preview.tasks.len()) " more" } }
            (confirm(page, query, &preview, verb, &filter))
        }
    };
    let heading = format!("{verb} {}?", counted(n, "task", "tasks"));
    Ok(section(&heading, &html! { "preview, nothing has changed" }, &body))
}

fn confirm(
    page: &Page,
    query: &PageQuery,
    preview: &Preview,
    verb: &str,
    filter: &TaskFilter,
) -> Markup {
    if !may_run(&page.caller) {
        return html! { p."small soft after" { "This key may not change tasks: it needs the scope " code { "operate" } "." } };
    }
    let matched = preview.matched.to_string();
    let n = usize::try_from(preview.matched).unwrap_or(usize::MAX);
    let fields = [
        ("action", query.action.as_str()),
        ("campaign_id", &query.campaign_id),
        ("except_campaign_id", &query.except_campaign_id),
        ("agent", &query.agent),
        ("text", &query.text),
        ("after", &query.after),
        ("before", &query.before),
        ("state", &query.state),
        ("ended_after", &query.ended_after),
        ("expected_count", &matched),
    ];
    html! {
        form.after method="post" action=(HERE) hx-post=(HERE) hx-target="#outcome" {
            (page.view.token())
            @for (name, value) in fields { input type="hidden" name=(name) value=(value); }
            div.field { label for="reason" { "Reason, for the audit log" } input #reason name="reason" maxlength="300"; }
            div."actions after" {
                button.btn.primary { (verb) " " (counted(n, "task", "tasks")) }
                a."btn quiet" href=(HERE) { "Discard" }
            }
            pre."code wrap after" { (command(query.action.as_str(), filter)) }
            p."tiny faint after" { "Nothing happens if another number of tasks matches by then. Tasks that change meanwhile are skipped." }
        }
    }
}

/// The same action as a command.
fn command(action: &str, filter: &TaskFilter) -> String {
    let time = |at: Option<chrono::DateTime<chrono::Utc>>| {
        at.map(|at| at.to_rfc3339_opts(chrono::SecondsFormat::Secs, true))
    };
    let campaign = |id: Option<uuid::Uuid>| id.map(|id| id.to_string());
    let flags = [
        ("campaign", campaign(filter.campaign_id)),
        ("except-campaign", campaign(filter.except_campaign_id)),
        ("agent", filter.agent.as_deref().map(shell_word)),
        ("state", filter.state.map(|state| state.as_str().to_owned())),
        ("text", filter.text.as_deref().map(shell_word)),
        ("since", time(filter.created_after)),
        ("until", time(filter.created_before)),
        ("ended-since", time(filter.ended_after)),
    ];
    let given = flags.iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
    let flags: String = given.map(|(name, value)| format!(" --{name} {value}")).collect();
    format!("dalsegno task {action}{flags}")
}

fn may_run(caller: &PageCaller) -> bool {
    caller.may(&CreateBulkAction::SPEC)
}

fn table(page: &Page, actions: &[BulkAction], names: &Names) -> Markup {
    let row = |action: &BulkAction| {
        let (tone, word) = match action.state {
            State::Queued => (Tone::Queued, "queued"),
            State::Running => (Tone::Running, "running"),
            State::Done => (Tone::Done, "done"),
            State::Failed => (Tone::Failed, "failed"),
            State::Cancelled => (Tone::Cancelled, "cancelled"),
        };
        let verb = if action.action == Action::Cancel { "cancel" } else { "retry" };
        let ended = action.ended_at.unwrap_or(page.view.now);
        html! {
            tr {
                td { (tone.state(word, None)) }
                td.text { b { (verb) } " " (filter(&action.filter.0, page, names)) @if let Some(error) = &action.error { div.faint { bdi { (coded(error)) } } } }
                td.text { bdi { (action.reason) } }
                td.num { @match tasks_of(action) { Some(target) => a href=(target) { (action.done) " of " (action.matched) }, None => { (action.done) " of " (action.matched) } } @if action.skipped > 0 { span.faint { ", " (action.skipped) " skipped" } } }
                td { (page.view.calendar(action.created_at)) }
                td.num { @if let Some(at) = action.started_at { (duration(ended - at)) } @else { a href={ "/work/jobs/" (action.job_id) } { "why" } } }
            }
        }
    };
    let table = html! {
        table.folds {
            thead { tr { th { "State" } th { "Action" } th { "Reason" } th.num { "Tasks" } th { "Requested" } th.num { "Took" } } }
            tbody { @for action in actions { (row(action)) } }
        }
    };
    wide("Bulk actions", &table)
}

/// Links to the tasks that the filter of an action names, as they are now. `None`: the list of tasks lacks one of its conditions.
fn tasks_of(action: &BulkAction) -> Option<String> {
    let filter = &action.filter.0;
    let listed = TaskFilter {
        campaign_id: filter.campaign_id,
        agent: filter.agent.clone(),
        text: filter.text.clone(),
        state: filter.state,
        ..TaskFilter::default()
    };
    if *filter != listed {
        return None;
    }
    let campaign = filter.campaign_id.map(|id| id.to_string());
    let state = filter.state.map(|state| state.as_str().to_owned());
    let fields = [
        ("campaign_id", &campaign),
        ("agent", &filter.agent),
        ("text", &filter.text),
        ("state", &state),
    ];
    let set = fields.into_iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
    let pairs: Vec<_> = set.map(|(name, value)| format!("{name}={}", url_text(value))).collect();
    Some(format!("/tasks?{}", pairs.join("&")))
}

fn filter(filter: &TaskFilter, page: &Page, names: &Names) -> Markup {
    let at = |words: &str, at: Option<chrono::DateTime<chrono::Utc>>| {
        at.map(|at| html! { (words) " " (page.view.calendar(at)) })
    };
    let campaign = |words: &str, id: Option<uuid::Uuid>| {
        id.map(|id| html! { (words) " " (names.group(&id.to_string())) })
    };
    let mut conditions: Vec<Markup> = [
        filter.state.map(|state| html! { (state.as_str()) }),
        filter.agent.as_ref().map(|agent| html! { "of " bdi { (agent) } }),
        campaign("in", filter.campaign_id),
        campaign("except in", filter.except_campaign_id),
        filter.text.as_ref().map(|text| html! { "with “" bdi { (text) } "”" }),
        at("added after", filter.created_after),
        at("added before", filter.created_before),
        at("ended after", filter.ended_after),
    ]
    .into_iter()
    .flatten()
    .collect();
    conditions.extend(filter.tags.iter().map(|tag| html! { "tagged " bdi { (tag) } }));
    html! { @for (place, condition) in conditions.iter().enumerate() { @if place > 0 { ", " } (condition) } }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_time_range_becomes_the_moment_of_its_beginning() {
        let view = View::at(DateTime::UNIX_EPOCH + chrono::TimeDelta::hours(30));
        let after = |within: &str, after: &str| {
            let query = PageQuery {
                ended_within: within.to_owned(),
                ended_after: after.to_owned(),
                ..PageQuery::default()
            };
            query.resolve_range(&view).unwrap().ended_after
        };
        assert_eq!(after("1h", ""), "1970-01-02T05:00");
        assert_eq!(after("24h", "1970-01-02T03:00"), "1970-01-01T06:00");
        assert_eq!(after("1h", "1970-01-02T03:00"), "1970-01-02T05:00");
        assert_eq!(after("", "1970-01-02T03:00"), "1970-01-02T03:00");
    }

    #[test]
    fn the_command_has_each_condition_of_the_filter() {
        let [campaign, other] = [1, 2].map(Uuid::from_u128);
        let at = |secs| DateTime::from_timestamp(secs, 0);
        let filter = TaskFilter {
            campaign_id: Some(campaign),
            except_campaign_id: Some(other),
            agent: Some("copywriter".to_owned()),
            state: Some(tasks::State::Failed),
            text: Some("the Kai's lamp".to_owned()),
            created_after: at(1_764_000_000),
            created_before: at(1_764_003_600),
            ended_after: at(1_764_007_200),
            ..TaskFilter::default()
        };
        let expected = format!(
            "dalsegno task retry --campaign {campaign} --except-campaign {other} --agent copywriter --state failed --text {} \
             --since 2025-11-24T16:00:00Z --until 2025-11-24T17:00:00Z --ended-since 2025-11-24T18:00:00Z",
            shell_word("the Kai's lamp")
        );
        assert_eq!(command("retry", &filter), expected);
        assert_eq!(command("cancel", &TaskFilter::default()), "dalsegno task cancel");
    }
}
