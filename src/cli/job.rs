//! `dalsegno job`: jobs, live and dead.

use clap::{Args, Subcommand};
use uuid::Uuid;

use super::{
    Context, Exit, Failure,
    args::InCampaign,
    output::Table,
    server::{Server, with_server},
    words::format_cancellation,
};
use crate::{
    domain::tasks::{CancelledJob, RetriedJob},
    operations::{
        CancelJob, ExplainJob, HoldJob, JobState, ListJobs, ListedJob, ReleaseJob, RetryJob,
        ShowJob,
    },
    queue::admin::{CancelOutcome, Explanation, JobDetail, JobSummary, WaitReason},
};

/// Printed below an empty list.
const NO_JOBS: &str = "no jobs: each task that has not ended has one";
const WAITS_FOR: &str = "WAITS FOR";

#[derive(Debug, Subcommand)]
pub(super) enum JobCommand {
    /// Lists jobs by id.
    Ls(Filter),
    /// Shows a job with its payload and its attempts.
    Show(Id),
    /// Explains why a job is in its state, and what has to happen next.
    Explain(Id),
    /// Runs a dead, held or waiting job now. For a failed or cancelled task, retries the task.
    Retry(Id),
    /// Cancels a job: at once if it waits, through its worker if it runs.
    ///
    /// Cancelling the job of a task cancels the task, with its children. Cancelling the job of a webhook delivery gives the delivery up.
    Cancel(ReasonArgs),
    /// Prevents a job from running until it is released.
    Hold(ReasonArgs),
    /// Releases a held job.
    Release(Id),
}

#[derive(Debug, Args)]
pub(super) struct Filter {
    /// Only jobs of this queue.
    #[arg(long)]
    queue: Option<String>,
    /// Only jobs of this kind, for example run_turn.
    #[arg(long)]
    kind: Option<String>,
    /// Only jobs in this state: scheduled, ready, blocked, held, running, or dead for dead letters.
    #[arg(long)]
    state: Option<JobState>,
    /// Only jobs of this lane.
    #[arg(long)]
    lane: Option<String>,
    #[command(flatten)]
    campaign: InCampaign,
    /// Only jobs that wait for this reason: slot, pause, lane, lane_hold, later (start time), retry, provider (busy or unreachable), batch (open at
    /// the provider), snooze (the next look at a condition, such as an agent's broken file; lists provider and batch, too), condition (budget or
    /// rate limit), crash (lost worker), signal (another task), person (held) or failure. `dalsegno queue waits` counts them.
    #[arg(long, value_name = "REASON")]
    waits_for: Option<WaitReason>,
    /// Continues after this job: the last id of the previous page.
    #[arg(long)]
    after: Option<i64>,
    /// Maximum number of jobs, up to 1000.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(i64).range(1..=1000))]
    limit: i64,
}

#[derive(Debug, Args)]
pub(super) struct Id {
    /// The number of the job: `dalsegno job ls` lists it.
    #[arg(value_parser = job_number)]
    id: i64,
}

#[derive(Debug, Args)]
pub(super) struct ReasonArgs {
    /// The number of the job: `dalsegno job ls` lists it.
    #[arg(value_parser = job_number)]
    id: i64,
    /// Reason, shown with the job.
    #[arg(long, default_value = "by an operator")]
    reason: String,
}

pub(super) async fn run(command: &JobCommand, context: &Context) -> Result<Exit, Failure> {
    with_server(context, async |server| run_on_server(command, context, server).await).await
}

async fn run_on_server(
    command: &JobCommand,
    context: &Context,
    server: &Server,
) -> Result<Exit, Failure> {
    let output = context.output;
    match command {
        JobCommand::Ls(filter) => {
            let campaign_id = filter.campaign.id_if_given(context, server).await?;
            let page = |cursor, limit| filter.page(campaign_id, cursor, limit);
            let jobs = server.items(filter.limit, page).await?;
            output
                .print_rows(&jobs, filter.is_given(campaign_id), NO_JOBS, || format_listed(&jobs));
        }
        JobCommand::Show(Id { id }) => {
            let job = server.call(ShowJob { id: *id }).await?;
            output.print_data(&job, || detail(&job));
        }
        JobCommand::Explain(Id { id }) => {
            let explanation = server.call(ExplainJob { id: *id }).await?;
            output.print_data(&explanation, || format_explanation(&explanation));
        }
        JobCommand::Retry(Id { id }) => {
            let retried = server.call(RetryJob { id: *id }).await?;
            output.print_data(&retried, || self::retried(&retried));
        }
        JobCommand::Cancel(ReasonArgs { id, reason }) => {
            let done = server.call(CancelJob { id: *id, reason: reason.clone() }).await?;
            output.print_data(&done, || cancelled(&done));
        }
        JobCommand::Hold(ReasonArgs { id, reason }) => {
            let job = server.call(HoldJob { id: *id, reason: reason.clone() }).await?;
            output.print_data(&job, || match job.state.as_str() {
                "held" => format!("job {id} is held"),
                state => format!("job {id} is {state} and will be held when its turn comes"),
            });
        }
        JobCommand::Release(Id { id }) => {
            let job = server.call(ReleaseJob { id: *id }).await?;
            output.print_data(&job, || format!("job {id} is {}", job.state));
        }
    }
    Ok(Exit::Ok)
}

impl Filter {
    fn is_given(&self, campaign_id: Option<Uuid>) -> bool {
        let is_narrowed = self.queue.is_some() || self.kind.is_some() || self.lane.is_some();
        let is_in_state = self.state.is_some() || self.waits_for.is_some();
        is_narrowed || is_in_state || campaign_id.is_some() || self.after.is_some()
    }

