//! Tasks of the last hours, for the overview of an installation.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::{PgExecutor, types::Json};
use uuid::Uuid;

use super::subject::subject;
use crate::domain::{StatementError, amount::Refusal};

/// Tasks that are read at most for the waits of the last hours, the newest ones.
pub const MAX_WAITS_READ: i64 = 5_000;
/// Tasks that are read at most for the retries of a span.
const MAX_READ: i64 = 5_000;
/// Retried tasks of which the turns are read for their jobs.
const MAX_RETRIED: i64 = 1_000;
/// Characters of a prompt or an error in a line.
pub(super) const LINE_CHARS: i32 = 300;
/// Characters of a prompt in which the line with the mention of its agent is looked for.
pub(super) const READ_CHARS: i32 = 2_000;

/// A task in one line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TaskLine {
    pub id: Uuid,
    /// Its last job; beside the runs of a worker the job of the run, after which a retried task has others.
    #[serde(default)]
    pub job_id: i64,
    pub campaign_id: Uuid,
    pub agent: String,
    pub instance: String,
    /// The beginning of the prompt, or of its line that mentions the agent.
    pub prompt: String,
    /// The beginning of the error.
    pub error: Option<String>,
    /// For callers in this process: the refusal of the budget at which it failed.
    #[serde(skip)]
    pub budget_refusal: Option<Json<Refusal>>,
    /// For callers in this process: the flow that it is a step of.
    #[serde(skip)]
    pub flow_id: Option<Uuid>,
    /// For callers in this process: the name of that step.
    #[serde(skip)]
    pub step: Option<String>,
    pub session_id: Option<Uuid>,
    pub turn: Option<i32>,
    pub started_at: Option<DateTime<Utc>>,
    pub ended_at: Option<DateTime<Utc>>,
}

impl TaskLine {
    /// Returns its flow, and its step there.
    pub(in crate::domain) fn flow_step(&self) -> Option<(Uuid, &str)> {
        self.flow_id.zip(self.step.as_deref())
    }

    /// Cuts its texts to the length of a line.
    pub(super) fn cut(self) -> Self {
        let own = subject(&self.prompt, &self.agent, &self.instance);
        let max_chars = usize::try_from(LINE_CHARS).unwrap_or(usize::MAX);
        let prompt = own.chars().take(max_chars).collect();
        let error = self.error.as_ref().map(|error| error.chars().take(max_chars).collect());
        Self { prompt, error, ..self }
    }
}

/// The longest wait for a start among the tasks that were added in one step of a chart: in a minute, if it shows one hour.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct WaitMinute {
    /// Age of the step: 0 is the one that ends now.
    pub minutes_ago: i32,
    pub longest_secs: f64,
}

/// Lists the tasks of these jobs, those that started last first.
pub async fn of_jobs(
    executor: impl PgExecutor<'_>,
    jobs: &[i64],
) -> Result<Vec<TaskLine>, StatementError> {
    sqlx::query_as!(
        TaskLine,
        r#"select id, job_id, campaign_id, agent, instance, left(prompt, $2) as "prompt!", left(error, $2) as error,
                  budget_refusal as "budget_refusal: Json<Refusal>", flow_id, step, session_id, turn, started_at, ended_at
             from dalsegno.tasks where job_id = any ($1) order by started_at desc nulls last"#,
        jobs,
        READ_CHARS,
    )
    .fetch_all(executor)
    .await
    .map(|lines| lines.into_iter().map(TaskLine::cut).collect())
    .map_err(StatementError::to("list the tasks of jobs"))
}

/// Lists tasks that were retried and may have had jobs between these two: at most `MAX_RETRIED`, those with the newest first jobs. Their index
/// has the first jobs alone, so of all that began up to the newest job only the last `MAX_READ` are read.
pub async fn retried_between(
    executor: impl PgExecutor<'_>,
    oldest_job: i64,
    newest_job: i64,
) -> Result<Vec<Uuid>, StatementError> {
    sqlx::query_scalar!(
        r#"select id as "id!" from (select id, job_id, first_job_id from dalsegno.tasks where first_job_id <= $2 order by first_job_id desc limit $4) as begun
            where job_id >= $1 order by first_job_id desc limit $3"#,
        oldest_job,
        newest_job,
        MAX_RETRIED,
        MAX_READ,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list the tasks that were retried"))
}

/// Lists the tasks of runs by the jobs of these, with that job: as their last job, their first one, or one of `earlier`, the jobs that their
/// turns name.
pub async fn of_runs(
    executor: impl PgExecutor<'_>,
    jobs: &[i64],
    earlier: &[(Uuid, i64)],
) -> Result<Vec<TaskLine>, StatementError> {
    let (earlier_tasks, earlier_jobs): (Vec<Uuid>, Vec<i64>) = earlier.iter().copied().unzip();
    sqlx::query_as!(
        TaskLine,
        r#"select t.id, r.job_id as "job_id!", t.campaign_id, t.agent, t.instance, left(t.prompt, $4) as "prompt!", left(t.error, $4) as error,
                  t.budget_refusal as "budget_refusal: Json<Refusal>", t.flow_id, t.step, t.session_id, t.turn, t.started_at, t.ended_at
             from (select id, job_id from dalsegno.tasks where job_id = any ($1)
                    union select id, first_job_id from dalsegno.tasks where first_job_id = any ($1)
                    union select * from unnest($2::uuid[], $3::bigint[])) as r (id, job_id)
                  join dalsegno.tasks as t on t.id = r.id
            order by t.started_at desc nulls last"#,
        jobs,
        &earlier_tasks,
        &earlier_jobs,
        READ_CHARS,
    )
    .fetch_all(executor)
    .await
    .map(|lines| lines.into_iter().map(TaskLine::cut).collect())
    .map_err(StatementError::to("list the tasks of runs"))
}

/// Returns the longest waits for a start within the last hours, in 60 steps, by the time at which the tasks were added; and true if older tasks of
/// these hours were not read.
pub async fn waits_by_minute(
    executor: impl PgExecutor<'_>,
    hours: i32,
) -> Result<(Vec<WaitMinute>, bool), StatementError> {
    let rows = sqlx::query!(
        r#"with near as materialized (select created_at, started_at from dalsegno.tasks order by id desc limit $1),
                steps as (
                  select floor(extract(epoch from clock_timestamp() - t.created_at) / (60 * $2))::integer * $2 as minutes_ago,
                         max(extract(epoch from t.started_at - t.created_at))::double precision as longest_secs
                    from near as t
                   where t.started_at is not null and t.created_at > clock_timestamp() - make_interval(hours => $2)
                     and t.created_at <= clock_timestamp()
                   group by 1)
           select read.is_cut as "is_cut!", steps.minutes_ago as "minutes_ago?", steps.longest_secs as "longest_secs?"
             from (select count(*) = $1 and min(created_at) > clock_timestamp() - make_interval(hours => $2) as is_cut from near) as read
                  left join steps on true
            order by steps.minutes_ago"#,
        MAX_WAITS_READ,
        hours,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("read the waits of the last hours"))?;
    let is_cut = rows.first().is_some_and(|row| row.is_cut);
    let minutes = rows.into_iter().filter_map(|row| {
        Some(WaitMinute { minutes_ago: row.minutes_ago?, longest_secs: row.longest_secs? })
    });
    Ok((minutes.collect(), is_cut))
}
