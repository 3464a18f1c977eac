//! Jobs of the queue: live jobs and dead letters.

use std::{collections::HashMap, str::FromStr};

use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx::PgConnection;
use uuid::Uuid;

use super::{
    Call, Change, ChangeOutput, ChangeResult, Listing, Operation, Refusal, Spec, by_request,
    page_limit,
};
use crate::{
    domain::{
        agent_pauses::{self, Pause},
        audit::Action,
        budgets, campaigns,
        class::{BAD_ARGUMENT, JOB_CONFLICT, NUL_IN_TEXT, UNKNOWN_JOB},
        explanations,
        sessions::{self, SessionModel},
        tasks::{self, CancelledJob, RetriedJob, TaskLine, TaskRetry},
        webhooks::{self, DeliverWebhook},
    },
    queue::{
        self, Job as _,
        admin::{self, Cause, Explanation, JobDetail, JobFilter, JobSummary, WaitReason},
    },
};

const TAG: &str = "queue";

/// Lists jobs by id. Jobs of tasks name their task.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ListJobs {
    pub queue: Option<String>,
    pub kind: Option<String>,
    #[schema(inline)]
    pub state: Option<JobState>,
    pub lane: Option<String>,
    /// Only jobs of this campaign.
    pub campaign_id: Option<Uuid>,
    /// Only jobs that wait for this reason, as the counts of waiting jobs name it.
    #[schema(inline)]
    pub waits_for: Option<WaitReason>,
    pub cursor: Option<i64>,
    #[schema(minimum = 1, maximum = 200)]
    pub limit: Option<i64>,
}

/// A job, with its task if it has one.
#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ListedJob {
    #[serde(flatten)]
    pub job: JobSummary,
    #[serde(default)]
    pub task: Option<TaskLine>,
    /// The budget that its task waits for, by owner and key: `agent/writer`, `campaign/` and an id, `day`. The reason of the wait is then
    /// `condition`.
    #[serde(default)]
    pub budget: Option<String>,
    /// The model whose provider its task waits for. The reason of the wait is then `provider` or `batch`.
    #[serde(default)]
    pub awaited_model: Option<AwaitedModel>,
}

/// A model whose provider is waited for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct AwaitedModel {
    pub provider: String,
    pub model: String,
}

/// Of the jobs that are asked for; `dead` are dead letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    Scheduled,
    Ready,
    Blocked,
    Held,
    Running,
    Dead,
}

/// Shows a job with its payload and its attempts.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ShowJob {
    pub id: i64,
}

/// Explains why a job is in its state, and what has to happen next.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ExplainJob {
    pub id: i64,
}

/// Runs a dead, held or waiting job again.
///
/// Of a task that has failed or was cancelled, the task is retried, with another job. The dead letter of a task that has moved on
/// is removed, and nothing runs.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RetryJob {
    pub id: i64,
}

/// Cancels a job: at once if it waits, through its worker if it runs.
///
/// Cancelling the job of a task cancels the task, with its children. Cancelling the job of a webhook delivery gives the delivery up; a replay
/// sends it again.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CancelJob {
    pub id: i64,
    #[serde(default = "by_request")]
    pub reason: String,
}

/// Prevents a job from running until it is released; a blocked job is held when its turn comes.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HoldJob {
    pub id: i64,
    /// Named in the explanation of the job while it is held.
    #[serde(default = "by_request")]
    #[schema(min_length = 1)]
    pub reason: String,
}

/// Releases a held job.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReleaseJob {
    pub id: i64,
}

#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ChangedJob {
    pub id: i64,
    /// It is in this state now.
    pub state: String,
}

impl Operation for ListJobs {
    const SPEC: Spec = Spec::read("list_jobs", "/v1/jobs", "job ls").tag(TAG);
    type Output = Listing<ListedJob>;

