//! `dalsegno schedule`: what is done again and again.

use clap::{Args, Subcommand};
use serde_json::json;
use sqlx::PgConnection;

use super::{
    Context, Exit, Failure,
    args::Question,
    database::with_database,
    output::table,
    words::{time, time_or_dash},
};
use crate::{
    clock::{Clock as _, SystemClock},
    db::{Database, Use},
    domain::{
        agents::Addressed,
        audit::{self, Action},
        campaigns,
        schedules::{self, Schedule, When},
        tasks::AddTask,
        transaction::{begin, commit},
    },
};

#[derive(Debug, Subcommand)]
pub(super) enum ScheduleCommand {
    /// Lists the schedules with their last and next moments.
    Ls,
    /// Has a task asked for again and again, or changes that. A worker adds it at each moment.
    Add(Box<Add>),
    /// Forgets a schedule. Tasks that it has added stay.
    Rm(Name),
    /// Enqueues the job of a schedule now. Its moments stay as they are.
    Run(Name),
    /// Enqueues nothing more until it is resumed.
    Pause(Pause),
    /// Ends a pause. What fell into it is not caught up.
    Resume(Name),
}

#[derive(Debug, Args)]
pub(super) struct Name {
    name: String,
}

#[derive(Debug, Args)]
pub(super) struct Add {
    name: String,
    /// Second, minute, hour, day of month, month, day of week: "0 30 8 * * MON-FRI".
    #[arg(long)]
    cron: String,
    /// Whose wall clocks that means.
    #[arg(long, value_name = "ZONE", default_value = "UTC")]
    time_zone: String,
    /// How long after its moment the task is still asked for, if no process was there at the moment itself. All such moments are.
    #[arg(long, value_name = "SECONDS", default_value_t = 3600)]
    catch_up_secs: u32,
    #[command(flatten)]
    question: Question,
}

#[derive(Debug, Args)]
pub(super) struct Pause {
    name: String,
    /// Why, for whoever finds it paused.
    #[arg(long, default_value = "by an operator")]
    reason: String,
}

pub(super) async fn run(command: &ScheduleCommand, context: &Context) -> Result<Exit, Failure> {
    with_database(context, Use::Look, async |database| on(command, context, database).await).await
}

async fn on(
    command: &ScheduleCommand,
    context: &Context,
    database: &Database,
) -> Result<Exit, Failure> {
    let (output, who, now) = (context.output, context.who(), SystemClock.now());
    let mut tx = begin(&database.pool).await?;
    match command {
        ScheduleCommand::Ls => {
            let schedules = schedules::list(&mut *tx, now).await?;
            output.data(&schedules, || lines(&schedules));
        }
        ScheduleCommand::Add(add) => {
            let schedule = put(add, context, &mut tx).await?;
            let data = json!({ "cron": add.cron, "time_zone": add.time_zone, "agent": add.question.agent(),
                               "campaign_id": schedule.payload["campaign_id"] });
            audit::write(&mut *tx, &who, Action::SchedulePut, &add.name, data, now).await?;
            commit(tx).await?;
            output.data(&schedule, || {
                let next = time_or_dash(schedule.next_slot);
                format!("`{}` is written down, next at {next} UTC", schedule.name)
            });
        }
        ScheduleCommand::Rm(Name { name }) => {
            schedules::remove(&mut tx, name, now).await?;
            audit::write(&mut *tx, &who, Action::ScheduleRemove, name, json!({}), now).await?;
            commit(tx).await?;
            output.data(&json!({ "removed": name }), || format!("`{name}` is forgotten"));
        }
        ScheduleCommand::Run(Name { name }) => {
            let job = schedules::run(&mut tx, name).await?;
            let data = json!({ "job_id": job.job_id });
            audit::write(&mut *tx, &who, Action::ScheduleRun, name, data, now).await?;
            commit(tx).await?;
            let (job_id, state) = (job.job_id, job.state);
            let done = json!({ "schedule": name, "job_id": job_id, "state": state });
            output.data(&done, || format!("job {job_id} of `{name}` is {state}; `dalsegno job explain {job_id}` says how it stands"));
        }
        ScheduleCommand::Pause(Pause { name, reason }) => {
            let schedule = schedules::pause(&mut tx, name, reason, now).await?;
            let data = json!({ "reason": reason });
            audit::write(&mut *tx, &who, Action::SchedulePause, name, data, now).await?;
            commit(tx).await?;
            output.data(&schedule, || format!("`{name}` is paused"));
        }
        ScheduleCommand::Resume(Name { name }) => {
            let schedule = schedules::resume(&mut tx, name, now).await?;
            audit::write(&mut *tx, &who, Action::ScheduleResume, name, json!({}), now).await?;
            commit(tx).await?;
            output.data(&schedule, || {
                format!("`{name}` goes on, next at {} UTC", time_or_dash(schedule.next_slot))
            });
        }
    }
    Ok(Exit::Ok)
}

async fn put(add: &Add, context: &Context, conn: &mut PgConnection) -> Result<Schedule, Failure> {
    let config = context.load()?;
    let catalogue = context.agents(&config.agents)?;
    let question = &add.question;
    let Addressed { agent, instance } =
        catalogue.addressed(question.agent(), &question.instance)?;
    let task = AddTask {
        campaign_id: campaigns::find(&mut *conn, &question.campaign).await?,
        agent: agent.name.clone(),
        instance: instance.to_owned(),
        prompt: question.prompt()?,
        session: question.session_mode(),
    };
    let when =
        When { cron: &add.cron, time_zone: &add.time_zone, catch_up_secs: add.catch_up_secs };
    let now = SystemClock.now();
    Ok(schedules::put_task(conn, &config.tasks, &add.name, when, (&task, agent), now).await?)
}

fn lines(schedules: &[Schedule]) -> String {
    let row = |schedule: &Schedule| {
        let next = match &schedule.pause_reason {
            Some(reason) => format!("paused: {reason}"),
            None => schedule.next_slot.map_or_else(|| "never".to_owned(), time),
        };
        [
            schedule.name.clone(),
            schedule.cron.clone(),
            schedule.time_zone.clone(),
            schedule.kind.clone(),
            time_or_dash(schedule.last_slot),
            schedule.last_job_id.map_or_else(|| "-".to_owned(), |id| id.to_string()),
            next,
        ]
    };
    let head = ["NAME", "WHEN", "ZONE", "JOB", "LAST (UTC)", "ITS JOB", "NEXT (UTC)"];
    table(&head, schedules.iter().map(row))
}
