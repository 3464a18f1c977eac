//! The workers of attempts, as long as the queue keeps the runs of their jobs.

use std::collections::{BTreeSet, HashMap};

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use maud::{Markup, html};
use uuid::Uuid;

use super::{page::Page, parts::url_text};
use crate::{
    domain::{class::Kind, turns::Turn},
    operations::{ExplainJob, Refusal, ShowJob},
    queue::admin::{PresentRun, RunRecord},
};

/// The outcome of a run whose worker was lost.
const LOST: &str = "lost";
/// Jobs of a task whose runs are read at most: each retry of a task has another job.
const MAX_JOBS: usize = 10;
/// Minutes after the end of a run that a link to it shows, too.
const MINUTES_AFTER: i64 = 5;

/// A worker as pages name it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct WorkerName {
    id: Uuid,
    host: Option<String>,
    pid: Option<i32>,
    /// The end of the run. `None`: it runs now.
    ended_at: Option<DateTime<Utc>>,
}

/// Workers of runs, by job and lease.
#[derive(Debug, Default)]
pub(super) struct JobRuns {
    workers: HashMap<(i64, i64), WorkerName>,
    /// The ends of runs whose worker was lost.
    losses: HashMap<(i64, i64), DateTime<Utc>>,
    /// False: the caller may not see jobs, so pages name no worker.
    is_visible: bool,
}

impl JobRuns {
    /// Loads the runs of the jobs of these turns, the newest jobs first.
    pub(super) async fn of_turns(page: &Page, turns: &[Turn]) -> Result<Self, Refusal> {
        let jobs: BTreeSet<i64> = turns.iter().map(|turn| turn.job_id).collect();
        let mut found = Self::default();
        for job in jobs.into_iter().rev().take(MAX_JOBS) {
            found.read(page, job).await?;
        }
        Ok(found)
    }

    async fn read(&mut self, page: &Page, job: i64) -> Result<(), Refusal> {
        let Some(explanation) = known(page.caller.run_if_allowed(ExplainJob { id: job }).await)?
        else {
            return Ok(());
        };
        self.is_visible = true;
        let Some(explanation) = explanation else { return Ok(()) };
        for run in &explanation.runs {
            self.workers.extend(of_run(run).map(|name| ((job, run.lease), name)));
            if run.outcome == LOST {
                self.losses.insert((job, run.lease), run.ended_at);
            }
        }
        if explanation.state == "running"
            && let Some(Some(detail)) =
                known(page.caller.run_if_allowed(ShowJob { id: job }).await)?
            && let Some(run) = &detail.running
        {
            self.workers.insert((job, run.lease), of_present(run));
        }
        Ok(())
    }

    /// Returns the moment at which the worker of a turn was found lost, if it was. The next turn marks it as interrupted later.
    pub(super) fn lost_at(&self, turn: &Turn) -> Option<DateTime<Utc>> {
        self.losses.get(&(turn.job_id, turn.lease)).copied()
    }

    /// Names the worker of a turn, with a link to what it ran at that time.
    pub(super) fn worker_of(&self, turn: &Turn) -> Markup {
        match self.workers.get(&(turn.job_id, turn.lease)) {
            Some(name) => shown(name),
            None if self.is_visible => html! {
                span.faint title="The queue keeps the runs of ended jobs for queue.keep.runs_days." { "a worker that is no longer kept" }
            },
            None => html! {},
        }
    }
}

/// Returns `None` if the caller may not, and `Some(None)` if the job is unknown: its runs were removed.
fn known<T>(found: Result<Option<T>, Refusal>) -> Result<Option<Option<T>>, Refusal> {
    match found {
        Ok(found) => Ok(found.map(Some)),
        Err(refusal) if refusal.kind == Kind::NotFound => Ok(Some(None)),
        Err(refusal) => Err(refusal),
    }
}

fn of_run(run: &RunRecord) -> Option<WorkerName> {
    let (host, ended_at) = (run.host.clone(), Some(run.ended_at));
    Some(WorkerName { id: run.worker_id?, host, pid: run.pid, ended_at })
}

fn of_present(run: &PresentRun) -> WorkerName {
    WorkerName { id: run.worker_id, host: run.host.clone(), pid: run.pid, ended_at: None }
}

/// Names the worker of an ended run.
pub(super) fn worker_of_run(run: &RunRecord) -> Markup {
    html! { @match of_run(run) { Some(name) => (shown(&name)), None => span.faint { "none" } } }
}

/// Names the worker of the present run of a job.
pub(super) fn worker_of_present(run: &PresentRun) -> Markup {
    shown(&of_present(run))
}

/// Returns the end of the time that a link to an ended run shows.
fn around(ended_at: DateTime<Utc>) -> DateTime<Utc> {
    ended_at + TimeDelta::minutes(MINUTES_AFTER)
}

/// Returns the address of the runs of a worker until a time, or until now.
pub(super) fn runs_address(worker: Uuid, until: Option<DateTime<Utc>>) -> String {
    let mut address = format!("/work?worker={worker}");
    if let Some(until) = until {
        let until = until.to_rfc3339_opts(SecondsFormat::Secs, true);
        address.push_str(&format!("&until={}", url_text(&until)));
    }
    address
}

fn shown(WorkerName { id, host, pid, ended_at }: &WorkerName) -> Markup {
    html! {
        a href=(runs_address(*id, ended_at.map(around))) title={ "What worker " (id) " ran at that time" } {
            @match (host, pid) {
                (Some(host), Some(pid)) => { bdi { (host) } " (pid " (pid) ")" },
                _ => (super::parts::id("worker", *id)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_is_named_by_host_and_process() {
        let ended_at = "2026-11-28T12:00:00Z".parse().ok();
        let name =
            WorkerName { id: Uuid::nil(), host: Some("<b>".into()), pid: Some(41), ended_at };
        let shown = shown(&name).0;
        assert!(shown.contains("&lt;b&gt;") && shown.contains("(pid 41)"), "{shown}");
        assert!(
            shown.contains("/work?worker=0") && shown.contains("&amp;until=2026-11-28T12%3A05"),
            "{shown}"
        );
    }
}
