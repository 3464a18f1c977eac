//! Cancelling or retrying the tasks that are selected in a list: the confirmation, and what came of each.

use axum::{extract::Query, http::HeaderMap};
use maud::{Markup, html};
use uuid::Uuid;

use super::{
    actions::go_on,
    layout::Content,
    page::{Page, PageResult},
    parts::{agent, counted, empty, page_form, refused_retry, section, title, wide},
    task::tone,
};
use crate::{
    domain::tasks::{RefusedRetry, State, Task, describe_refused},
    http::pages::{PageForm, local_target},
    operations::{CancelTask, Refusal, RetryTask, ShowTask},
};

const HERE: &str = "/tasks/selected";
/// Most tasks of a selection: those of a page of the list.
const MAX_SELECTED: usize = 200;

/// An action on several tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SelectionAction {
    Cancel,
    Retry,
}

/// Renders the bar below a list of tasks. Its checkboxes belong to the form `selection`.
pub(super) fn bar(page: &Page) -> Markup {
    let acts = [SelectionAction::Retry, SelectionAction::Cancel]
        .into_iter()
        .filter(|act| act.is_allowed(page));
    html! {
        form.selection #selection action=(HERE) {
            input type="hidden" name="back" value=(page.target);
            span data-selected { "Selected tasks" }
            @for act in acts { button.btn name="action" value=(act.as_str()) { (act.word()) " selected…" } }
        }
    }
}

/// Renders the checkbox of a task.
pub(super) fn checkbox(id: Uuid, name: &str) -> Markup {
    html! { input type="checkbox" name="id" value=(id) form="selection" aria-label={ "Select " (name) }; }
}

/// Returns true if the caller may act on tasks.
pub(super) fn is_allowed(page: &Page) -> bool {
    SelectionAction::Retry.is_allowed(page) || SelectionAction::Cancel.is_allowed(page)
}

/// Shows the selected tasks and the consequences, before anything is done.
pub(super) async fn confirm(Query(query): Query<Vec<(String, String)>>, page: Page) -> PageResult {
    let act = SelectionAction::of(&query);
    let back = back(&query);
    let tasks = read(&page, &ids(&query)).await?;
    let (fit, others): (Vec<_>, Vec<_>) = tasks.iter().partition(|task| act.applies_to(task.state));
    let refused = match act {
        SelectionAction::Retry => page.caller.refused_retries(&fit).await?,
        SelectionAction::Cancel => Vec::new(),
    };
    // A retry of these alone would leave the steps after them cancelled.
    let (steps, fit): (Vec<_>, Vec<_>) = fit.into_iter().partition(|task| {
        refused.iter().any(|retry| retry.task_id == task.id && retry.flow_id.is_some())
    });
    let n_fit = counted(fit.len(), "task", "tasks");
    let heading = match fit.is_empty() && !steps.is_empty() {
        true => format!("Retry the flows of {}", counted(steps.len(), "task", "tasks")),
        false => format!("{} {n_fit}", act.word()),
    };
    let body = html! {
        div.head { div { h1 { (heading) } } }
        @if tasks.is_empty() {
            (empty("No task is selected. In the list, `x` selects the row, and so does its checkbox.", "dalsegno task ls"))
        } @else if !act.is_allowed(&page) {
            (empty("The key of this sign-in has no scope for this action.", "dalsegno key ls"))
        } @else if fit.is_empty() && steps.is_empty() {
            (empty(act.no_effect(), "dalsegno task ls"))
        } @else {
            @if !refused.is_empty() { p.small { (describe_refused(&refused, None)) "." } }
            @if !fit.is_empty() { (form(&page, act, &fit, back)) }
        }
        div.stack {
            @if !fit.is_empty() { (section("Selected tasks", &html! { (n_fit) }, &table(&page, &fit, &refused))) }
            @if !steps.is_empty() { (section("Retried with their flows", &html! { (steps.len()) }, &table(&page, &steps, &refused))) }
            @if !others.is_empty() {
                (section("Left as they are", &html! { (others.len()) }, &html! { p."small soft" { (act.no_effect()) } (table(&page, &others, &[])) }))
            }
        }
    };
    respond(&page, act, back, body).await
}

/// Runs the operation for each task, and shows those that were refused.
pub(super) async fn run(page: Page, headers: HeaderMap, form: PageForm) -> PageResult {
    let act = SelectionAction::of(&form.fields);
    let back = back(&form.fields);
    let reason = form.field("reason").unwrap_or_default();
    let mut refused = Vec::new();
    let ids = ids(&form.fields);
    for id in &ids {
        if let Err(refusal) = act.perform(&page, *id, reason).await {
            refused.push((*id, refusal));
        }
    }
    if refused.is_empty() {
        return Ok(go_on(&headers, back));
    }
    let done = counted(ids.len() - refused.len(), "task", "tasks");
    let body = html! {
        div.head { div { h1 { (done) " " (act.past()) ", " (refused.len()) " refused" } } }
        @for (id, refusal) in &refused {
            section.error {
                h2 { a href={ "/tasks/" (id) } { (super::parts::id("task", *id)) } }
                p { (refusal.detail) }
                p.tiny { code { (refusal.code) } }
            }
        }
        div."actions after" { a.btn href=(back) { "Back to the list" } }
    };
    respond(&page, act, back, body).await
}

