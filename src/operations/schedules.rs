//! Schedules: recurring tasks and jobs.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx::PgConnection;

use super::{
    Call, Change, ChangeOutput, ChangeResult, Method, Operation, Refusal, Spec, Success, by_request,
};
use crate::domain::{
    agents::{AgentInstance, LookupError},
    amount,
    audit::{self, Action},
    campaigns,
    class::{BAD_ARGUMENT, BAD_VALUE, NUL_IN_TEXT},
    objects,
    schedules::{self, Error, RecurringTime, Schedule},
    tasks::{self, AddTask},
    text,
};

const TAG: &str = "schedules";

/// Lists the schedules.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ListSchedules {}

/// All schedules: there are a handful.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Schedules {
    pub items: Vec<Schedule>,
}

/// Shows one schedule.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ShowSchedule {
    pub name: String,
}

/// A schedule with its latest run by hand.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ScheduleDetail {
    #[serde(flatten)]
    pub schedule: Schedule,
    /// The latest run in addition to its times. Null: the audit log has none.
    pub last_manual_run: Option<ManualRun>,
}

/// A run of a schedule in addition to its times.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ManualRun {
    pub at: DateTime<Utc>,
    pub job_id: Option<i64>,
    /// The caller who has started it, as in the audit log.
    pub actor: String,
}

/// Adds or changes a schedule that adds a task at each of its times.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = RecurringTask, example = json!({ "cron": "0 30 7 * * Mon", "time_zone": "Europe/Berlin", "task": { "campaign_id": "00000000-0000-0000-0000-000000000000", "agent": "copywriter", "prompt": "Plan the week." } }))]
pub struct PutSchedule {
    pub name: String,
    /// Second, minute, hour, day of month, month, day of week.
    pub cron: String,
    #[serde(default = "utc")]
    pub time_zone: String,
    /// Seconds after a missed moment during which the task is still added.
    #[serde(default = "an_hour")]
    #[schema(minimum = 1, maximum = 2147483647)]
    pub catch_up_secs: u32,
    #[serde(deserialize_with = "objects::object")]
    pub task: AddTask,
}

/// Removes a schedule; the tasks that it has added stay.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RemoveSchedule {
    pub name: String,
}

/// Runs a schedule now, in addition to its times.
///
/// A worker runs the job; its state shows the progress.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RunSchedule {
    pub name: String,
}

#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = AcceptedRun)]
pub struct ScheduleRun {
    pub schedule: String,
    pub job_id: i64,
    /// Of the job.
    pub state: String,
}

/// Skips the moments of a schedule until it is resumed.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PauseSchedule {
    pub name: String,
    /// Shown with the schedule while it is paused.
    #[serde(default = "by_request")]
    pub reason: String,
}

/// Ends a pause. Moments that fell into it are not caught up.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResumeSchedule {
    pub name: String,
}

impl Operation for ListSchedules {
    const SPEC: Spec = Spec::read("list_schedules", "/v1/schedules", "schedule ls").tag(TAG);
    type Output = Schedules;

    async fn run(self, call: &Call) -> Result<Schedules, Refusal> {
        Ok(Schedules { items: schedules::list(&call.pool, call.now).await? })
    }
}

impl Operation for ShowSchedule {
    const SPEC: Spec = Spec::read("show_schedule", "/v1/schedules/{name}", "schedule show")
        .tag(TAG)
        .refuses(&[Error::UNKNOWN]);
    type Output = ScheduleDetail;

    async fn run(self, call: &Call) -> Result<ScheduleDetail, Refusal> {
        let schedule = schedules::get(&call.pool, &self.name, call.now).await?;
        let last_manual_run = last_manual_run(call, &self.name).await?;
        Ok(ScheduleDetail { schedule, last_manual_run })
    }
}

/// Finds the latest run by hand. It has no slot, so only the audit log knows of it.
async fn last_manual_run(call: &Call, name: &str) -> Result<Option<ManualRun>, Refusal> {
    let subjects = [name.to_owned()];
    let newest = audit::last_of_each(&call.pool, &subjects, &[Action::ScheduleRun]).await?;
    let entry = newest.into_iter().next();
    Ok(entry.map(|entry| ManualRun {
        at: entry.at,
        job_id: entry.data["job_id"].as_i64(),
        actor: entry.actor,
    }))
}

