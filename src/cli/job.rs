//! `dalsegno job`: jobs, live and dead.

use clap::{Args, Subcommand};
use uuid::Uuid;

use super::{
    Context, Exit, Failure,
    args::InCampaign,
    campaign_names::{CAMPAIGN, CampaignNames},
    output::{Table, short_id, time_cell_or_dash},
    server::{Server, with_server},
    words::format_cancellation,
};
use crate::{
    domain::{
        agents::Catalogue,
        tasks::{CancelledJob, RetriedJob},
    },
    operations::{
        AwaitedModel, CancelJob, ExplainJob, HoldJob, JobState, ListJobs, ListedJob, ReleaseJob,
        RetryJob, ShowJob,
    },
    queue::admin::{CancelOutcome, Explanation, JobDetail, JobSummary, WaitReason, outcome_words},
};

/// Printed below an empty list.
const NO_JOBS: &str = "no jobs: each task that has not ended has one";
const WAITS_FOR: &str = "WAITS FOR";
const N_COLUMNS: usize = 11;
const HEAD: [&str; N_COLUMNS] = [
    "ID",
    "STATE",
    "TASK",
    "AGENT",
    CAMPAIGN,
    "QUEUE",
    "KIND",
    "LANE",
    "ATTEMPT",
    "RUN AT (UTC)",
    WAITS_FOR,
];

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
    /// the provider), snooze (the next check of a condition, such as an agent's broken file; lists provider and batch, too), condition (budget or
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
            let names = CampaignNames::of_list(campaign_id, &jobs, output, server).await;
            output.print_rows(&jobs, filter.is_given(campaign_id), NO_JOBS, || {
                format_listed(&jobs, names.as_ref(), &context.catalogue())
            });
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

fn format_listed(
    jobs: &[ListedJob],
    campaigns: Option<&CampaignNames>,
    catalogue: &Catalogue,
) -> String {
    let line = |listed: &ListedJob| {
        let task = listed.task.as_ref().map(|task| TaskCells {
            id: short_id(task.id),
            agent: catalogue.format_name(&task.agent, &task.instance),
            campaign: campaigns.map(|names| names.cell(task.campaign_id)),
        });
        format_line(&listed.job, task, awaited(listed))
    };
    format_lines(jobs.iter().map(line).collect())
}

/// Names the limit, the provider, the batch or the task that a job waits for. A condition without an end is a budget or a rate limit, and the
/// budget is known.
fn awaited(ListedJob { job, budget, awaited_model, .. }: &ListedJob) -> String {
    if let Some(AwaitedModel { provider, model }) = awaited_model {
        return format!("{provider} ({model})");
    }
    match (job.wait_reason.as_deref(), budget) {
        // The campaign and the task have columns.
        (_, Some(budget)) if budget.starts_with("campaign/") => "budget of campaign".to_owned(),
        (_, Some(budget)) if budget.starts_with("task/") => "budget of task".to_owned(),
        (_, Some(budget)) => format!("budget {budget}"),
        (Some("condition"), None) if job.due_at().is_some() => "a budget or rate limit".to_owned(),
        (Some("condition"), None) => "a rate limit".to_owned(),
        (Some("provider"), None) => "a busy provider".to_owned(),
        (Some("batch"), None) => "its batch".to_owned(),
        (Some("signal"), None) => "another task".to_owned(),
        _ => String::new(),
    }
}

/// The cells of the task of a job.
#[derive(Default)]
struct TaskCells {
    id: String,
    agent: String,
    /// `None`: all jobs belong to one campaign.
    campaign: Option<String>,
}

/// Formats a job with its task, and with what it waits for, where that is named.
fn format_line(job: &JobSummary, task: Option<TaskCells>, awaited: String) -> [String; N_COLUMNS] {
    let TaskCells { id, agent, campaign } = task.unwrap_or_default();
    [
        job.id.to_string(),
        job.state.clone(),
        id,
        agent,
        campaign.unwrap_or_default(),
        job.queue.clone(),
        job.kind.clone(),
        job.lane.clone().unwrap_or_default(),
        format!("{}/{}", job.attempt, job.max_attempts),
        time_cell_or_dash(job.due_at()),
        awaited,
    ]
}

/// Formats jobs without the columns that no job needs. A narrow terminal keeps the task, its agent and campaign, and the wait.
fn format_lines(lines: Vec<[String; N_COLUMNS]>) -> String {
    let is_empty = |name: &str| {
        let column = HEAD.iter().position(|head| *head == name);
        column.is_some_and(|column| lines.iter().all(|line| line[column].is_empty()))
    };
    let mut table = Table::new(&HEAD).leaves_out(&["LANE", "QUEUE", "ATTEMPT", "KIND"]);
    for name in ["TASK", "AGENT", CAMPAIGN, WAITS_FOR] {
        if is_empty(name) {
            table = table.hides(name);
        }
    }
    table.format(lines.into_iter())
}

fn detail(job: &JobDetail) -> String {
    let mut text = format_lines(vec![format_line(&job.summary, None, String::new())]);
    text.push_str(&format!("\npayload  {}\n", job.payload));
    if let Some(headers) = &job.headers {
        text.push_str(&format!("headers  {headers}\n"));
    }
    for run in &job.runs {
        let error = run.error.as_deref().unwrap_or_default();
        let ended = run.ended_at.format("%F %T");
        let outcome = outcome_words(&run.outcome);
        text.push_str(&format!("attempt {}  {outcome}  {ended}  {error}\n", run.attempt));
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
    fn a_run_that_was_put_off_is_shown_in_words() {
        let job = json!({
            "id": 1, "queue": "turns", "kind": "run_turn", "state": "scheduled", "priority": 100, "attempt": 0, "max_attempts": 3,
            "run_at": "2026-11-20T12:00:00Z", "enqueued_at": "2026-11-20T12:00:00Z", "payload": {},
            "runs": [{ "attempt": 1, "lease": 1, "outcome": "snooze", "ended_at": "2026-11-20T12:00:00Z", "error": "busy" }]
        });
        let text = detail(&serde_json::from_value(job).unwrap());
        assert!(text.contains("put off") && !text.contains("snooze"), "{text}");
    }

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
        let text_of = |jobs: &[ListedJob]| {
            format_listed(jobs, Some(&CampaignNames::default()), &Catalogue::default())
        };
        let text = text_of(&[unended(Some("agent/writer")), unended(None)]);
        assert!(text.contains("budget agent/writer") && text.contains("a rate limit"), "{text}");
        let text = text_of(&[listed("condition"), listed("provider"), listed("batch")]);
        for words in ["a budget or rate limit", "a busy provider", "its batch"] {
            assert!(text.contains(words), "{words} in {text}");
        }
        let text = text_of(&[listed("retry")]);
        assert!(!text.contains(WAITS_FOR) && !text.contains("a rate limit"), "{text}");
        assert!(!text.contains("TASK") && !text.contains(CAMPAIGN), "{text}");
        let id = Uuid::from_u128(1);
        let task = json!({
            "id": id, "campaign_id": Uuid::from_u128(2), "agent": "writer", "instance": "main", "prompt": "Write."
        });
        let (provider, model) = ("deadbox".to_owned(), "m1".to_owned());
        let waiting = ListedJob {
            task: Some(serde_json::from_value(task).unwrap()),
            awaited_model: Some(AwaitedModel { provider, model }),
            ..listed("provider")
        };
        let text = text_of(&[waiting]);
        for words in
            ["TASK", &short_id(id), "writer", &short_id(Uuid::from_u128(2)), "deadbox (m1)"]
        {
            assert!(text.contains(words), "{words} in {text}");
        }
    }
}
