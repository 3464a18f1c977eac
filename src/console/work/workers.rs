//! Workers with their slots on a time axis.

use chrono::{DateTime, TimeDelta, Utc};
use maud::{Markup, html};

use crate::{
    console::{
        names::Names,
        page::Page,
        parts::{Tone, counted, duration, empty, section, wide},
    },
    operations::WorkerActivity,
    queue::admin::{WorkerLoad, WorkerRun, outcome_words},
};

/// Slots of a worker that have a row of their own.
const MAX_SLOTS: usize = 12;
/// Share of the axis after the present, for leases.
const AHEAD: f64 = 0.1;
/// Minutes between two marks of the axis.
const MARK_MINUTES: i64 = 5;

/// The span of time that the chart shows.
struct Axis {
    begin: DateTime<Utc>,
    now: DateTime<Utc>,
}

impl Axis {
    fn percent(&self, at: DateTime<Utc>) -> f64 {
        let whole = (self.now - self.begin).num_milliseconds().max(1) as f64 / (1.0 - AHEAD);
        ((at - self.begin).num_milliseconds() as f64 / whole * 100.0).clamp(0.0, 100.0)
    }

    /// The moments with a mark: full minutes, as far as they leave room for the label of the present.
    fn marks(&self) -> Vec<DateTime<Utc>> {
        let step = TimeDelta::minutes(MARK_MINUTES);
        let past = self.begin.timestamp().rem_euclid(step.num_seconds());
        let first = self.begin + step - TimeDelta::seconds(past);
        let marks = std::iter::successors(Some(first), |at| Some(*at + step));
        marks.take_while(|at| *at <= self.now).collect()
    }
}

pub(super) fn show(page: &Page, queue: &str, activity: &WorkerActivity, names: &Names) -> Markup {
    let axis = Axis { begin: activity.since, now: page.view.now };
    let serves = |worker: &&WorkerLoad| worker.queues.iter().any(|name| name == queue);
    let workers: Vec<_> = activity.workers.iter().filter(serves).collect();
    let (live, gone): (Vec<&WorkerLoad>, Vec<&WorkerLoad>) =
        workers.iter().copied().partition(|worker| worker.gone_at.is_none());
    let n_slots: i32 = live.iter().map(|worker| worker.slots).sum();
    let is_live = |run: &&WorkerRun| {
        run.ended_at.is_none() && workers.iter().any(|worker| worker.id == run.worker_id)
    };
    let n_running = activity.runs.iter().filter(is_live).count();
    let end = html! { (live.len()) " of " (workers.len()) " live · " (n_running) " of " (n_slots) " slots · last " (duration(axis.now - axis.begin)) };
    let body = html! {
        @if workers.is_empty() {
            (empty("No worker serves this queue. Jobs wait until one is started.", &format!("dalsegno worker {}", if queue == "upkeep" { "upkeep" } else { "turns" })))
        } @else {
            div.slots {
                (axis_row(page, &axis))
                @for worker in &live { (rows(page, &axis, worker, activity, names)) }
            }
            @if !gone.is_empty() {
                details.after open[live.is_empty()] {
                    summary { (counted(gone.len(), "worker", "workers")) " that ended in this time" }
                    div.slots { @for worker in &gone { (rows(page, &axis, worker, activity, names)) } }
                }
            }
            (legend())
            details.after { summary { "The same as a table" } (wide("Workers", &table(page, &workers, activity))) }
        }
    };
    section("Workers", &end, &body)
}

fn axis_row(page: &Page, axis: &Axis) -> Markup {
    let room = axis.percent(axis.now) - 14.0;
    html! {
        div.axis {}
        svg."chart axis" aria-hidden="true" {
            @for at in axis.marks() {
                @if axis.percent(at) < room && axis.percent(at) > 2.0 { text.mid x=(percent(axis.percent(at))) y="12" { (page.view.minute(at)) } }
            }
            text."strong mid" x=(percent(axis.percent(axis.now))) y="12" { (page.view.minute(axis.now)) }
        }
        div.axis {}
    }
}

