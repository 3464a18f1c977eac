//! `dalsegno job`: jobs, live and dead.

use clap::{Args, Subcommand};
use serde_json::json;

use super::{
    Context, Exit, Failure, database::with_database, output::table, words::cancellation_words,
};
use crate::{
    clock::{Clock as _, SystemClock},
    db::{Database, Use},
    domain::{
        audit::{self, Action},
        tasks::{self, CancelledJob, RetriedJob},
        transaction::{begin, commit},
    },
    queue::admin::{self, Cancelled, Explanation, JobDetail, JobFilter, JobSummary},
};

#[derive(Debug, Subcommand)]
pub(super) enum JobCommand {
    /// Lists jobs by id.
    Ls(Filter),
    /// Shows a job with its payload and its attempts.
    Show(Id),
    /// Says in words why a job is in its state, and what has to happen next.
    Explain(Id),
    /// Runs a dead, held or waiting job again. Of a task that has failed or was cancelled, the task is retried.
    Retry(Id),
    /// Cancels a job: at once if it does not run, through its worker if it does. That of a task is cancelled as the task is, with what
    /// it has handed out.
    Cancel(Reasoned),
    /// Keeps a job from running until it is released.
    Hold(Reasoned),
    /// Lets a held job go on.
    Release(Id),
}

#[derive(Debug, Args)]
pub(super) struct Filter {
    #[arg(long)]
    queue: Option<String>,
    #[arg(long)]
    kind: Option<String>,
    /// scheduled, ready, blocked, held, running, or dead for dead letters.
    #[arg(long)]
    state: Option<String>,
    #[arg(long)]
    lane: Option<String>,
    /// Only ids after this one: the last id of the page before.
    #[arg(long)]
    after: Option<i64>,
    #[arg(long, default_value_t = 50)]
    limit: i64,
}

#[derive(Debug, Args)]
pub(super) struct Id {
    id: i64,
}

#[derive(Debug, Args)]
pub(super) struct Reasoned {
    id: i64,
    /// Why, for whoever finds it.
    #[arg(long, default_value = "by an operator")]
    reason: String,
}

pub(super) async fn run(command: &JobCommand, context: &Context) -> Result<Exit, Failure> {
    with_database(context, Use::Look, async |database| on(command, context, database).await).await
}

async fn on(command: &JobCommand, context: &Context, database: &Database) -> Result<Exit, Failure> {
    let (pool, output) = (&database.pool, context.output);
    let (who, now) = (context.who(), SystemClock.now());
    match command {
        JobCommand::Ls(filter) => {
            let jobs = admin::list_jobs(pool, &filter.into()).await?;
            output.data(&jobs, || lines(&jobs));
        }
        JobCommand::Show(Id { id }) => {
            let mut connection = pool.acquire().await.map_err(|e| Failure::failed(e.into()))?;
            let job = admin::find_job(&mut connection, *id).await?;
            output.data(&job, || detail(&job));
        }
        JobCommand::Explain(Id { id }) => {
            let explanation = admin::explain(pool, *id).await?;
            output.data(&explanation, || words(&explanation));
            if explanation.state == "unknown" {
                return Ok(Exit::NotFound);
            }
        }
        JobCommand::Retry(Id { id }) => {
            let mut tx = begin(pool).await?;
            let retried = tasks::retry_job(&mut tx, *id, now).await?;
            let data = json!({ "task_id": retried.task_id });
            audit::write(&mut *tx, &who, Action::JobRetry, id, data, now).await?;
            commit(tx).await?;
            output.data(&retried, || self::retried(&retried));
        }
        JobCommand::Cancel(Reasoned { id, reason }) => {
            let mut tx = begin(pool).await?;
            let found = tasks::cancel_job(&mut tx, *id, reason, now).await?;
            audit::write(&mut *tx, &who, Action::JobCancel, id, json!({ "reason": reason }), now)
                .await?;
            commit(tx).await?;
            let task = found.task.map(|(task_id, cancellation)| {
                json!({ "task_id": task_id, "cancel": cancellation.cancel, "below": cancellation.below })
            });
            let data = json!({ "id": id, "cancel": found.cancel, "task": task });
            output.data(&data, || cancelled(*id, &found));
        }
        JobCommand::Hold(Reasoned { id, reason }) => {
            let mut tx = begin(pool).await?;
            let state = admin::hold_job(&mut *tx, *id, reason).await?;
            audit::write(&mut *tx, &who, Action::JobHold, id, json!({ "reason": reason }), now)
                .await?;
            commit(tx).await?;
            output.data(&json!({ "id": id, "state": state }), || match state.as_str() {
                "held" => format!("job {id} is held"),
                _ => format!("job {id} is {state} and will be held when its turn comes"),
            });
        }
        JobCommand::Release(Id { id }) => {
            let mut tx = begin(pool).await?;
            let state = admin::release_job(&mut *tx, *id).await?;
            audit::write(&mut *tx, &who, Action::JobRelease, id, json!({}), now).await?;
            commit(tx).await?;
            output.data(&json!({ "id": id, "state": state }), || format!("job {id} is {state}"));
        }
    }
    Ok(Exit::Ok)
}

impl From<&Filter> for JobFilter {
    fn from(filter: &Filter) -> Self {
        Self {
            queue: filter.queue.clone(),
            kind: filter.kind.clone(),
            state: filter.state.clone(),
            lane: filter.lane.clone(),
            after_id: filter.after,
            limit: Some(filter.limit),
        }
    }
}

fn lines(jobs: &[JobSummary]) -> String {
    let head = ["ID", "STATE", "QUEUE", "KIND", "LANE", "ATTEMPT", "RUN AT"];
    table(
        &head,
        jobs.iter().map(|job| {
            [
                job.id.to_string(),
                job.state.clone(),
                job.queue.clone(),
                job.kind.clone(),
                job.lane.clone().unwrap_or_default(),
                format!("{}/{}", job.attempt, job.max_attempts),
                job.run_at.format("%F %T").to_string(),
            ]
        }),
    )
}

fn detail(job: &JobDetail) -> String {
    let mut text = lines(std::slice::from_ref(&job.summary));
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

fn words(explanation: &Explanation) -> String {
    let Explanation { job_id, state, because, next } = explanation;
    format!("Job {job_id} is {state}.\n{because}\n{next}")
}

fn retried(retried: &RetriedJob) -> String {
    let RetriedJob { id, state, task_id, task_state, job_id } = retried;
    match (task_id, task_state, job_id) {
        (Some(task), Some(now), _) if retried.is_removed() => format!(
            "nothing was retried: task {task} has moved on and is {}; the dead letter {id} is removed",
            now.as_str()
        ),
        (Some(task), _, Some(job)) if job != id => {
            format!("task {task} is retried; its job is {job} now, which is {state}")
        }
        _ => format!("job {id} is {state}"),
    }
}

fn cancelled(id: i64, found: &CancelledJob) -> String {
    if let Some((task, cancellation)) = &found.task {
        return cancellation_words(*task, cancellation);
    }
    match found.cancel {
        Cancelled::AtOnce => format!("job {id} is cancelled"),
        Cancelled::Requested => format!("job {id} runs; its worker was told to stop it"),
        Cancelled::AlreadyDead => format!("job {id} is a dead letter: there is nothing to cancel"),
        Cancelled::AlreadyEnded => format!("job {id} has already ended"),
    }
}
