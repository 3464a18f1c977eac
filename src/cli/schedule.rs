//! `dalsegno schedule`: schedules, which enqueue recurring jobs.

use chrono::{DateTime, TimeDelta, Utc};
use clap::{Args, Subcommand};
use serde_json::json;

use super::{
    Context, Exit, Failure,
    args::Question,
    audit::describe_fields,
    output::{Table, format_wrapped_fields, time_cell, time_cell_or_dash},
    server::{Server, with_server},
    words::{parse_period, secs, time, time_or_dash},
};
use crate::{
    domain::{schedules::Schedule, tasks::AddTask},
    operations::{
        ListSchedules, ManualRun, PauseSchedule, PutSchedule, RemoveSchedule, ResumeSchedule,
        RunSchedule, ScheduleDetail, ShowSchedule,
    },
};

/// Printed below an empty list.
const NO_SCHEDULES: &str = "no schedules: `dalsegno schedule add` adds one";

#[derive(Debug, Subcommand)]
pub(super) enum ScheduleCommand {
    /// Lists the schedules with their last and next run, the next one to run first.
    Ls,
    /// Shows one schedule.
    Show(Name),
    /// Adds or changes a schedule that adds a task at each of its times.
    #[command(
        override_usage = "dalsegno schedule add [OPTIONS] --agent <AGENT> --cron <CRON> <NAME> <PROMPT>"
    )]
    Add(Box<Add>),
    /// Removes a schedule. Tasks that it has added stay.
    Rm(Name),
    /// Runs a schedule now, in addition to its times.
    Run(Name),
    /// Pauses a schedule until it is resumed.
    Pause(Pause),
    /// Resumes a paused schedule. Times during the pause are not caught up.
    Resume(Name),
}

#[derive(Debug, Args)]
pub(super) struct Name {
    /// Name of the schedule: `dalsegno schedule ls` lists it.
    name: String,
}

#[derive(Debug, Args)]
pub(super) struct Add {
    /// Name of the schedule, new or existing.
    name: String,
    /// Second, minute, hour, day of month, month, day of week: "0 30 8 * * MON-FRI".
    #[arg(long)]
    cron: String,
    /// Time zone of these times, for example Europe/Berlin.
    #[arg(long, value_name = "ZONE", default_value = "UTC")]
    time_zone: String,
    /// Age up to which a missed time is caught up: 30m, 24h. Older ones are skipped.
    #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = parse_period)]
    catch_up: TimeDelta,
    #[command(flatten)]
    question: Question,
}

#[derive(Debug, Args)]
pub(super) struct Pause {
    /// Name of the schedule: `dalsegno schedule ls` lists it.
    name: String,
    /// Reason, shown with the paused schedule.
    #[arg(long, default_value = "by an operator")]
    reason: String,
}

pub(super) async fn run(command: &ScheduleCommand, context: &Context) -> Result<Exit, Failure> {
    with_server(context, async |server| run_on_server(command, context, server).await).await
}

async fn run_on_server(
    command: &ScheduleCommand,
    context: &Context,
    server: &Server,
) -> Result<Exit, Failure> {
    let output = context.output;
    match command {
        ScheduleCommand::Ls => {
            let mut schedules = server.call(ListSchedules {}).await?.items;
            schedules.sort_by_key(|schedule| {
                (schedule.next_slot.is_none(), schedule.next_slot, schedule.name.clone())
            });
            output.print_rows(&schedules, false, NO_SCHEDULES, || format_schedules(&schedules));
        }
        ScheduleCommand::Show(Name { name }) => {
            let schedule = server.call(ShowSchedule { name: name.clone() }).await?;
            output.print_data(&schedule, || format_schedule(&schedule));
        }
        ScheduleCommand::Add(add) => {
            let new = new(add, context, server).await?;
            let done = describe_put(&add.name, server).await;
            let schedule = server.call(new).await?;
            output.print_data(&schedule, || {
                let next = time_or_dash(schedule.next_slot);
                let (name, zone) = (&schedule.name, &schedule.time_zone);
                format!("schedule `{name}` is {done}, next at {next} UTC; its times are in the time zone {zone}")
            });
        }
        ScheduleCommand::Rm(Name { name }) => {
            server.call(RemoveSchedule { name: name.clone() }).await?;
            output.print_data(&json!({ "removed": name }), || {
                format!("schedule `{name}` is removed")
            });
        }
        ScheduleCommand::Run(Name { name }) => {
            let run = server.call(RunSchedule { name: name.clone() }).await?;
            let (job_id, state) = (run.job_id, &run.state);
            output.print_data(&run, || {
                format!("job {job_id} of `{name}` is {state}: a worker runs it; `dalsegno job explain {job_id}` shows its progress")
            });
        }
        ScheduleCommand::Pause(Pause { name, reason }) => {
            let pause = PauseSchedule { name: name.clone(), reason: reason.clone() };
            let schedule = server.call(pause).await?;
            output.print_data(&schedule, || format!("schedule `{name}` is paused"));
        }
        ScheduleCommand::Resume(Name { name }) => {
            let schedule = server.call(ResumeSchedule { name: name.clone() }).await?;
            output.print_data(&schedule, || {
                format!(
                    "schedule `{name}` is resumed, next at {} UTC",
                    time_or_dash(schedule.next_slot)
                )
            });
        }
    }
    Ok(Exit::Ok)
}