    fn page(&self, campaign_id: Option<Uuid>, cursor: Option<String>, limit: i64) -> ListJobs {
        ListJobs {
            queue: self.queue.clone(),
            kind: self.kind.clone(),
            state: self.state,
            lane: self.lane.clone(),
            campaign_id,
            waits_for: self.waits_for,
            cursor: cursor.map_or(self.after, |cursor| cursor.parse().ok()),
            limit: Some(limit),
        }
    }
}

fn job_number(text: &str) -> Result<i64, String> {
    text.parse()
        .map_err(|_| "a job is a number; for a task use `dalsegno task explain ID`".to_owned())
}

fn format_listed(jobs: &[ListedJob]) -> String {
    format_jobs(jobs.iter().map(|listed| (&listed.job, awaited(listed))))
}

/// Names the limit, provider or batch that a job waits for. A condition without an end is a budget or a rate limit, and the budget is known.
fn awaited(ListedJob { job, budget, .. }: &ListedJob) -> String {
    match (job.wait_reason.as_deref(), budget) {
        (_, Some(budget)) => format!("budget {budget}"),
        (Some("condition"), None) if job.due_at().is_some() => "a budget or rate limit".to_owned(),
        (Some("condition"), None) => "a rate limit".to_owned(),
        (Some("provider"), None) => "a busy provider".to_owned(),
        (Some("batch"), None) => "its batch".to_owned(),
        _ => String::new(),
    }
}

/// Formats jobs, each with what it waits for, where that is named.
fn format_jobs<'a>(jobs: impl Iterator<Item = (&'a JobSummary, String)>) -> String {
    let head = ["ID", "STATE", "QUEUE", "KIND", "LANE", "ATTEMPT", "RUN AT (UTC)", WAITS_FOR];
    let row = |(job, awaited): (&JobSummary, String)| {
        [
            job.id.to_string(),
            job.state.clone(),
            job.queue.clone(),
            job.kind.clone(),
            job.lane.clone().unwrap_or_default(),
            format!("{}/{}", job.attempt, job.max_attempts),
            job.due_at().map_or_else(|| "-".to_owned(), |at| at.format("%F %T").to_string()),
            awaited,
        ]
    };
    let rows: Vec<_> = jobs.map(row).collect();
    let table = Table::new(&head);
    let is_any_named = rows.iter().any(|row| row.last().is_some_and(|named| !named.is_empty()));
    let table = if is_any_named { table } else { table.hides(WAITS_FOR) };
    table.format(rows.into_iter())
}

fn detail(job: &JobDetail) -> String {
    let mut text = format_jobs(std::iter::once((&job.summary, String::new())));
    text.push_str(&format!("\npayload  {}\n", job.payload));
    if let Some(headers) = &job.headers {
        text.push_str(&format!("headers  {headers}\n"));
    }
    for run in &job.runs {
        let error = run.error.as_deref().unwrap_or_default();
        let ended = run.ended_at.format("%F %T");
        text.push_str(&format!("attempt {}  {}  {ended}  {error}\n", run.attempt, run.outcome));
    }
    text
}

fn format_explanation(explanation: &Explanation) -> String {
    let Explanation { job_id, state, because, next, .. } = explanation;
    format!("Job {job_id} is {state}.\n{because}\n{next}")
}

fn retried(retried: &RetriedJob) -> String {
    let RetriedJob { id, state, task_id, task_state, job_id } = retried;
    match (task_id, task_state, job_id) {
        (Some(task), Some(now), _) if retried.is_removed() => format!(
            "nothing was retried: task {task} already runs under another job and is {}; the dead letter {id} is removed",
            now.as_str()
        ),
        (Some(task), _, Some(job)) if job != id => {
            format!("task {task} is retried; its job is {job} now, which is {state}")
        }
        _ if state == "ready" => format!("job {id} is ready: it runs when a slot is free"),
        _ => format!("job {id} is {state}"),
    }
}

fn cancelled(CancelledJob { id, cancel, task }: &CancelledJob) -> String {
    if let Some(task) = task {
        return format_cancellation(task.task_id, &task.cancellation);
    }
    match cancel {
        CancelOutcome::AtOnce => format!("job {id} is cancelled"),
        CancelOutcome::Requested => format!("job {id} is running; its worker will stop it"),
        CancelOutcome::AlreadyDead => {
            format!("job {id} is a dead letter: there is nothing to cancel")
        }
        CancelOutcome::AlreadyEnded => format!("job {id} has already ended"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_job_that_waits_for_a_limit_its_provider_or_a_batch_names_it() {
        let at = |reason: &str, budget: Option<&str>, run_at: &str| {
            let job = json!({
                "id": 1, "queue": "turns", "kind": "run_turn", "state": "scheduled", "priority": 100, "attempt": 0, "max_attempts": 3,
                "run_at": run_at, "enqueued_at": "2026-11-20T12:00:00Z", "wait_reason": reason, "budget": budget
            });
            serde_json::from_value::<ListedJob>(job).unwrap()
        };
        let listed = |reason: &str| at(reason, None, "2026-11-20T12:00:00Z");
        let unended = |budget| at("condition", budget, "9999-12-31T00:00:00Z");
        let text = format_listed(&[unended(Some("agent/writer")), unended(None)]);
        assert!(text.contains("budget agent/writer") && text.contains("a rate limit"), "{text}");
        let text = format_listed(&[listed("condition"), listed("provider"), listed("batch")]);
        for words in ["a budget or rate limit", "a busy provider", "its batch"] {
            assert!(text.contains(words), "{words} in {text}");
        }
        let text = format_listed(&[listed("retry")]);
        assert!(!text.contains(WAITS_FOR) && !text.contains("a rate limit"), "{text}");
    }
}
