//! The live jobs of waiting tasks: why each of them waits, and how many wait in each campaign.

use std::collections::{HashMap, HashSet};

use maud::Markup;
use uuid::Uuid;

use super::{
    page::Page,
    parts::{Tone, title},
};
use crate::{
    domain::tasks::{ListedTask, State},
    operations::{ListJobs, MAX_LIMIT, Refusal},
    queue::admin::JobSummary,
};

/// Requests that are made at most, each for [`MAX_LIMIT`] jobs.
const MAX_REQUESTS: usize = 5;
const TURNS: &str = "turns";

/// Live jobs of the queue of turns, by their ids.
#[derive(Debug, Default)]
pub(super) struct LiveJobs {
    jobs: HashMap<i64, JobSummary>,
    /// Jobs whose tasks wait for a budget.
    for_budgets: HashSet<i64>,
    /// True if the queue has more jobs than were read.
    pub(super) has_more: bool,
}

impl LiveJobs {
    /// Loads the oldest jobs. A caller who may not see the queue gets none.
    pub(super) async fn load(page: &Page) -> Result<Self, Refusal> {
        Self::after(page, 0, None).await
    }

    /// Loads the jobs of those of these tasks that wait.
    pub(super) async fn of_tasks(page: &Page, tasks: &[ListedTask]) -> Result<Self, Refusal> {
        let waiting = || tasks.iter().map(|it| &it.task).filter(|task| task.state == State::Queued);
        let Some(first) = waiting().map(|task| task.job_id).min() else {
            return Ok(Self::default());
        };
        let campaign = waiting().map(|task| task.campaign_id).next();
        let is_one = waiting().all(|task| Some(task.campaign_id) == campaign);
        Self::after(page, first - 1, campaign.filter(|_| is_one)).await
    }

    async fn after(page: &Page, id: i64, campaign_id: Option<Uuid>) -> Result<Self, Refusal> {
        let mut found = Self::default();
        let mut cursor = Some(id);
        for _ in 0..MAX_REQUESTS {
            let list = ListJobs {
                queue: Some(TURNS.to_owned()),
                kind: None,
                state: None,
                lane: None,
                campaign_id,
                waits_for: None,
                cursor,
                limit: Some(MAX_LIMIT),
            };
            let Some(listing) = page.caller.run_if_allowed(list).await? else { break };
            let for_budgets = listing.items.iter().filter(|it| it.budget.is_some());
            found.for_budgets.extend(for_budgets.map(|it| it.job.id));
            found.jobs.extend(listing.items.into_iter().map(|it| (it.job.id, it.job)));
            cursor = listing.next.and_then(|next| next.parse().ok());
            found.has_more = cursor.is_some();
            if !found.has_more {
                break;
            }
        }
        Ok(found)
    }

    /// Renders the state of a task; of a waiting one with the reason of its wait.
    pub(super) fn state_of(&self, state: State, job_id: i64) -> Markup {
        let tone = super::task::tone(state);
        match self.jobs.get(&job_id).filter(|_| state == State::Queued) {
            Some(job) => {
                let TaskWait { tone, word, why } =
                    TaskWait::of(job, self.for_budgets.contains(&job_id));
                tone.state(word, (!why.is_empty()).then_some(&why))
            }
            None => tone.state(state.as_str(), None),
        }
    }

    /// Counts the jobs of a campaign that wait.
    pub(super) fn n_waiting(&self, campaign: Uuid) -> usize {
        let group = campaign.to_string();
        let waits = |job: &&JobSummary| job.state != "running" && job.state != "dead";
        let own = self.jobs.values().filter(|job| job.group_key.as_deref() == Some(&group));
        own.filter(waits).count()
    }
}

/// The wait of a task in a few words. The page of the task explains it.
#[derive(Debug, PartialEq, Eq)]
struct TaskWait {
    tone: Tone,
    word: &'static str,
    why: String,
}