/// Returns the word for the effect of `schedule add`, which replaces an existing schedule. A failed read only makes the word less exact.
async fn describe_put(name: &str, server: &Server) -> &'static str {
    match server.call(ShowSchedule { name: name.to_owned() }).await {
        Ok(_) => "changed",
        Err(failure) if failure.exit == Exit::NotFound => "added",
        Err(_) => "stored",
    }
}

async fn new(add: &Add, context: &Context, server: &Server) -> Result<PutSchedule, Failure> {
    let question = &add.question;
    Ok(PutSchedule {
        name: add.name.clone(),
        cron: add.cron.clone(),
        time_zone: add.time_zone.clone(),
        catch_up_secs: secs(add.catch_up),
        task: AddTask {
            campaign_id: question.campaign.id(context, server).await?,
            agent: question.agent().to_owned(),
            instance: question.instance.clone(),
            prompt: question.prompt()?,
            session: question.session_mode(),
        },
    })
}

fn format_next(schedule: &Schedule, format_time: fn(DateTime<Utc>) -> String) -> String {
    match &schedule.pause_reason {
        Some(reason) => format!("paused: {reason}"),
        None => schedule.next_slot.map_or_else(|| "never".to_owned(), format_time),
    }
}

fn format_job(schedule: &Schedule) -> String {
    schedule.last_job_id.map_or_else(|| "-".to_owned(), |id| id.to_string())
}

fn format_schedules(schedules: &[Schedule]) -> String {
    let row = |schedule: &Schedule| {
        [
            schedule.name.clone(),
            schedule.cron.clone(),
            schedule.time_zone.clone(),
            schedule.kind.clone(),
            time_cell_or_dash(schedule.last_slot),
            format_job(schedule),
            format_next(schedule, time_cell),
        ]
    };
    let head = ["NAME", "WHEN", "ZONE", "JOB", "LAST DUE (UTC)", "ITS JOB", "NEXT (UTC)"];
    Table::new(&head).leaves_out(&["ITS JOB", "JOB"]).format(schedules.iter().map(row))
}

fn format_manual_run(run: &ManualRun) -> String {
    let job = run.job_id.map_or_else(String::new, |id| format!(", job {id}"));
    format!("{}{job}, by {}", time(run.at), run.actor)
}

fn format_schedule(ScheduleDetail { schedule, last_manual_run }: &ScheduleDetail) -> String {
    let by_hand = last_manual_run.as_ref().map_or_else(|| "-".to_owned(), format_manual_run);
    let payload = match describe_fields(&schedule.payload) {
        fields if fields.is_empty() => "-".to_owned(),
        fields => fields,
    };
    format_wrapped_fields(&[
        ("schedule", schedule.name.clone()),
        ("when", format!("{} {}", schedule.cron, schedule.time_zone)),
        ("job", schedule.kind.clone()),
        ("payload", payload),
        ("last due (UTC)", time_or_dash(schedule.last_slot)),
        ("its job", format_job(schedule)),
        ("by hand (UTC)", by_hand),
        ("next (UTC)", format_next(schedule, time)),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_payload_of_a_schedule_is_in_words() {
        let shown = |payload: serde_json::Value| {
            let schedule = serde_json::from_value(json!({
                "name": "news", "source": "user", "cron": "0 0 8 * * *", "time_zone": "UTC", "catch_up_secs": 60, "kind": "add_task",
                "queue": "upkeep", "lane": null, "payload": payload, "created_at": "2026-11-20T12:00:00Z", "paused_at": null,
                "pause_reason": null, "last_slot": null, "last_fired_at": null, "last_job_id": null, "next_slot": null
            }));
            format_schedule(&ScheduleDetail { schedule: schedule.unwrap(), last_manual_run: None })
        };
        let text = shown(json!({ "agent": "planner", "prompt": "Plan the\nweek." }));
        assert!(text.contains("  agent: planner, prompt: Plan the week.\n"), "{text}");
        let empty = shown(json!({}));
        assert!(empty.lines().any(|line| line.split_whitespace().eq(["payload", "-"])), "{empty}");
    }
}
