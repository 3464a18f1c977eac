//! The overview: what needs a person, what runs now, the last hour, and the cost of today.

mod attention;
mod notices;

use axum::extract::Query;
use maud::{Markup, html};
use serde::Deserialize;

pub(super) use self::notices::list as notices;
use super::{
    layout::{Content, Favicon},
    names::Names,
    page::{Page, PageResult},
    parts::{
        Share, agent, counted, duration, empty, no_price, section, share_bar, sparkline_from, title,
    },
    range::{TimeRange, choice},
    work::waits::WaitSums,
};
use crate::{
    domain::{
        attention::group_failures,
        costs::{CostReport, Costs, Dimension},
        tasks::{MAX_WAITS_READ, TaskLine, WaitMinute},
    },
    operations::{ListQueues, ListWaits, Overview, ReportCosts, ShowOverview},
    queue::admin::{QueueView, RunMinute},
};

/// Points of a chart.
const STEPS: usize = 60;
/// Campaigns with a colour of their own in the chart of costs.
const COLOURS: [&str; 6] = ["p3", "p2", "p5", "p4", "p6", "p1"];

#[derive(Debug, Deserialize)]
pub(super) struct PageQuery {
    #[serde(default)]
    range: String,
}

pub(super) async fn show(Query(query): Query<PageQuery>, page: Page) -> PageResult {
    let range = TimeRange::read(&query.range)?.unwrap_or(TimeRange::Hour);
    let show = ShowOverview { hours: Some(range.hours()) };
    let overview = page.caller.run_if_allowed(show).await?;
    let queues = page.caller.run_if_allowed(ListQueues {}).await?;
    let waits = page.caller.run_if_allowed(ListWaits {}).await?;
    let costs = ReportCosts {
        by: Dimension::Campaign,
        since: Some(page.view.midnight().into()),
        top: u32::try_from(COLOURS.len()).ok(),
        ..ReportCosts::default()
    };
    let costs = page.caller.run_if_allowed(costs).await?;
    let Some(overview) = overview else {
        let body = html! {
            div.head { div { h1 { "Overview" } } }
            (empty("This key reaches some campaigns only. The rail lists them.", "dalsegno key ls"))
        };
        return Ok(page
            .respond(Content { title: "Overview", path: html! {}, body, watch: "all".to_owned() })
            .await?);
    };
    let turns = queues.as_ref().and_then(|all| all.items.iter().find(|it| it.queue == "turns"));
    let waits = waits.map(|waits| waits.items).unwrap_or_default();
    let sums = turns.map(|queue| WaitSums::of(queue, &waits));
    let names = Names::load(&page).await?;
    let needs = group_failures(&overview.attention);
    let body = html! {
        div.head { div { h1 { (heading(needs.len(), overview.running.len())) } } (choice("/", &[], Some(range), None)) }
        (strip(&page, &overview, turns.zip(sums), costs.as_ref(), range))
        div.cols {
            div.stack {
                (attention::show(&page, &needs, &overview.failures, &names))
                (running(&page, &overview.running, turns, &names))
            }
            aside."stack side" {
                (queue(turns.zip(sums)))
                @if let Some(costs) = &costs { (cost(&page, costs)) }
            }
        }
    };
    let path =
        html! { span { (page.view.today()) } span.end { a href="/campaigns" { "All campaigns" } } };
    let favicon = if overview.attention.is_empty() { Favicon::Calm } else { Favicon::Attention };
    let content = Content { title: "Overview", path, body, watch: "all".to_owned() };
    Ok(page.respond_with(content, favicon).await?)
}

/// Counts what the page lists: tasks with the same error are one thing.
fn heading(n_needs: usize, n_running: usize) -> String {
    let rest = match n_running {
        0 => "No turn is running.".to_owned(),
        1 => "One turn is running.".to_owned(),
        n => format!("{n} turns are running."),
    };
    match n_needs {
        0 => format!("Nothing needs you. {rest}"),
        1 => format!("One thing needs you. {rest}"),
        n => format!("{n} things need you. {rest}"),
    }
}

