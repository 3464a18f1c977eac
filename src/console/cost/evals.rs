//! Runs of evals: pass rate, cost and time of each variant beside the run before, and the answers of a run.

use axum::extract::{Path, Query};
use maud::{Markup, html};
use serde::Deserialize;
use uuid::Uuid;

use super::tabs;
use crate::{
    console::{
        layout::Content,
        page::{Page, PageResult},
        parts::{
            Tone, coded, counted, duration, empty, facts, id, next_page, no_price, optional,
            section, tokens, url_text, wide,
        },
    },
    domain::{
        evals::{AnswerResult, EvalRun, VariantResult},
        prices::incomparable_costs,
    },
    operations::{ListEvalRuns, ListTasks, Refusal, ShowEvalRun, ShowFile},
};

const HERE: &str = "/cost/evals";
const PAGE: usize = 20;
/// Runs behind the page in which the runs before are looked for.
const MAX_READ: i64 = 200;

#[derive(Debug, Default, Deserialize)]
pub(in crate::console) struct PageQuery {
    /// Only the runs of this eval.
    #[serde(default)]
    eval: String,
    #[serde(default)]
    cursor: String,
}

pub(in crate::console) async fn show(Query(query): Query<PageQuery>, page: Page) -> PageResult {
    let eval = Some(query.eval.trim().to_owned()).filter(|eval| !eval.is_empty());
    let number = |text: &str| text.parse().ok();
    let cursor = optional("a place in this list", &query.cursor, number)?;
    let list =
        ListEvalRuns { campaign_id: None, eval: eval.clone(), cursor, limit: Some(MAX_READ) };
    let runs = page.caller.run(list).await?.items;
    let shown = &runs[..runs.len().min(PAGE)];
    let next = shown.last().filter(|_| runs.len() > PAGE).map(|run| run.id.to_string());
    let body = html! {
        div.head { div { h1 { "Evals" } div.meta { span { "Variants of agents, compared by the checks of an eval file" } } } }
        (tabs(HERE))
        form.filters action=(HERE) role="search" {
            label { "Eval" input type="search" name="eval" value=(query.eval) maxlength="64" placeholder="any" size="20"; }
            button.btn { "Filter" }
            @if eval.is_some() { a."btn quiet" href=(HERE) { "Show all" } }
        }
        @if runs.is_empty() {
            (empty("No run of an eval is recorded. A run records its results when its answers are checked.", "dalsegno eval run FILE"))
        } @else {
            (sections(&page, shown, &runs))
        }
        (next_page(HERE, &[("eval", &query.eval)], next.as_deref()))
    };
    let path = html! { a href="/cost" { "Cost" } };
    Ok(page.respond(Content { title: "Evals", path, body, watch: String::new() }).await?)
}

/// Finds the run of the same eval before a run.
fn before<'a>(runs: &'a [EvalRun], run: &EvalRun) -> Option<&'a EvalRun> {
    let is_before = |other: &&EvalRun| {
        other.eval == run.eval
            && other.campaign_id == run.campaign_id
            && other.began_at < run.began_at
    };
    runs.iter().filter(is_before).max_by_key(|other| other.began_at)
}

/// The variants of each run.
fn sections(page: &Page, shown: &[EvalRun], runs: &[EvalRun]) -> Markup {
    html! {
        div.stack {
            @for run in shown {
                @let end = html! {
                    (page.view.time(run.began_at)) @if run.unfinished > 0 { ", " (run.unfinished) " unfinished" }
                    " · " a href={ (HERE) "/" (run.campaign_id) "/" (run.id) } { "answers" }
                };
                (section(&format!("{}, run {}", run.eval, run.run), &end, &variants(page, run, before(runs, run))))
            }
        }
    }
}

fn variants(page: &Page, run: &EvalRun, before: Option<&EvalRun>) -> Markup {
    let table = html! {
        table.folds {
            thead { tr { th { "Variant" } th.num { "Passed" } th.num { "Rate" } th.num { "Tokens" } th.num { "Cost" } th.num { "Median time" } } }
            tbody { @for variant in run.variants.iter() { tr { (cells(page, (run, variant), earlier(before, variant))) } } }
        }
    };
    let variants = run.variants.iter().map(|it| it.variant.as_str());
    let compared = variants.map(|name| (name, run.is_without_price(name)));
    let note = incomparable_costs(compared);
    html! {
        (wide("Variants", &table))
        @if let Some(note) = note { p."small soft after" { (coded(&note)) } }
    }
}

/// A variant with its run.
type OfRun<'a> = (&'a EvalRun, &'a VariantResult);

fn earlier<'a>(before: Option<&'a EvalRun>, variant: &VariantResult) -> Option<OfRun<'a>> {
    let run = before?;
    run.variants.iter().find(|it| it.variant == variant.variant).map(|it| (run, it))
}

/// The figures of a variant; those that differ from the run before have the difference.
fn cells(page: &Page, (run, it): OfRun<'_>, before: Option<OfRun<'_>>) -> Markup {
    let is_unpriced = run.is_without_price(&it.variant);
    let is_comparable = |run: &EvalRun| !is_unpriced && !run.is_without_price(&it.variant);
    let before_cost = before.filter(|(run, _)| is_comparable(run));
    let spent = before_cost.map(|(_, before)| it.micros - before.micros).filter(|n| *n != 0);
    let before = before.map(|(_, before)| before);
    let points = before.map(|before| it.percent() - before.percent()).filter(|n| *n != 0);
    let ms = |ms: i64| duration(chrono::TimeDelta::milliseconds(ms));
    html! {
        td { b { (it.variant) } @if it.agent != it.variant { div.tiny { (page.link::<ShowFile>(&format!("/catalogue/agent/{}", it.agent), &html! { (it.agent) })) } } }
        td.num { (it.passed) " of " (it.answers) }
        td.num {
            (it.percent()) " %"
            @if let Some(points) = points { div.tiny { (if points > 0 { "up " } else { "down " }) (points.abs()) " points" } }
        }
        td.num { (tokens(it.tokens)) }
        td.num {
            @if is_unpriced && it.micros == 0 { (no_price()) } @else { (page.view.money(it.micros)) }
            @if let Some(spent) = spent { div."tiny faint" { @if spent > 0 { "+" } (page.view.money(spent)) } }
        }
        td.num {
            @if let Some(median) = it.median_ms { (ms(median)) }
            @if let Some(before) = before.and_then(|before| before.median_ms) { div."tiny faint" { "before " (ms(before)) } }
        }
    }
}