fn rows(
    page: &Page,
    axis: &Axis,
    worker: &WorkerLoad,
    activity: &WorkerActivity,
    names: &Names,
) -> Markup {
    let own = activity.runs.iter().filter(|run| run.worker_id == worker.id);
    let slots = slots(own.collect(), usize::try_from(worker.slots).unwrap_or(1));
    let hidden = slots.len().saturating_sub(MAX_SLOTS);
    html! {
        @for (place, runs) in slots.iter().take(MAX_SLOTS).enumerate() {
            div.lead {
                @if place == 0 { b.clip title={ (worker.host) ", process " (worker.pid) ", version " (worker.version) } { bdi { (worker.host) } " " (worker.pid) } @if let Some(state) = state(worker) { span.faint { (state) } } }
                span.faint { "slot " (place + 1) }
            }
            (slot(axis, worker, runs, names))
            div."small after-slot" { (now(page, worker, runs, names)) }
        }
        @if hidden > 0 { div.lead { span.faint { "…" } } div.faint { (hidden) " more slots" } div {} }
    }
}

pub(super) fn state(worker: &WorkerLoad) -> Option<&str> {
    match (worker.gone_reason.as_deref(), worker.draining) {
        (None, true) => Some("ends"),
        (reason, _) => reason,
    }
}

/// Draws the runs of a slot. The lease of a running one is outlined after the present.
fn slot(axis: &Axis, worker: &WorkerLoad, runs: &[&WorkerRun], names: &Names) -> Markup {
    let label = match runs.iter().find(|run| run.ended_at.is_none()) {
        Some(run) => format!("runs {}", name(run, names)),
        None => format!("{} runs", runs.len()),
    };
    let now = axis.percent(axis.now);
    html! {
        svg.chart role="img" aria-label=(label) {
            @for at in axis.marks() { line.grid x1=(percent(axis.percent(at))) x2=(percent(axis.percent(at))) y1="0" y2="28" {} }
            @for run in runs {
                @let begin = axis.percent(run.started_at.max(axis.begin));
                @let end = run.ended_at.map_or(now, |at| axis.percent(at));
                g class=(tone(run).class()) {
                    rect class=(if run.ended_at.is_some() && tone(run) == Tone::Done { "bar-soft" } else { "bar-tone" })
                        x=(percent(begin)) y="8" width=(percent((end - begin).max(0.4))) height="12" rx="2" {
                        title { (name(run, names)) ", " (outcome_words(run.outcome.as_deref().unwrap_or("running"))) ", " (duration(run.ended_at.unwrap_or(axis.now) - run.started_at)) }
                    }
                    @if run.ended_at.is_none() && worker.gone_at.is_none() {
                        @let lease = axis.percent(worker.lease_until);
                        @if lease > now { rect."bar-soft dashed" x=(percent(now)) y="8" width=(percent(lease - now)) height="12" {} }
                    }
                }
            }
            line.now x1=(percent(now)) x2=(percent(now)) y1="0" y2="28" {}
        }
    }
}

/// Names what a slot does now.
fn now(page: &Page, worker: &WorkerLoad, runs: &[&WorkerRun], names: &Names) -> Markup {
    if let Some(at) = worker.gone_at {
        return html! { span.faint { "until " (page.view.minute(at)) } };
    }
    match runs.iter().find(|run| run.ended_at.is_none()) {
        Some(run) => html! {
            a.clip href={ "/work/jobs/" (run.job_id) } { bdi { (name(run, names)) } } ", " (duration(page.view.now - run.started_at))
        },
        None => match runs.iter().filter_map(|run| run.ended_at).max() {
            Some(at) => html! { span.faint { "free for " (duration(page.view.now - at)) } },
            None => html! { span.faint { "free" } },
        },
    }
}

fn name(run: &WorkerRun, names: &Names) -> String {
    let lane = run.lane.as_deref().map(|lane| names.lane(lane));
    lane.unwrap_or_else(|| format!("{} {}", run.kind.replace('_', " "), run.job_id))
}

pub(super) fn tone(run: &WorkerRun) -> Tone {
    match run.outcome.as_deref() {
        None => Tone::Running,
        Some("done") => Tone::Done,
        Some("failed" | "lost" | "interrupted") => Tone::Failed,
        Some("cancelled") => Tone::Cancelled,
        Some(_) => Tone::Waiting,
    }
}