impl TaskWait {
    fn of(job: &JobSummary, is_for_budget: bool) -> Self {
        let of = |tone, word, why: &str| Self { tone, word, why: why.to_owned() };
        let reason = job.reason.as_deref().unwrap_or_default();
        match (job.state.as_str(), job.wait_reason.as_deref()) {
            ("held", _) if reason.contains(" is paused") => {
                of(Tone::Paused, "paused", paused(reason))
            }
            ("held", _) if reason.is_empty() => of(Tone::Held, "held", "after a failure"),
            ("held", _) => of(Tone::Held, "held", &title(reason)),
            ("ready", Some("pause")) => of(Tone::Paused, "paused", "campaign or queue"),
            ("ready", _) => of(Tone::Queued, "queued", "for a free slot"),
            ("blocked", Some("lane_hold")) => of(Tone::Held, "held", "with its conversation"),
            ("blocked", _) => of(Tone::Waiting, "waiting", "behind another task"),
            (_, Some("condition")) if is_for_budget => {
                of(Tone::Waiting, "waiting", "for space in a budget")
            }
            (_, Some("condition")) if job.due_at().is_some() => {
                of(Tone::Waiting, "waiting", "for space in a limit")
            }
            (_, Some("condition")) => of(Tone::Waiting, "waiting", "for a rate limit"),
            (_, Some("signal")) => of(Tone::Waiting, "waiting", "for another task"),
            (_, Some("provider")) => of(Tone::Waiting, "waiting", "for a busy provider"),
            (_, Some("batch")) => of(Tone::Waiting, "waiting", "for its batch"),
            (_, Some("snooze")) => of(Tone::Waiting, "waiting", "for its next try"),
            (_, Some("retry")) => of(Tone::Waiting, "waiting", "for its next attempt"),
            (_, Some("crash")) => of(Tone::Waiting, "waiting", "after its worker was lost"),
            (_, Some("later")) => of(Tone::Waiting, "waiting", "for its time"),
            _ => of(Tone::Queued, "queued", ""),
        }
    }
}

/// Names what is paused, for which a job is held.
fn paused(reason: &str) -> &'static str {
    if reason.starts_with("agent ") { "its agent" } else { "its flow" }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;

    fn job(state: &str, wait_reason: Option<&str>, reason: Option<&str>) -> JobSummary {
        JobSummary {
            id: 1,
            queue: TURNS.into(),
            kind: "run_turn".into(),
            state: state.into(),
            lane: None,
            group_key: Some(Uuid::from_u128(7).to_string()),
            priority: 100,
            attempt: 0,
            max_attempts: 3,
            run_at: DateTime::UNIX_EPOCH,
            enqueued_at: DateTime::UNIX_EPOCH,
            wait_reason: wait_reason.map(str::to_owned),
            reason: reason.map(str::to_owned),
        }
    }

    #[test]
    fn a_wait_is_named_by_its_reason() {
        let words = |job: &JobSummary| {
            let TaskWait { word, why, .. } = TaskWait::of(job, false);
            format!("{word} {why}")
        };
        let put_off = |reason| words(&job("scheduled", Some(reason), None));
        assert_eq!(put_off("provider"), "waiting for a busy provider");
        assert_eq!(put_off("batch"), "waiting for its batch");
        assert_eq!(put_off("condition"), "waiting for space in a limit");
        assert_eq!(put_off("snooze"), "waiting for its next try");
        let never = DateTime::from_timestamp(253_402_214_400, 0).unwrap();
        let budget = JobSummary { run_at: never, ..job("scheduled", Some("condition"), None) };
        assert_eq!(words(&budget), "waiting for a rate limit");
        assert_eq!(TaskWait::of(&budget, true).why, "for space in a budget");
        let pause = "agent `planner` is paused everywhere (1): client call";
        assert_eq!(words(&job("held", Some("person"), Some(pause))), "paused its agent");
        assert_eq!(words(&job("held", Some("person"), Some("legal"))), "held legal");
        assert_eq!(words(&job("ready", Some("pause"), None)), "paused campaign or queue");
    }

    #[test]
    fn running_jobs_of_a_campaign_do_not_wait() {
        let mut all = LiveJobs::default();
        all.jobs.insert(1, job("running", None, None));
        all.jobs.insert(2, job("ready", Some("slot"), None));
        assert_eq!(all.n_waiting(Uuid::from_u128(7)), 1);
        assert_eq!(all.n_waiting(Uuid::from_u128(8)), 0);
    }
}