    async fn run(self, call: &Call) -> Result<Listing<ListedJob>, Refusal> {
        let limit = page_limit(self.limit)?;
        let filter = JobFilter {
            queue: self.queue,
            kind: self.kind,
            state: self.state.map(|state| state.as_str().to_owned()),
            lane: self.lane,
            group_key: self.campaign_id.map(|id| id.to_string()),
            waits_for: self.waits_for,
            after_id: self.cursor,
            limit: Some(limit + 1),
        };
        let mut transaction = call.begin_read().await?;
        let jobs = admin::list_jobs(&mut *transaction, &filter).await?;
        let ids: Vec<i64> = jobs.iter().map(|job| job.id).collect();
        let tasks = tasks::of_jobs(&mut *transaction, &ids).await?;
        let waits =
            |job: &&JobSummary| job.wait_reason.as_deref() == Some(WaitReason::Condition.as_str());
        let waiting: Vec<i64> = jobs.iter().filter(waits).map(|job| job.id).collect();
        let of_waiting = tasks.iter().filter(|task| waiting.contains(&task.job_id));
        let of_waiting: Vec<Uuid> = of_waiting.map(|task| task.id).collect();
        let mut budgets = match of_waiting.is_empty() {
            true => HashMap::new(),
            false => budgets::awaited_by(&mut *transaction, &of_waiting).await?,
        };
        let models = awaited_models(&mut transaction, &jobs, &tasks).await?;
        let with_task = |job: JobSummary| {
            let task = tasks.iter().find(|task| task.job_id == job.id).cloned();
            let budget = task.as_ref().and_then(|task| budgets.remove(&task.id));
            let session = task.as_ref().and_then(|task| task.session_id);
            let model = session.filter(|_| awaits_model(&job)).and_then(|id| models.get(&id));
            ListedJob { job, task, budget, awaited_model: model.cloned() }
        };
        let jobs = jobs.into_iter().map(with_task).collect();
        Ok(Listing::of(jobs, limit, |listed: &ListedJob| listed.job.id))
    }
}

fn awaits_model(job: &JobSummary) -> bool {
    let reasons = [WaitReason::Provider, WaitReason::Batch].map(WaitReason::as_str);
    job.wait_reason.as_deref().is_some_and(|reason| reasons.contains(&reason))
}

/// Returns the models of the sessions whose tasks wait for their provider.
async fn awaited_models(
    conn: &mut PgConnection,
    jobs: &[JobSummary],
    tasks: &[TaskLine],
) -> Result<HashMap<Uuid, AwaitedModel>, Refusal> {
    let waiting: Vec<i64> = jobs.iter().filter(|job| awaits_model(job)).map(|job| job.id).collect();
    let of_waiting = tasks.iter().filter(|task| waiting.contains(&task.job_id));
    let ids: Vec<Uuid> = of_waiting.filter_map(|task| task.session_id).collect();
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let models = sessions::models_of(conn, &ids).await?;
    let by_session = models.into_iter().map(|it| {
        let SessionModel { id, provider, model, .. } = it;
        (id, AwaitedModel { provider, model })
    });
    Ok(by_session.collect())
}

impl Operation for ShowJob {
    const SPEC: Spec =
        Spec::read("show_job", "/v1/jobs/{id}", "job show").tag(TAG).refuses(&[UNKNOWN_JOB]);
    type Output = JobDetail;

    async fn run(self, call: &Call) -> Result<JobDetail, Refusal> {
        let mut transaction = call.begin_read().await?;
        Ok(admin::find_job(&mut transaction, self.id).await?)
    }
}

impl Operation for ExplainJob {
    const SPEC: Spec = Spec::read("explain_job", "/v1/jobs/{id}/explain", "job explain")
        .tag(TAG)
        .refuses(&[UNKNOWN_JOB]);
    type Output = Explanation;

