//! The runs of one worker around a time, with their tasks.

use chrono::{DateTime, TimeDelta, Utc};
use maud::{Markup, html};
use uuid::Uuid;

use super::workers::{state, tone};
use crate::{
    console::{
        job_runs::runs_address,
        page::Page,
        parts::{agent, counted, duration, facts, id, optional, section, title, wide},
    },
    domain::tasks::TaskLine,
    operations::{Refusal, ShowWorkerActivity, WorkerActivity},
    queue::admin::{WorkerLoad, WorkerRun, outcome_words},
};

/// Minutes of the table.
const MINUTES: i64 = 20;

/// A worker and the end of a span, as the query of the page names them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Choice {
    worker: Uuid,
    until: Option<DateTime<Utc>>,
}

impl Choice {
    /// Reads the query. `None`: it names no worker.
    pub(super) fn read(worker: &str, until: &str) -> Result<Option<Self>, Refusal> {
        let worker = optional("the id of a worker", worker, |text| text.parse().ok())?;
        let moment = |text: &str| DateTime::parse_from_rfc3339(text).ok();
        let until = optional("a time such as 2026-11-28T12:00:00Z", until, moment)?;
        Ok(worker.map(|worker| Self { worker, until: until.map(|until| until.to_utc()) }))
    }

    fn address(self) -> String {
        runs_address(self.worker, self.until)
    }
}

pub(super) async fn show(page: &Page, choice: Choice) -> Result<Markup, Refusal> {
    let Choice { worker, until } = choice;
    let show = ShowWorkerActivity { minutes: Some(MINUTES), until, worker_id: Some(worker) };
    let activity = page.caller.run(show).await?;
    let end = until.unwrap_or(page.view.now);
    let step = TimeDelta::minutes(MINUTES);
    let earlier = Choice { until: Some(end - step), ..choice }.address();
    let later = Choice { until: Some(end + step), ..choice }.address();
    let count = html! {
        (counted(activity.runs.len(), "run", "runs")) " · " (page.view.clock(activity.since)) " to " (page.view.clock(end))
    };
    let body = html! {
        @match activity.workers.first() {
            Some(worker) => (facts(&fields(page, worker))),
            None => div.empty { "Worker " (id("worker", worker)) " did not live at this time, or is no longer kept. " code { "dalsegno worker ls" } " lists all." },
        }
        @if activity.runs.is_empty() { p.faint { "It ran no job in this time." } }
        @else { (wide("Runs of the worker", &table(page, &activity))) }
        p.after {
            a href=(earlier) { "Earlier" }
            @if end < page.view.now { " · " a href=(later) { "Later" } }
            " · " a href="/work" { "All workers" }
        }
    };
    Ok(section("Runs of one worker", &count, &body))
}

fn fields(page: &Page, worker: &WorkerLoad) -> [(&'static str, Markup); 4] {
    [
        ("Worker", id("worker", worker.id)),
        (
            "Process",
            html! { bdi { (worker.host) } " (pid " (worker.pid) "), version " (worker.version) },
        ),
        ("Since", page.view.time(worker.started_at)),
        (
            "State",
            html! { (state(worker).unwrap_or("runs")) @if let Some(at) = worker.gone_at { " " (page.view.time(at)) } },
        ),
    ]
}

fn table(page: &Page, activity: &WorkerActivity) -> Markup {
    let row = |run: &WorkerRun| {
        let task = activity.tasks.iter().find(|task| task.job_id == run.job_id);
        let outcome = outcome_words(run.outcome.as_deref().unwrap_or("runs"));
        html! {
            tr {
                td { a href={ "/work/jobs/" (run.job_id) } { (run.kind.replace('_', " ")) " " (run.job_id) } }
                td.text { @if let Some(task) = task { (task_link(task)) } @else { span.faint { "none" } } }
                td { @if let Some(task) = task { (agent(&task.agent, &task.instance)) } }
                td { (page.view.clock(run.started_at)) }
                td.num { (duration(run.ended_at.unwrap_or(page.view.now) - run.started_at)) }
                td { (tone(run).state(outcome, None)) }
            }
        }
    };
    html! {
        table.folds {
            thead { tr { th { "Job" } th { "Task" } th { "Agent" } th { "Started" } th.num { "Took" } th { "Outcome" } } }
            tbody { @for run in &activity.runs { (row(run)) } }
        }
    }
}

fn task_link(task: &TaskLine) -> Markup {
    html! { a href={ "/tasks/" (task.id) } { bdi { (title(&task.prompt)) } } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_reads_its_own_addresses_and_refuses_others() {
        let given = Choice::read(&Uuid::nil().to_string(), "2026-11-28T12:05:00Z").unwrap();
        let address = given.unwrap().address();
        assert_eq!(address, format!("/work?worker={}&until=2026-11-28T12%3A05%3A00Z", Uuid::nil()));
        assert!(Choice::read("", "").unwrap().is_none());
        assert!(Choice::read("worker-a", "").is_err() && Choice::read("", "noon").is_err());
    }
}