impl Change for PutSchedule {
    const SPEC: Spec = Spec::change("put_schedule", "/v1/schedules/{name}", "schedule add")
        .tag(TAG)
        .by(Method::Put)
        .refuses(&[
            LookupError::UNKNOWN_AGENT,
            campaigns::Error::UNKNOWN,
            Error::BUILT_IN,
            campaigns::Error::CLOSED,
            amount::Refusal::CLASS,
            LookupError::BROKEN_AGENT,
            text::Error::TOO_LONG,
            Error::INVALID,
            BAD_VALUE,
            tasks::Error::BAD_INSTANCE,
            text::Error::EMPTY,
            NUL_IN_TEXT,
            BAD_ARGUMENT,
        ]);
    const ACTION: Action = Action::SchedulePut;
    type Output = Schedule;

    async fn change(self, conn: &mut PgConnection, call: &Call) -> ChangeResult<Schedule> {
        let Self { name, cron, time_zone, catch_up_secs, task } = self;
        let catalogue = call.catalogue()?;
        let AgentInstance { agent, instance } =
            catalogue.resolve_addressee(&task.agent, &task.instance)?;
        // Stored under its resolved name, because a file with the name as written may be added later.
        let task =
            AddTask { agent: agent.name.clone(), instance: instance.to_owned(), ..task.clone() };
        let when = RecurringTime { cron: &cron, time_zone: &time_zone, catch_up_secs };
        let config = &call.config.tasks;
        let output =
            schedules::put_task(conn, config, &name, when, (&task, agent), call.now).await?;
        let data = json!({ "cron": cron, "time_zone": time_zone, "agent": task.agent,
                           "campaign_id": task.campaign_id });
        Ok(ChangeOutput::of(name, output, data))
    }
}

impl Change for RemoveSchedule {
    const SPEC: Spec = Spec::change("remove_schedule", "/v1/schedules/{name}", "schedule rm")
        .tag(TAG)
        .by(Method::Delete)
        .answers(Success::NoContent)
        .refuses(&[Error::UNKNOWN, Error::BUILT_IN]);
    const ACTION: Action = Action::ScheduleRemove;
    type Output = ();

    async fn change(self, conn: &mut PgConnection, call: &Call) -> ChangeResult<()> {
        schedules::remove(conn, &self.name, call.now).await?;
        Ok(ChangeOutput::of(self.name, (), json!({})))
    }
}

impl Change for RunSchedule {
    const SPEC: Spec = Spec::change("run_schedule", "/v1/schedules/{name}/run", "schedule run")
        .tag(TAG)
        .answers(Success::Accepted)
        .refuses(&[Error::UNKNOWN]);
    const ACTION: Action = Action::ScheduleRun;
    type Output = ScheduleRun;

    async fn change(self, conn: &mut PgConnection, call: &Call) -> ChangeResult<ScheduleRun> {
        let job = schedules::run(conn, &self.name, &call.actor.label()).await?;
        let data = json!({ "job_id": job.job_id });
        let output =
            ScheduleRun { schedule: self.name.clone(), job_id: job.job_id, state: job.state };
        Ok(ChangeOutput::of(self.name, output, data))
    }
}

impl Change for PauseSchedule {
    const SPEC: Spec =
        Spec::change("pause_schedule", "/v1/schedules/{name}/pause", "schedule pause")
            .tag(TAG)
            .refuses(&[Error::UNKNOWN, NUL_IN_TEXT]);
    const ACTION: Action = Action::SchedulePause;
    type Output = Schedule;

    async fn change(self, conn: &mut PgConnection, call: &Call) -> ChangeResult<Schedule> {
        let output = schedules::pause(conn, &self.name, &self.reason, call.now).await?;
        Ok(ChangeOutput::of(self.name, output, json!({ "reason": self.reason })))
    }
}

impl Change for ResumeSchedule {
    const SPEC: Spec =
        Spec::change("resume_schedule", "/v1/schedules/{name}/resume", "schedule resume")
            .tag(TAG)
            .refuses(&[Error::UNKNOWN]);
    const ACTION: Action = Action::ScheduleResume;
    type Output = Schedule;

    async fn change(self, conn: &mut PgConnection, call: &Call) -> ChangeResult<Schedule> {
        let output = schedules::resume(conn, &self.name, call.now).await?;
        Ok(ChangeOutput::of(self.name, output, json!({})))
    }
}

fn utc() -> String {
    "UTC".to_owned()
}

fn an_hour() -> u32 {
    3_600
}
