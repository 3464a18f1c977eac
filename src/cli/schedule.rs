//! `dalsegno schedule`: what is done again and again.

use clap::{Args, Subcommand};
use serde_json::json;

use super::{
    Context, Exit, Failure,
    database::with_database,
    output::table,
    words::{time, time_or_dash},
};
use crate::{
    clock::{Clock as _, SystemClock},
    db::{Database, Use},
    domain::{
        schedules::{self, Schedule},
        transaction::{begin, commit},
    },
};

#[derive(Debug, Subcommand)]
pub(super) enum ScheduleCommand {
    /// Lists the schedules with their last and next moments.
    Ls,
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
    let (output, now) = (context.output, SystemClock.now());
    let mut tx = begin(&database.pool).await?;
    match command {
        ScheduleCommand::Ls => {
            let schedules = schedules::list(&mut *tx, now).await?;
            output.data(&schedules, || lines(&schedules));
        }
        ScheduleCommand::Run(Name { name }) => {
            let job = schedules::run(&mut tx, name).await?;
            commit(tx).await?;
            let (job_id, state) = (job.job_id, job.state);
            let done = json!({ "schedule": name, "job_id": job_id, "state": state });
            output.data(&done, || format!("job {job_id} of `{name}` is {state}; `dalsegno job explain {job_id}` says how it stands"));
        }
        ScheduleCommand::Pause(Pause { name, reason }) => {
            let schedule = schedules::pause(&mut tx, name, reason, now).await?;
            commit(tx).await?;
            output.data(&schedule, || format!("`{name}` is paused"));
        }
        ScheduleCommand::Resume(Name { name }) => {
            let schedule = schedules::resume(&mut tx, name, now).await?;
            commit(tx).await?;
            output.data(&schedule, || {
                format!("`{name}` goes on, next at {} UTC", time_or_dash(schedule.next_slot))
            });
        }
    }
    Ok(Exit::Ok)
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
