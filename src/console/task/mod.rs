//! The page of a task: the explanation first, then waits and attempts, prompt, result, and what it cost.

mod budget;
pub(super) mod children;
mod copies;
pub(super) mod files;
mod preview;
mod remedies;
mod result;
mod structured;
mod timeline;

use axum::{
    extract::{Path, Query},
    http::header::CONTENT_TYPE,
    response::IntoResponse as _,
};
use maud::{Markup, html};
use serde::Deserialize;
use uuid::Uuid;

use super::{
    job_runs::JobRuns,
    layout::Content,
    page::{Page, PageResult},
    parts::{
        Action, Confirmation, Tone, agent, agent_name, beginning, counted, facts, icon, id,
        no_price, plain, price_hint, section, sentence, title, tokens, url_text, wide,
    },
};
use crate::{
    domain::{
        amount::Refusal,
        audit::describe_label,
        batches,
        explanations::{Explanation, Obstacle},
        tasks::{Detail, State, WaitedFor},
        text::first_sentence,
    },
    http::Problem,
    operations::{
        CancelTask, ChangeTaskPriority, ExplainTask, RetryFlow, RetryTask, ShowCampaign, ShowFile,
        ShowJob, ShowTask,
    },
};

#[derive(Debug, Deserialize)]
pub(super) struct PageQuery {
    /// `raw` shows the result as it was written, `diff` compares it with that of the attempt before.
    #[serde(default)]
    result: String,
    /// `true` shows the context that the next turn would get.
    #[serde(default)]
    context: String,
    /// The attempt whose answer is shown, from 1; else the last one.
    attempt: Option<usize>,
}

pub(super) async fn show(
    Path(given): Path<Uuid>,
    Query(query): Query<PageQuery>,
    page: Page,
) -> PageResult {
    let detail = page.caller.run(ShowTask { id: given, wait: None }).await?;
    let explanation = page.caller.run(ExplainTask { id: given }).await?;
    let campaign = ShowCampaign { id: detail.task.campaign_id, summary: true };
    let campaign = page.caller.run_if_allowed(campaign).await?;
    let campaign = campaign.map(|overview| overview.campaign.name);
    let task = &detail.task;
    let name = title(task.subject());
    let attempt = result::Attempt::of(&query, &detail);
    let runs = JobRuns::of_turns(&page, &detail.turns).await?;
    let body = html! {
        (head(&page, &detail, &name, refused_at(&explanation).is_some()))
        (explain(&page, &detail, &explanation))
        div.cols {
            div.stack {
                (stream(&detail))
                (timeline::show(&page.view, &detail, &runs))
                (prompt(&detail))
                (result::show(&page, &detail, &query, attempt).await?)
                (structured::show(&page, &detail))
                (files::show(&page, &detail).await?)
                (preview::show(&page, &detail.task, query.context == "true").await?)
                (others(&detail))
                (children::form(&page, &detail).await?)
            }
            aside."stack side" {
                (section("Facts", &html! {}, &task_facts(&page, &detail, campaign.as_deref())))
                (cost(&page, &detail))
                (section("Do it elsewhere", &html! {}, &copies::show(&detail)))
            }
        }
    };
    let path = html! {
        a href="/campaigns" { "Campaigns" } span { "/" }
        a href={ "/campaigns/" (detail.task.campaign_id) } { bdi { (campaign.as_deref().unwrap_or("campaign")) } } span { "/" }
        a href={ "/tasks?campaign_id=" (detail.task.campaign_id) } { "Tasks" }
        span.end { (attempt.links(&format!("/tasks/{given}"))) }
    };
    Ok(page.respond(Content { title: &name, path, body, watch: given.to_string() }).await?)
}