fn strip(
    page: &Page,
    overview: &Overview,
    turns: Option<(&QueueView, WaitSums)>,
    costs: Option<&CostReport>,
    range: TimeRange,
) -> Markup {
    let running = turns.map_or(0, |(queue, _)| queue.running);
    let ready = turns.map_or(0, |(_, sums)| sums.ready);
    let paused = turns.map_or(0, |(_, sums)| sums.paused);
    let oldest = turns.and_then(|(_, sums)| sums.ready_at).map(|at| page.view.now - at);
    let done: i64 = overview.runs.iter().map(|minute| minute.done).sum();
    let failed: i64 = overview.runs.iter().map(|minute| minute.failed).sum();
    // If a list is cut, its last step is the oldest that was read.
    let oldest_run = overview.runs.last().map_or(0, |minute| minute.minutes_ago);
    let oldest_run = overview.runs_are_cut.then_some(oldest_run);
    let oldest_wait = overview.waits.last().map_or(0, |minute| minute.minutes_ago);
    let oldest_wait = overview.waits_are_cut.then_some(oldest_wait);
    let longest = overview.waits.iter().map(|minute| minute.longest_secs).fold(0.0, f64::max);
    let secs = |secs: f64| duration(chrono::TimeDelta::milliseconds((secs * 1e3) as i64));
    let today = costs.map_or(0, |costs| costs.total.cost_micros);
    html! {
        div.strip {
            div {
                p.what { "Turns running" span.faint { "now" } }
                p.figure { (running) " " small { (ready) " ready to run" @if paused > 0 { ", " (paused) " paused" } } }
            }
            div {
                p.what { "Oldest ready task" span.faint { (range.words()) } }
                p.figure { (oldest.map_or_else(|| "none".to_owned(), duration)) " " small { "longest from adding to start " (secs(longest)) @if overview.waits_are_cut { ", of the newest " (counted(MAX_WAITS_READ, "task", "tasks")) } } }
                (chart("Longest wait for a start", &waits(&overview.waits, range), oldest_wait, range))
            }
            div {
                p.what { "Runs ended" span.faint { (range.words()) } }
                p.figure {
                    @if overview.runs_are_cut { (done + failed) " or more " small { (failed) " of these failed" } }
                    @else { (done + failed) " " small { (failed) " failed" } }
                }
                (chart("Runs ended", &ended(&overview.runs, range), oldest_run, range))
            }
            div {
                p.what { "Cost today" span.faint { "since midnight" } }
                p.figure { @if costs.is_some_and(|costs| costs.total.is_unpriced()) { (no_price()) } @else { (page.view.money(today)) } " " small { (costs.map_or(0, |costs| costs.total.calls)) " calls" } }
            }
        }
    }
}

/// Draws a chart of a range. `oldest`: age of the oldest step that was read, if older ones were not.
fn chart(words: &str, values: &[f64], oldest: Option<i32>, range: TimeRange) -> Markup {
    let words = format!("{words}, {}", range.words());
    match oldest {
        Some(minutes_ago) => {
            let label = format!("{words}, as far as they were read");
            sparkline_from(&label, values, step_of(minutes_ago, range).unwrap_or(0))
        }
        None => sparkline_from(&words, values, 0),
    }
}

/// Returns the place of a step in a chart.
fn step_of(minutes_ago: i32, range: TimeRange) -> Option<usize> {
    let step = usize::try_from(minutes_ago.div_euclid(range.hours())).ok();
    step.filter(|step| *step < STEPS).map(|step| STEPS - 1 - step)
}

/// Puts values of steps in the order of time. A step has as many minutes as the range has hours.
fn by_step(values: impl Iterator<Item = (i32, f64)>, range: TimeRange) -> Vec<f64> {
    let mut all = vec![0.0; STEPS];
    for (minutes_ago, value) in values {
        if let Some(step) = step_of(minutes_ago, range) {
            all[step] = value;
        }
    }
    all
}

fn waits(steps: &[WaitMinute], range: TimeRange) -> Vec<f64> {
    by_step(steps.iter().map(|step| (step.minutes_ago, step.longest_secs)), range)
}

fn ended(steps: &[RunMinute], range: TimeRange) -> Vec<f64> {
    let n_ended = |step: &RunMinute| (step.minutes_ago, (step.done + step.failed) as f64);
    by_step(steps.iter().map(n_ended), range)
}