pub(in crate::console) async fn one(
    Path((campaign, given)): Path<(Uuid, i64)>,
    page: Page,
) -> PageResult {
    let answers = page.caller.run(ShowEvalRun { id: campaign, number: given }).await?.items;
    let list = ListEvalRuns {
        campaign_id: Some(campaign),
        eval: None,
        // The run itself, and those before it.
        cursor: Some(given + 1),
        limit: Some(MAX_READ),
    };
    let runs = page.caller.run(list).await?.items;
    let Some(run) = runs.iter().find(|run| run.id == given) else {
        return Err(crate::console::problem::not_found());
    };
    let before = before(&runs, run);
    let judge = judge(&page, run).await?;
    let name = format!("Eval {}, run {}", run.eval, run.run);
    let body = html! {
        div.head { div { h1 { (name) } div.meta { span { "began " (page.view.time(run.began_at)) } } } }
        div.cols {
            div.stack {
                (section("Variants", &html! { @match before { Some(before) => { "beside " a href={ (HERE) "/" (campaign) "/" (before.id) } { "the run before" } }, None => "the first run" } }, &variants(&page, run, before)))
                (section("Answers", &html! { (answers.len()) }, &wide("Answers", &answer_table(&page, run, &answers))))
            }
            aside."stack side" {
                (section("Facts", &html! {}, &facts(&[
                    ("Eval", html! { a href={ (HERE) "?eval=" (url_text(&run.eval)) } { (run.eval) } }),
                    ("Campaign", html! { a href={ "/campaigns/" (campaign) } { (id("", campaign)) } }),
                    ("Recorded", page.view.time(run.recorded_at)),
                    ("Unfinished", html! { (run.unfinished) }),
                    ("Judge", judge),
                ])))
                p."small soft" { "The checks are in the eval file. The same with the reason of each failure: " }
                pre."code wrap" { "dalsegno eval report FILE --run " (run.run) }
            }
        }
    };
    let path = html! { a href="/cost" { "Cost" } span { "/" } a href=(HERE) { "Evals" } };
    Ok(page.respond(Content { title: &name, path, body, watch: String::new() }).await?)
}

/// Names the cost of the judge. A cost of 0 is told apart by the judge's tasks: there are none, or their calls had no price.
async fn judge(page: &Page, run: &EvalRun) -> Result<Markup, Refusal> {
    let cost = html! { (page.view.money(run.judge_micros)) };
    if run.judge_micros > 0 {
        return Ok(cost);
    }
    let list = ListTasks {
        campaign_id: Some(run.campaign_id),
        metadata: Some(run.judge_label().to_string()),
        limit: Some(MAX_READ),
        ..ListTasks::default()
    };
    let tasks = page.caller.run(list).await?.items;
    Ok(match tasks.iter().any(|task| task.is_unpriced) {
        true => no_price(),
        false if tasks.is_empty() => html! { "none" },
        false => cost,
    })
}

/// Answers in the order of the run, those that failed first.
fn answer_table(page: &Page, run: &EvalRun, answers: &[AnswerResult]) -> Markup {
    let mut sorted: Vec<&AnswerResult> = answers.iter().collect();
    sorted.sort_by_key(|answer| answer.passed.is_none_or(|passed| passed));
    let money = page.view.column(answers.iter().map(|it| it.micros));
    let is_unpriced =
        |it: &AnswerResult| it.micros == 0 && it.tokens > 0 && run.is_without_price(&it.variant);
    let row = |it: &AnswerResult| {
        html! {
            tr {
                td {
                    @match it.passed {
                        Some(true) => (Tone::Done.state("passed", None)),
                        Some(false) => (Tone::Failed.state("failed", Some(&counted(it.failed_checks, "check", "checks")))),
                        None => (Tone::Waiting.state("unfinished", None)),
                    }
                }
                td { (it.variant) }
                td.text { (it.case) @if it.repetition > 1 { ", repetition " (it.repetition) } }
                td { (source(it)) }
                td.num { (tokens(it.tokens)) }
                td.num { @if is_unpriced(it) { (no_price()) } @else { (money(it.micros)) } }
                td.num { @if let Some(ms) = it.took_ms { (duration(chrono::TimeDelta::milliseconds(ms))) } }
            }
        }
    };
    html! {
        table.folds {
            thead { tr { th { "Result" } th { "Variant" } th { "Case" } th { "Answer" } th.num { "Tokens" } th.num { "Cost" } th.num { "Time" } } }
            tbody { @for it in sorted { (row(it)) } }
        }
    }
}

fn source(it: &AnswerResult) -> Markup {
    html! {
        @if let Some(task) = it.task_id { a href={ "/tasks/" (task) } { (id("task", task)) } }
        @if let (Some(session), Some(turn)) = (it.session_id, it.turn) { a href={ "/sessions/" (session) "/turns/" (turn) } { "reruns of turn " (turn) } }
    }
}