/// Puts runs into slots: the queue does not know in which slot a job runs, only that there are enough.
fn slots(mut runs: Vec<&WorkerRun>, n_slots: usize) -> Vec<Vec<&WorkerRun>> {
    runs.sort_by_key(|run| (run.started_at, run.job_id));
    let mut slots: Vec<Vec<&WorkerRun>> = vec![Vec::new(); n_slots.max(1)];
    for run in runs {
        let is_free = |slot: &&mut Vec<&WorkerRun>| {
            slot.last().is_none_or(|last| last.ended_at.is_some_and(|at| at <= run.started_at))
        };
        match slots.iter_mut().find(is_free) {
            Some(slot) => slot.push(run),
            None => slots.push(vec![run]),
        }
    }
    slots
}

fn legend() -> Markup {
    let entry = |tone: Tone, class: &str, words: &str| {
        html! { li class=(tone.class()) { svg aria-hidden="true" { rect class=(class) width="100%" height="100%" rx="2" {} } (words) } }
    };
    html! {
        ul.legend {
            (entry(Tone::Done, "bar-soft", "done"))
            (entry(Tone::Running, "bar-tone", "running"))
            (entry(Tone::Waiting, "bar-tone", "put off or retried"))
            (entry(Tone::Failed, "bar-tone", "failed or lost"))
            (entry(Tone::Running, "bar-soft", "lease, until the dashed end"))
        }
    }
}

fn table(page: &Page, workers: &[&WorkerLoad], activity: &WorkerActivity) -> Markup {
    let row = |worker: &WorkerLoad| {
        let own = || activity.runs.iter().filter(|run| run.worker_id == worker.id);
        html! {
            tr {
                td.text { a href={ "/work?worker=" (worker.id) } { bdi { (worker.host) } " " (worker.pid) } }
                td { (worker.version) }
                td.num { (own().filter(|run| run.ended_at.is_none()).count()) " of " (worker.slots) }
                td.num { (own().filter(|run| run.ended_at.is_some()).count()) }
                td { (page.view.time(worker.started_at)) }
                td { @match worker.gone_at { Some(at) => { (state(worker).unwrap_or_default()) " " (page.view.time(at)) }, None => (page.view.clock(worker.lease_until)) } }
            }
        }
    };
    html! {
        table.after {
            thead { tr { th { "Worker" } th { "Version" } th.num { "Slots" } th.num { "Ended" } th { "Since" } th { "Lease until" } } }
            tbody { @for worker in workers { (row(worker)) } }
        }
    }
}

fn percent(value: f64) -> String {
    format!("{value:.2}%")
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn run(job_id: i64, begin: i64, end: Option<i64>) -> WorkerRun {
        let at = |secs| DateTime::from_timestamp(secs, 0).unwrap();
        WorkerRun {
            worker_id: Uuid::nil(),
            job_id,
            kind: "run_turn".into(),
            lane: None,
            started_at: at(begin),
            ended_at: end.map(at),
            outcome: end.map(|_| "done".into()),
        }
    }

    #[test]
    fn runs_at_the_same_time_are_in_different_slots() {
        let runs = [run(1, 0, Some(10)), run(2, 5, Some(20)), run(3, 10, None), run(4, 20, None)];
        let slots = slots(runs.iter().collect(), 3);
        let ids: Vec<Vec<i64>> =
            slots.iter().map(|slot| slot.iter().map(|run| run.job_id).collect()).collect();
        assert_eq!(ids, [vec![1, 3], vec![2, 4], vec![]]);
    }

    #[test]
    fn the_present_leaves_room_for_leases() {
        let at = |secs| DateTime::from_timestamp(secs, 0).unwrap();
        let axis = Axis { begin: at(100), now: at(1_300) };
        assert_eq!(percent(axis.percent(at(100))), "0.00%");
        assert_eq!(percent(axis.percent(at(1_300))), "90.00%");
        assert_eq!(percent(axis.percent(at(9_999))), "100.00%");
        assert_eq!(axis.marks(), [at(300), at(600), at(900), at(1_200)]);
    }
}