fn running(page: &Page, tasks: &[TaskLine], turns: Option<&QueueView>, names: &Names) -> Markup {
    let n_running = turns.map_or(0, |queue| queue.running);
    let end = html! { (tasks.len()) " of " (n_running.max(i64::try_from(tasks.len()).unwrap_or(0))) " · " a href="/tasks?state=running" { "all" } };
    let body = html! {
        @if tasks.is_empty() {
            (empty("No task runs now. Workers take the next one as soon as it is ready.", "dalsegno task add --campaign CAMPAIGN --agent AGENT \"Write part one.\""))
        } @else {
            ul."rows turns" {
                @for task in tasks {
                    li data-task=(task.id) data-at=[task.started_at.map(|at| at.to_rfc3339())] {
                        (agent(&task.agent, &task.instance))
                        div.clip { a href={ "/tasks/" (task.id) } { bdi { (title(&task.prompt)) } } span."faint small" { " in " (names.campaign(task.campaign_id)) } }
                        span."num small" { @if let Some(at) = task.started_at { (page.view.time(at)) } }
                        p.stream hidden { span data-stream {} }
                    }
                }
            }
        }
    };
    section("Running now", &end, &body)
}

fn queue(turns: Option<(&QueueView, WaitSums)>) -> Markup {
    let Some((queue, sums)) = turns else {
        return section(
            "Work that waits",
            &html! {},
            &empty("No worker has served the queue of turns yet.", "dalsegno worker turns"),
        );
    };
    let share = |name: &str, n: i64, class| Share {
        name: name.into(),
        value: n as f64,
        shown: n.to_string(),
        class,
    };
    let shares = [
        share("Ready", sums.ready, "p3"),
        share("Behind another of its conversation", sums.behind, "p5"),
        share("Later, for a limit or for another task", sums.later, "p2"),
        share("Queue or campaign paused", sums.paused, "p7"),
        share("Held, with its lane, or by the pause of an agent", sums.held, "p6"),
    ];
    let n_waiting = queue.ready + queue.blocked + queue.scheduled + queue.held;
    let body = html! {
        (share_bar("Waiting tasks by reason", &shares, n_waiting as f64, None))
        p."small soft after" { (counted(queue.workers, "worker serves", "workers serve")) " this queue. " (queue.dead) " dead letters." }
    };
    section("Work that waits", &html! { (n_waiting) }, &body)
}

fn cost(page: &Page, report: &CostReport) -> Markup {
    let mut lines: Vec<_> = report.lines.iter().collect();
    lines.sort_by_key(|line| -line.costs.cost_micros);
    let name = |value: &Option<String>| {
        let id = value.as_deref().and_then(|value| value.parse().ok());
        let known = id.and_then(|id| report.campaign_names.get(&id).cloned());
        known.or_else(|| value.clone()).unwrap_or_else(|| "no campaign".to_owned())
    };
    let shown = |costs: &Costs| match costs.is_unpriced() {
        true => "no price".to_owned(),
        false => page.view.money(costs.cost_micros),
    };
    let shares: Vec<Share> = lines
        .iter()
        .zip(COLOURS)
        .map(|(line, class)| Share {
            name: title(&name(&line.value)),
            value: line.costs.cost_micros as f64,
            shown: shown(&line.costs),
            class,
        })
        .collect();
    let body = html! {
        @if lines.is_empty() { (empty("No call has been made today.", "dalsegno cost --by campaign")) }
        @else { (share_bar("Cost today by campaign", &shares, report.total.cost_micros as f64, None)) }
    };
    section(
        "Cost today, by campaign",
        &html! { a href="/cost?by=campaign&days=1" { (shown(&report.total)) } },
        &body,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_step_is_on_the_right() {
        let all = by_step([(0, 3.0), (59, 1.0), (60, 9.0), (-1, 9.0)].into_iter(), TimeRange::Hour);
        assert_eq!((all[59], all[0], all.len()), (3.0, 1.0, 60));
        let day = by_step([(24, 2.0), (59 * 24, 1.0)].into_iter(), TimeRange::Day);
        assert_eq!((day[58], day[0]), (2.0, 1.0));
    }

    #[test]
    fn a_chart_begins_with_the_oldest_step_that_was_read() {
        let values = by_step([(0, 3.0), (48, 1.0)].into_iter(), TimeRange::Day);
        let cut = chart("Runs ended", &values, Some(48), TimeRange::Day).0;
        assert!(cut.contains("d=\"M57 ") && cut.contains("as far as they were read"), "{cut}");
        let whole = chart("Runs ended", &values, None, TimeRange::Day).0;
        assert!(whole.contains("d=\"M0 ") && !whole.contains("as far as"), "{whole}");
    }
}