/// Serves the whole prompt or result as plain text.
pub(super) async fn text(Path((given, what)): Path<(Uuid, String)>, page: Page) -> PageResult {
    let task = page.caller.run(ShowTask { id: given, wait: None }).await?.task;
    let text = match what.as_str() {
        "prompt" => Some(task.prompt),
        "result" => task.result,
        _ => None,
    };
    match text {
        Some(text) => Ok(([(CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response()),
        None => Err::<_, Problem>(super::problem::not_found()),
    }
}

pub(super) fn tone(state: State) -> Tone {
    match state {
        State::Queued => Tone::Queued,
        State::Running => Tone::Running,
        State::Done => Tone::Done,
        State::Failed => Tone::Failed,
        State::Cancelled => Tone::Cancelled,
    }
}

/// Returns the refusal of the budget at which the task has failed, if a retry would fail, too.
fn refused_at(explanation: &Explanation) -> Option<&Refusal> {
    match (explanation.state, explanation.obstacles.first()) {
        (State::Failed, Some(Obstacle::Budget(refusal))) => Some(refusal),
        _ => None,
    }
}

/// If a budget would refuse a retry, its button stands below the form for the limit.
fn head(page: &Page, detail: &Detail, name: &str, is_refused: bool) -> Markup {
    let task = &detail.task;
    let given = task.id.to_string();
    let here = format!("/tasks/{given}");
    let fields = [("id", given.as_str())];
    let cancel = Confirmation {
        action: Action::of::<CancelTask>("Cancel task", "", &fields, &here).class("btn danger"),
        id: "confirm-cancel",
        heading: "Cancel this task",
        consequences: html! { p { "A waiting task ends at once, a running one through its worker; the part of the answer that has arrived is kept. Tasks that depend on it are cancelled, too." } },
        fields: html! { div.field { label for="reason" { "Reason, for those who depend on it" } input #reason name="reason" data-flag="--reason" maxlength="300"; } },
        command: format!("dalsegno task cancel {given}"),
    };
    let has_ended = !matches!(task.state, State::Queued | State::Running);
    html! {
        div.head {
            div {
                h1 { bdi { (name) } }
                div.meta {
                    (tone(task.state).badge(task.state.as_str(), None))
                    (agent(&task.agent, &task.instance))
                    span { "added " (page.view.time(task.created_at)) }
                    @if let Some(at) = detail.run_at.filter(|at| task.started_at.is_none() && *at > page.view.now) { span { "not before " (page.view.calendar(at)) } }
                    (id("task", task.id))
                }
            }
            div.actions {
                @if matches!(task.state, State::Failed | State::Cancelled) && !is_refused { (retry(page, detail)) }
                @if task.state == State::Queued { (priority(page, detail)) }
                @if !has_ended { (cancel.button(&page.view, &page.caller)) }
            }
        }
    }
}

/// The button that runs the task again: a step with its flow, because the steps after it would stay cancelled otherwise.
fn retry(page: &Page, detail: &Detail) -> Markup {
    let (view, caller) = (&page.view, &page.caller);
    if let (Some(flow), Some(step)) = (detail.flow_id, &detail.step) {
        let (given, then) = (flow.to_string(), format!("/flows/{flow}"));
        let fields = [("id", given.as_str()), ("from", step.as_str())];
        let retry = Action::of::<RetryFlow>("Retry the flow from here", "retry", &fields, &then);
        return retry.button(view, caller);
    }
    let given = detail.task.id.to_string();
    let here = format!("/tasks/{given}");
    let fields = [("id", given.as_str())];
    Action::of::<RetryTask>("Retry", "retry", &fields, &here).button(view, caller)
}

/// The form for the priority of a waiting task.
fn priority(page: &Page, detail: &Detail) -> Markup {
    let given = detail.task.id.to_string();
    let here = format!("/tasks/{given}");
    let fields = [("id", given.as_str())];
    let change = Confirmation {
        action: Action::of::<ChangeTaskPriority>("Change priority", "up", &fields, &here),
        id: "change-priority",
        heading: "Change the priority",
        consequences: html! { p { "Waiting tasks of all conversations start in the order of their priority: 0 is the most urgent, 100 the default. Tasks of one conversation keep their order. Retries keep the priority." } },
        fields: html! { div.field { label for="priority" { "Priority, 0 to 32767" } input #priority name="priority" data-flag=(given) type="number" min="0" max="32767" required value=(detail.priority); } },
        command: format!("dalsegno task priority {given} {}", detail.priority),
    };
    change.button(&page.view, &page.caller)
}

fn explain(page: &Page, detail: &Detail, explanation: &Explanation) -> Markup {
    let Explanation { because, next, obstacles, .. } = explanation;
    let given = detail.task.id.to_string();
    let here = format!("/tasks/{given}");
    let state = detail.task.state;
    let tone = match state {
        State::Queued => Tone::Waiting,
        other => tone(other),
    };
    let (short, details) = first_sentence(because);
    html! {
        section.explain.(tone.class()) #explain tabindex="-1" aria-label="Explanation" {
            (icon(tone.icon()))
            div {
                p.lede dir="auto" { (sentence(&page.view, short)) }
                @if !details.is_empty() { p.next dir="auto" { (sentence(&page.view, details)) } }
                @if state == State::Done { p.next { "There is nothing to do. " a href="#result" { "The answer is on this page." } } }
                @else { p.next dir="auto" { (sentence(&page.view, next)) } }
                @match refused_at(explanation) {
                    Some(refusal) => {
                        (remedies::raise_and_retry(page, &here, refusal, &retry(page, detail)))
                    }
                    None => (remedies::show(page, &here, obstacles)),
                }
            }
        }
    }
}

/// The answer as it arrives. A script fills it; until then, the page shows nothing of it.
fn stream(detail: &Detail) -> Markup {
    if detail.task.state != State::Running {
        return html! {};
    }
    let text = html! { p."stream long" hidden { span data-stream {} } };
    html! { div data-task=(detail.task.id) { (section("Arriving now", &html! { "newest end" }, &text)) } }
}

fn prompt(detail: &Detail) -> Markup {
    let text = &detail.task.prompt;
    let end = html! { (counted(text.split_whitespace().count(), "word", "words")) };
    section("Prompt", &end, &beginning(text, &format!("/tasks/{}/prompt", detail.task.id), plain))
}

/// The tasks that it waits for, and those that it has added.
fn others(detail: &Detail) -> Markup {
    let waits = detail.waiting.as_ref();
    html! {
        @if let Some(waits) = waits {
            (section(if waits.waits { "Waits for" } else { "Has waited for" }, &html! { (waits.depends_on.len()) }, &task_table(&waits.depends_on)))
        }
        @if !detail.children.is_empty() {
            (section("Children", &html! { (detail.children.len()) }, &task_table(&detail.children)))
        }
    }
}

fn task_table(others: &[WaitedFor]) -> Markup {
    let table = html! {
        table {
            thead { tr { th { "State" } th { "Agent" } th { "Task" } } }
            tbody {
                @for other in others {
                    tr {
                        td { (tone(other.state).state(other.state.as_str(), None)) }
                        td { (agent(&other.agent, &other.instance)) }
                        td { a href={ "/tasks/" (other.task_id) } { (id("", other.task_id)) } }
                    }
                }
            }
        }
    };
    wide("Tasks", &table)
}

fn task_facts(page: &Page, detail: &Detail, campaign: Option<&str>) -> Markup {
    let task = &detail.task;
    let job = format!("/work/jobs/{}", task.job_id);
    facts(&[
        (
            "Agent",
            page.link::<ShowFile>(
                &format!("/catalogue/agent/{}", url_text(&task.agent)),
                &html! { bdi { (agent_name(&task.agent, &task.instance)) } },
            ),
        ),
        (
            "Campaign",
            html! { a href={ "/campaigns/" (task.campaign_id) } { bdi { (campaign.unwrap_or("campaign")) } } },
        ),
        (
            "Flow",
            html! { @if let (Some(flow), Some(step)) = (detail.flow_id, &detail.step) { a href={ "/flows/" (flow) } { (id("", flow)) } ", step " bdi { (step) } } },
        ),
        ("Node", html! { @if let Some(node) = &detail.node { bdi { (node) } } }),
        (
            "Added by",
            html! { @if let Some(by) = &detail.added_by { bdi title=(by) { (describe_label(by)) } } },
        ),
        (
            "Parent",
            html! { @if let Some(parent) = detail.parent_id { a href={ "/tasks/" (parent) } { (id("", parent)) } } },
        ),
        (
            "Continues",
            html! { @if let Some(other) = detail.continues_id { a href={ "/tasks/" (other) } { (id("", other)) } } },
        ),
        (
            "Session",
            html! { @if let Some(session) = task.session_id { a href={ "/sessions/" (session) } { (id("", session)) } @if let Some(turn) = task.turn { ", " a href={ "/sessions/" (session) "/turns/" (turn) } { "turn " (turn) } } } },
        ),
        ("Priority", html! { (detail.priority) }),
        (
            "Not before",
            html! { @if let Some(at) = detail.run_at.filter(|at| *at > page.view.now) { (page.view.calendar(at)) } },
        ),
        (
            "May take",
            html! { @if let Some(secs) = detail.within_secs { (batches::format_within(secs)) } },
        ),
        (
            "Batch",
            html! { @if let Some(batch) = &detail.batch { bdi { (batch.batch_id.as_deref().unwrap_or("id unknown")) } ", sent " (page.view.time(batch.sent_at)) ", at most until " (page.view.time(batch.answer_by)) } },
        ),
        ("Attempts", html! { (attempts(detail)) }),
        ("Started", html! { @if let Some(at) = task.started_at { (page.view.time(at)) } }),
        ("Ended", html! { @if let Some(at) = task.ended_at { (page.view.time(at)) } }),
        ("Job", page.link::<ShowJob>(&job, &html! { (task.job_id) })),
        ("Tags", html! { @for tag in &detail.tags { bdi { (tag) } " " } }),
    ])
}

/// Counts the attempts, and the turns that were put off and used up none.
fn attempts(detail: &Detail) -> String {
    let n_put_off = detail.turns.iter().filter(|turn| turn.is_put_off()).count();
    let made = counted(detail.turns.len() - n_put_off, "attempt", "attempts");
    match n_put_off {
        0 => made,
        n => format!("{made}, {n} put off"),
    }
}

/// Returns true if all of an amount is missing, because no price is set for the models.
fn is_unpriced(detail: &Detail) -> bool {
    detail.task.spent_micros == 0 && !detail.unpriced_calls.is_empty()
}

fn cost(page: &Page, detail: &Detail) -> Markup {
    let task = &detail.task;
    let (n_in, n_out) = detail.turns.iter().fold((0, 0), |(sent, made), turn| {
        (
            sent + turn.input_tokens + turn.cache_read_tokens + turn.cache_creation_tokens,
            made + turn.output_tokens,
        )
    });
    let n_cached: i64 = detail.turns.iter().map(|turn| turn.cache_read_tokens).sum();
    let rows = html! {
        table.sums {
            tbody {
                tr { td { "Spent" } td.num { @if is_unpriced(detail) { (no_price()) } @else { (page.view.money(task.spent_micros)) } } }
                @if let Some(budget) = task.budget_micros { tr { td { "Budget of the task" } td.num { (page.view.money(budget)) } } }
                tr { td { "Tokens in, from the cache" } td.num { (tokens(n_in)) ", " (tokens(n_cached)) } }
                tr { td { "Tokens out" } td.num { (tokens(n_out)) } }
            }
        }
    };
    let free = detail.unpriced_calls.iter().map(|it| (it.provider.as_str(), it.model.as_str()));
    let body = html! { (rows) (price_hint(free)) (budget::form(page, task)) };
    section("Cost", &html! { (attempts(detail)) }, &body)
}