impl SelectionAction {
    fn of(fields: &[(String, String)]) -> Self {
        let is_retry = |(name, value): &(String, String)| name == "action" && value == "retry";
        if fields.iter().any(is_retry) { Self::Retry } else { Self::Cancel }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Cancel => "cancel",
            Self::Retry => "retry",
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Cancel => "Cancel",
            Self::Retry => "Retry",
        }
    }

    fn past(self) -> &'static str {
        match self {
            Self::Cancel => "cancelled",
            Self::Retry => "queued again",
        }
    }

    fn consequences(self) -> &'static str {
        match self {
            Self::Cancel => {
                "Waiting tasks end at once, running ones through their workers; the part of an answer that has arrived is kept. Tasks that depend on them are cancelled, too."
            }
            Self::Retry => {
                "The tasks wait on the queue again, and their attempts count from the beginning."
            }
        }
    }

    fn no_effect(self) -> &'static str {
        match self {
            Self::Cancel => "Tasks that have ended cannot be cancelled.",
            Self::Retry => "Only failed and cancelled tasks can be retried.",
        }
    }

    fn applies_to(self, state: State) -> bool {
        match self {
            Self::Cancel => matches!(state, State::Queued | State::Running),
            Self::Retry => matches!(state, State::Failed | State::Cancelled),
        }
    }

    fn is_allowed(self, page: &Page) -> bool {
        use crate::operations::Operation as _;
        match self {
            Self::Cancel => page.caller.may(&CancelTask::SPEC),
            Self::Retry => page.caller.may(&RetryTask::SPEC),
        }
    }

    async fn perform(self, page: &Page, id: Uuid, reason: &str) -> Result<(), Refusal> {
        let mut fields = vec![("id".to_owned(), id.to_string().into())];
        let operation = match self {
            Self::Cancel => "cancel_task",
            Self::Retry => "retry_task",
        };
        if self == Self::Cancel && !reason.is_empty() {
            fields.push(("reason".to_owned(), reason.into()));
        }
        page.caller.run_form(operation, fields, Vec::new()).await.map(drop)
    }
}

fn ids(fields: &[(String, String)]) -> Vec<Uuid> {
    let ids = fields.iter().filter(|(name, _)| name == "id");
    ids.filter_map(|(_, value)| value.parse().ok()).take(MAX_SELECTED).collect()
}

/// Returns the list in which the tasks were selected.
fn back(fields: &[(String, String)]) -> &str {
    let field = fields.iter().find(|(name, _)| name == "back");
    match local_target(field.map(|(_, value)| value.as_str())) {
        "/" => "/tasks",
        target => target,
    }
}

async fn read(page: &Page, ids: &[Uuid]) -> Result<Vec<Task>, Refusal> {
    let mut tasks = Vec::with_capacity(ids.len());
    for id in ids {
        tasks.push(page.caller.run(ShowTask { id: *id, wait: None }).await?.task);
    }
    Ok(tasks)
}

fn form(page: &Page, act: SelectionAction, tasks: &[&Task], back: &str) -> Markup {
    let ids = tasks.iter().map(|task| format!("dalsegno task {} {}", act.as_str(), task.id));
    let commands = ids.collect::<Vec<_>>().join("\n");
    let fields = html! {
        input type="hidden" name="action" value=(act.as_str());
        input type="hidden" name="back" value=(back);
        @for task in tasks { input type="hidden" name="id" value=(task.id); }
        p { (act.consequences()) }
        @if act == SelectionAction::Cancel { div.field { label for="reason" { "Reason, for those who depend on them" } input #reason name="reason" maxlength="300"; } }
        div.actions { button."btn primary" { (act.word()) " " (counted(tasks.len(), "task", "tasks")) } a."btn quiet" href=(back) { "Back to the list" } }
        details { summary { "As commands" } pre."code wrap" { (commands) } }
    };
    html! { div.confirm { (page_form(&page.view, HERE, &fields)) } }
}

/// Renders tasks. Those in `refused` would fail again at their budget, or wait for it.
fn table(page: &Page, tasks: &[&Task], refused: &[RefusedRetry]) -> Markup {
    let table = html! {
        table.folds {
            thead { tr { th { "State" } th { "Task" } th.narrow-off { "Agent" } th { "Ended" } } }
            tbody {
                @for task in tasks {
                    tr {
                        td { (tone(task.state).state(task.state.as_str(), None)) }
                        td.fill {
                            a href={ "/tasks/" (task.id) } { bdi { (title(task.subject())) } }
                            @if let Some(error) = &task.error { div."tiny soft clip" { bdi { (title(error)) } } }
                            @if let Some(retry) = refused.iter().find(|retry| retry.task_id == task.id) { (refused_retry(&page.caller, retry)) }
                        }
                        td.narrow-off { (agent(&task.agent, &task.instance)) }
                        td { @if let Some(at) = task.ended_at { (page.view.time(at)) } }
                    }
                }
            }
        }
    };
    wide("Selected tasks", &table)
}

async fn respond(page: &Page, act: SelectionAction, back: &str, body: Markup) -> PageResult {
    let name = format!("{} tasks", act.word());
    let path = html! { a href=(back) { "Tasks" } };
    Ok(page.respond(Content { title: &name, path, body, watch: String::new() }).await?)
}