    async fn run(self, call: &Call) -> Result<Explanation, Refusal> {
        let mut explanation = admin::explain(&call.pool, self.id).await?;
        match explanation.cause.clone() {
            Cause::Signal | Cause::Behind { .. } => {
                explain_waiting_task(&mut explanation, call).await?;
            }
            Cause::Hold { reason, .. } => {
                let pauses = agent_pauses::list_all(&call.pool).await?;
                explain_agent_pause(&mut explanation, &pauses, &reason);
            }
            Cause::GroupPause { group } => {
                explain_campaign_pause(&mut explanation, call, &group).await?;
            }
            Cause::Later | Cause::Snooze | Cause::Explained => {}
        }
        if matches!(explanation.state.as_str(), "dead" | "ended" | "unknown")
            && let Some(retry) = tasks::find_retry(&call.pool, self.id).await?
        {
            explanation.next = name_new_job(&retry);
        }
        if explanation.state == "unknown" {
            let Explanation { because, next, .. } = explanation;
            let detail = format!("{because} {next}");
            return Err(Refusal::new(UNKNOWN_JOB.kind, UNKNOWN_JOB.code, detail));
        }
        explanation.runs = admin::runs_of(&call.pool, self.id).await?;
        Ok(explanation)
    }
}

fn name_new_job(TaskRetry { task_id, job_id }: &TaskRetry) -> String {
    format!(
        "Its task {task_id} was retried as job {job_id}: `dalsegno job explain {job_id}` explains that one."
    )
}

/// Describes the pause of an agent for which a job, or the head of its lane, is held, and names the commands that end it. A release alone
/// would hold the job again.
fn explain_agent_pause(explanation: &mut Explanation, pauses: &[Pause], reason: &str) {
    let Some(cause) = pauses.iter().find(|pause| pause.hold_reason() == reason) else { return };
    // The explanation of the queue drops the full stop of a reason.
    let (stored, described) = (cause.hold_reason(), cause.describe());
    let [stored, described] = [&stored, &described].map(|text| text.trim().trim_end_matches('.'));
    explanation.because = explanation.because.replace(stored, described);
    let holds = |pause: &&Pause| {
        pause.id == cause.id || (pause.agent == cause.agent && pause.campaign_id.is_none())
    };
    let commands: Vec<String> = pauses.iter().filter(holds).map(Pause::resume_command).collect();
    let then = if explanation.state == "held" { "the job runs" } else { "the lane continues" };
    explanation.next = format!("Resume the agent: {}. Then {then}.", commands.join(" and "));
}

/// Explains the job of a task that waits for other tasks or for its flow: the queue knows only that it waits for a signal, or for a job.
async fn explain_waiting_task(explanation: &mut Explanation, call: &Call) -> Result<(), Refusal> {
    let mut transaction = call.begin_read().await?;
    let task = match tasks::by_job(&mut *transaction, explanation.job_id).await {
        Err(tasks::Error::NoTaskOfJob(_)) => return Ok(()),
        found => found?,
    };
    let of_task = explanations::explain(&mut transaction, task.id).await?;
    (explanation.because, explanation.next) = (of_task.because, of_task.next);
    Ok(())
}

/// Names the campaign whose pause keeps a job waiting. The queue knows the campaign only as a group with an id.
async fn explain_campaign_pause(
    explanation: &mut Explanation,
    call: &Call,
    group: &str,
) -> Result<(), Refusal> {
    let Ok(id) = group.parse::<Uuid>() else { return Ok(()) };
    let campaign = match campaigns::get(&call.pool, id).await {
        Err(campaigns::Error::Unknown(_)) => return Ok(()),
        found => found?,
    };
    let named = format!("its campaign `{}` is paused", campaign.name);
    let unnamed = format!("its group `{group}` is paused");
    explanation.because = explanation.because.replace(&unnamed, &named);
    explanation.next = format!("Resume the campaign: `dalsegno campaign resume {id}`.");
    Ok(())
}

impl Change for RetryJob {
    const SPEC: Spec = Spec::change("retry_job", "/v1/jobs/{id}/retry", "job retry")
        .tag(TAG)
        .refuses(&[UNKNOWN_JOB, JOB_CONFLICT, tasks::Error::ENDED, tasks::Error::ERASED]);
    const ACTION: Action = Action::JobRetry;
    type Output = RetriedJob;

    async fn change(self, conn: &mut PgConnection, call: &Call) -> ChangeResult<RetriedJob> {
        let output = tasks::retry_job(conn, self.id, call.now).await?;
        let data = json!({ "task_id": output.task_id });
        Ok(ChangeOutput::of(self.id, output, data))
    }
}

impl Change for CancelJob {
    const SPEC: Spec = Spec::change("cancel_job", "/v1/jobs/{id}/cancel", "job cancel")
        .tag(TAG)
        .refuses(&[UNKNOWN_JOB, BAD_ARGUMENT, NUL_IN_TEXT]);
    const ACTION: Action = Action::JobCancel;
    type Output = CancelledJob;

    async fn change(self, conn: &mut PgConnection, call: &Call) -> ChangeResult<CancelledJob> {
        let delivery = delivery_of(&mut *conn, self.id).await?;
        if let Some(delivery) = delivery {
            webhooks::give_up(&mut *conn, delivery, self.id, &self.reason, call.now).await?;
        }
        let output = tasks::cancel_job(&mut *conn, self.id, &self.reason, call.now).await?;
        if delivery.is_some() && output.cancel == admin::CancelOutcome::AlreadyDead {
            // A retry of the letter would send nothing.
            queue::forget_dead(conn, &[self.id]).await?;
        }
        let data = json!({ "reason": self.reason });
        Ok(ChangeOutput::of(self.id, output, data))
    }
}

/// Finds the delivery that a job sends. `None`: the job does something else, or has ended.
async fn delivery_of(conn: &mut PgConnection, job_id: i64) -> Result<Option<Uuid>, Refusal> {
    match admin::find_job(conn, job_id).await {
        Ok(job) if job.summary.kind == DeliverWebhook::KIND => {
            Ok(serde_json::from_value(job.payload).ok().map(|job: DeliverWebhook| job.delivery_id))
        }
        Ok(_) | Err(queue::Error::NotFound { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

impl Change for HoldJob {
    const SPEC: Spec = Spec::change("hold_job", "/v1/jobs/{id}/hold", "job hold")
        .tag(TAG)
        .refuses(&[UNKNOWN_JOB, JOB_CONFLICT, BAD_ARGUMENT, NUL_IN_TEXT]);
    const ACTION: Action = Action::JobHold;
    type Output = ChangedJob;

    async fn change(self, conn: &mut PgConnection, _: &Call) -> ChangeResult<ChangedJob> {
        let state = admin::hold_job(conn, self.id, &self.reason).await?;
        let data = json!({ "reason": self.reason });
        Ok(ChangeOutput::of(self.id, ChangedJob { id: self.id, state }, data))
    }
}

impl Change for ReleaseJob {
    const SPEC: Spec = Spec::change("release_job", "/v1/jobs/{id}/release", "job release")
        .tag(TAG)
        .refuses(&[UNKNOWN_JOB, JOB_CONFLICT]);
    const ACTION: Action = Action::JobRelease;
    type Output = ChangedJob;

    async fn change(self, conn: &mut PgConnection, _: &Call) -> ChangeResult<ChangedJob> {
        let state = admin::release_job(conn, self.id).await?;
        let output = ChangedJob { id: self.id, state };
        Ok(ChangeOutput::of(self.id, output, json!({})))
    }
}

impl JobState {
    const ALL: [Self; 6] =
        [Self::Scheduled, Self::Ready, Self::Blocked, Self::Held, Self::Running, Self::Dead];

    fn as_str(self) -> &'static str {
        match self {
            Self::Scheduled => "scheduled",
            Self::Ready => "ready",
            Self::Blocked => "blocked",
            Self::Held => "held",
            Self::Running => "running",
            Self::Dead => "dead",
        }
    }
}

impl FromStr for JobState {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|state| state.as_str() == text);
        found.ok_or_else(|| {
            let all = Self::ALL.map(Self::as_str).join(", ");
            format!("unknown state `{text}`: use one of {all}")
        })
    }
}
