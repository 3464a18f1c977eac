//! `dalsegno worker`, `worker-turns` and `worker-upkeep`: signals and telemetry; the work itself is `crate::worker`.
//! `worker ls` lists the processes.

use std::{io::Read as _, str::FromStr};

use anyhow::anyhow;
use chrono::{DateTime, TimeDelta, Utc};
use clap::{Args, Subcommand};
use uuid::Uuid;

use super::{
    Context, Exit, Failure,
    output::{Table, clock_cell, format_fields, short_id, text_cell, time_cell, time_cell_or_dash},
    server::{Server, with_server},
    signals::run_under_signals,
    words::{Moment, parse_moment, time, time_or_dash},
};
use crate::{
    domain::{
        agents::Catalogue,
        ids::{self, NoId, PartialId},
        tasks::TaskLine,
    },
    jobs::Pool,
    operations::{ListWorkers, ShowWorkerActivity, WorkerActivity},
    queue::admin::{WorkerLoad, WorkerRun, WorkerView, outcome_words},
    shutdown::Shutdown,
    telemetry, worker,
};

/// Printed below an empty list.
const NO_WORKERS: &str =
    "no workers: `dalsegno serve` runs some, `dalsegno worker turns` runs one alone";

/// Newest workers among which a part of an id is searched.
const MAX_SEARCHED: i64 = 1_000;
/// Workers that an error names.
const MAX_NAMED: usize = 5;

#[derive(Debug, Subcommand)]
pub(super) enum WorkerCommand {
    /// Runs the pool of turns, whose jobs take minutes.
    Turns(Flags),
    /// Runs the pool of short jobs, such as webhooks, embeddings and cleanups, and fires schedules.
    Upkeep(Flags),
    /// Lists worker processes, the newest first; ended ones are listed for queue.keep.workers_days.
    Ls {
        /// Maximum number of workers, up to 1000.
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(i64).range(1..=1000))]
        limit: i64,
    },
    /// Shows what workers run now, and what they ran in the last minutes.
    Activity(Activity),
}

#[derive(Debug, Args)]
pub(super) struct Activity {
    /// Minutes to look back, up to 60.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(i64).range(1..=60))]
    minutes: i64,
    /// Looks back from this time instead of now: 2026-11-23T08:00:00Z, or 2h for two hours ago.
    #[arg(long, value_name = "TIME", value_parser = parse_moment)]
    until: Option<Moment>,
    /// Lists the runs of this worker with their tasks: its id, a unique beginning or end of it, or its pid. `dalsegno worker ls` lists them.
    /// If several workers have had this pid, the only one that still runs is meant.
    #[arg(long, value_name = "ID|PID")]
    worker: Option<GivenWorker>,
}

/// A worker as a person gives it: by its id, or by its pid if no other listed worker has it, or none that still runs.
#[derive(Debug, Clone)]
struct GivenWorker {
    text: String,
    id: Option<PartialId>,
    pid: Option<i32>,
}

impl FromStr for GivenWorker {
    type Err = NoId;

    fn from_str(text: &str) -> Result<Self, NoId> {
        let pid = text.parse::<i32>().ok().filter(|pid| *pid > 0);
        let id = match text.parse::<PartialId>() {
            Err(error) if pid.is_none() => return Err(error),
            id => id.ok(),
        };
        Ok(Self { text: text.to_owned(), id, pid })
    }
}

impl GivenWorker {
    fn matches(&self, worker: &WorkerView) -> bool {
        self.pid == Some(worker.pid) || self.id.as_ref().is_some_and(|id| id.matches(worker.id))
    }

    /// Finds the worker among all. Of several, it is the only one that still runs: a pid is used again. `Err`: all that match.
    fn find<'a>(&self, workers: &'a [WorkerView]) -> Result<&'a WorkerView, Vec<&'a WorkerView>> {
        let found: Vec<&WorkerView> = workers.iter().filter(|it| self.matches(it)).collect();
        let running: Vec<&WorkerView> =
            found.iter().copied().filter(|worker| worker.gone_at.is_none()).collect();
        let are_of_pid = found.iter().all(|worker| self.pid == Some(worker.pid));
        match (found.as_slice(), running.as_slice()) {
            (&[worker], _) => Ok(worker),
            (_, &[worker]) if are_of_pid => Ok(worker),
            _ => Err(found),
        }
    }
}

#[derive(Debug, Args)]
pub(super) struct Flags {
    /// Stops when its standard input ends, so that it does not outlive its parent process.
    #[arg(long)]
    stop_with_stdin: bool,
}

impl WorkerCommand {
    /// Returns true for commands that run as operations.
    pub(super) fn is_remote(&self) -> bool {
        matches!(self, Self::Ls { .. } | Self::Activity(_))
    }
}

pub(super) async fn run_named(command: &WorkerCommand, context: &Context) -> Result<Exit, Failure> {
    let (pool, flags) = match command {
        WorkerCommand::Turns(flags) => (Pool::Turns, flags),
        WorkerCommand::Upkeep(flags) => (Pool::Upkeep, flags),
        WorkerCommand::Ls { limit } => return list(*limit, context).await,
        WorkerCommand::Activity(activity) => return show_activity(activity, context).await,
    };
    let shutdown = Shutdown::new();
    if flags.stop_with_stdin {
        stop_with_stdin(shutdown.clone());
    }
    run_until(pool, context, &shutdown).await
}

pub(super) async fn run(pool: Pool, context: &Context) -> Result<Exit, Failure> {
    run_until(pool, context, &Shutdown::new()).await
}

async fn run_until(pool: Pool, context: &Context, shutdown: &Shutdown) -> Result<Exit, Failure> {
    let config = context.load()?;
    let (telemetry, drain_timeout) =
        (telemetry::init(&config.log)?, config.shutdown.drain_timeout());
    let file = config.file.as_ref().map(|file| file.display().to_string());
    tracing::info!(file = file.as_deref().unwrap_or("none"), "configuration file");
    let worked = async {
        worker::run(config, &telemetry, shutdown.clone(), pool).await?;
        Ok(Exit::Ok)
    };
    run_under_signals(shutdown, drain_timeout, Box::pin(worked)).await
}

async fn list(limit: i64, context: &Context) -> Result<Exit, Failure> {
    with_server(context, async |server| {
        let page = |cursor: Option<String>, limit| ListWorkers {
            cursor: cursor.and_then(|cursor| cursor.parse().ok()),
            limit: Some(limit),
        };
        let workers = server.items(limit, page).await?;
        context.output.print_rows(&workers, false, NO_WORKERS, || format_workers(&workers));
        Ok(Exit::Ok)
    })
    .await
}

async fn show_activity(flags: &Activity, context: &Context) -> Result<Exit, Failure> {
    let Activity { minutes, until, worker } = flags;
    with_server(context, async |server| {
        let worker_id = match worker {
            Some(given) => Some(find_worker(given, server).await?),
            None => None,
        };
        let until = until.map(|until| until.at);
        let show = ShowWorkerActivity { minutes: Some(*minutes), until, worker_id };
        let activity = server.call(show).await?;
        context.output.print_data(&activity, || {
            let end = until.unwrap_or(activity.since + TimeDelta::minutes(*minutes));
            match worker_id {
                Some(_) => format_runs(&activity, end, &context.catalogue()),
                None => format_activity(&activity, until),
            }
        });
        match worker_id {
            Some(id) if activity.workers.is_empty() => context.output.print_note(&format!(
                "worker {id} did not live at that time: `dalsegno worker ls` lists all"
            )),
            Some(_) if activity.runs.is_empty() => {
                context.output.print_note("no runs: `--minutes` and `--until` show another time");
            }
            _ => {}
        }
        Ok(Exit::Ok)
    })
    .await
}

/// Finds a worker among the newest by a part of its id, or by its pid.
async fn find_worker(given: &GivenWorker, server: &Server) -> Result<Uuid, Failure> {
    if let Some(id) = given.id.as_ref().and_then(PartialId::whole) {
        return Ok(id);
    }
    let page = |cursor: Option<String>, limit| ListWorkers {
        cursor: cursor.and_then(|cursor| cursor.parse().ok()),
        limit: Some(limit),
    };
    let workers = server.items(MAX_SEARCHED, page).await?;
    let text = &given.text;
    match given.find(&workers) {
        Ok(worker) => Ok(worker.id),
        Err(several) if several.is_empty() => {
            let error = anyhow!(
                "none of the newest {MAX_SEARCHED} workers matches `{text}`: `dalsegno worker ls` lists them"
            );
            Err(Failure::new(Exit::NotFound, error))
        }
        Err(several) => {
            let error = anyhow!(
                "more than one worker matches `{text}`: write the id of one: {}",
                format_several(&several)
            );
            Err(Failure::new(Exit::Usage, error))
        }
    }
}

/// Lists the newest of some workers, in their order, by their ids and hosts.
fn format_several(workers: &[&WorkerView]) -> String {
    let name = |worker: &&WorkerView| {
        let gone = worker.gone_at.map_or_else(String::new, |at| format!(", gone at {}", time(at)));
        format!("{} on {}{gone}", short_id(worker.id), worker.host)
    };
    let mut names: Vec<String> = workers.iter().take(MAX_NAMED).map(name).collect();
    let n_more = workers.len() - names.len();
    if n_more > 0 {
        names.push(format!("{n_more} more that `dalsegno worker ls` lists"));
    }
    names.join("; ")
}

/// Returns the command that lists what a worker runs, or what it ran around the end of a run.
pub(super) fn activity_command(worker: Uuid, ended_at: Option<DateTime<Utc>>) -> String {
    let mut command = format!("dalsegno worker activity --worker {}", ids::short(worker));
    if let Some(ended_at) = ended_at {
        // The run ended within the second.
        let until = ended_at + TimeDelta::seconds(1);
        command.push_str(&format!(" --until {}", until.format("%FT%TZ")));
    }
    command
}

/// Formats one worker and its runs in the span that ends then.
fn format_runs(activity: &WorkerActivity, end: DateTime<Utc>, catalogue: &Catalogue) -> String {
    let worker = |worker: &WorkerLoad| {
        let state = worker.gone_reason.clone().unwrap_or_else(|| "runs".to_owned());
        format_fields(&[
            ("worker", worker.id.to_string()),
            ("host", worker.host.clone()),
            ("pid", worker.pid.to_string()),
            ("queues", worker.queues.join(",")),
            ("started", time(worker.started_at)),
            ("gone", time_or_dash(worker.gone_at)),
            ("state", state),
            ("runs", format!("{} to {} UTC", time(activity.since), time(end))),
        ])
    };
    let row = |run: &WorkerRun| {
        let task = activity.tasks.iter().find(|task| task.job_id == run.job_id);
        let of_task =
            |text: &dyn Fn(&TaskLine) -> String| task.map_or_else(|| "-".to_owned(), text);
        [
            run.job_id.to_string(),
            run.kind.clone(),
            of_task(&|task: &TaskLine| short_id(task.id)),
            of_task(&|task: &TaskLine| catalogue.format_name(&task.agent, &task.instance)),
            clock_cell(run.started_at, end),
            run.ended_at.map_or_else(|| "-".to_owned(), |at| clock_cell(at, end)),
            outcome_words(run.outcome.as_deref().unwrap_or("runs")).to_owned(),
            of_task(&|task: &TaskLine| text_cell(&task.prompt)),
        ]
    };
    let head =
        ["JOB", "KIND", "TASK", "AGENT", "STARTED (UTC)", "ENDED (UTC)", "OUTCOME", "PROMPT"];
    let least = ["PROMPT", "KIND", "STARTED (UTC)"];
    let runs = Table::new(&head).leaves_out(&least).format(activity.runs.iter().map(row));
    let workers: String = activity.workers.iter().map(worker).collect();
    format!("{workers}\n{runs}").trim_start().to_owned()
}

fn format_activity(activity: &WorkerActivity, until: Option<DateTime<Utc>>) -> String {
    let row = |worker: &WorkerLoad| {
        let own = || activity.runs.iter().filter(|run| run.worker_id == worker.id);
        let running = own().filter(|run| run.ended_at.is_none());
        let running: Vec<_> = running.map(|run| format!("{} {}", run.kind, run.job_id)).collect();
        [
            short_id(worker.id),
            worker.host.clone(),
            worker.pid.to_string(),
            format!("{} of {}", running.len(), worker.slots),
            own().filter(|run| run.ended_at.is_some()).count().to_string(),
            until.map_or_else(
                || time_cell(worker.lease_until),
                |until| clock_cell(worker.lease_until, until),
            ),
            running.join(", "),
        ]
    };
    let head = ["ID", "HOST", "PID", "SLOTS", "ENDED", "LEASE UNTIL (UTC)", "RUNS"];
    let table = Table::new(&head).leaves_out(&["LEASE UNTIL (UTC)"]);
    table.format(activity.workers.iter().map(row))
}

fn format_workers(workers: &[WorkerView]) -> String {
    let row = |worker: &WorkerView| {
        [
            short_id(worker.id),
            worker.host.clone(),
            worker.pid.to_string(),
            worker.queues.join(","),
            time_cell(worker.started_at),
            time_cell_or_dash(worker.gone_at),
            worker.gone_reason.clone().unwrap_or_else(|| "runs".to_owned()),
        ]
    };
    let head = ["ID", "HOST", "PID", "QUEUES", "STARTED (UTC)", "GONE (UTC)", "STATE"];
    Table::new(&head).leaves_out(&["STARTED (UTC)"]).format(workers.iter().map(row))
}

/// Watches the standard input in a thread, because reading a terminal or a pipe cannot be cancelled. The thread ends
/// with the process.
fn stop_with_stdin(shutdown: Shutdown) {
    std::thread::spawn(move || {
        let mut buffer = [0; 64];
        // Ignores the data; only the end counts.
        while matches!(std::io::stdin().read(&mut buffer), Ok(1..)) {}
        shutdown.hard.cancel();
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_is_given_by_its_id_or_its_pid() {
        let worker: WorkerView = serde_json::from_value(serde_json::json!({
            "id": "01a222e8-64f9-71bc-81fb-68c265d94ece", "host": "a", "pid": 4711, "started_at": "2026-11-28T12:00:00Z",
            "queues": [], "gone_at": null, "gone_reason": null
        }))
        .unwrap();
        let matches = |text: &str| text.parse::<GivenWorker>().unwrap().matches(&worker);
        assert!(matches("4711") && matches("68c265d94ece") && matches("01a222e8"));
        assert!(!matches("471") && !matches("68c265d94ecf"));
        assert!("host-a".parse::<GivenWorker>().is_err());
    }

    #[test]
    fn a_pid_of_several_workers_means_the_only_one_that_runs() {
        let worker = |id: u128, host: &str, gone_at: Option<&str>| -> WorkerView {
            serde_json::from_value(serde_json::json!({
                "id": Uuid::from_u128(id), "host": host, "pid": 7, "started_at": "2026-11-28T12:00:00Z", "queues": [], "gone_at": gone_at,
                "gone_reason": gone_at.map(|_| "stopped")
            }))
            .unwrap()
        };
        let gone = Some("2026-11-28T12:30:00Z");
        let given: GivenWorker = "7".parse().unwrap();
        let one = [worker(1, "a", gone), worker(2, "b", None), worker(3, "c", gone)];
        assert_eq!(given.find(&one).unwrap().id, Uuid::from_u128(2));
        assert_eq!(given.find(&one[..1]).unwrap().id, Uuid::from_u128(1), "a retired one is found");
        let two = [worker(1, "a", None), worker(2, "b", None), worker(3, "c", gone)];
        let several = format_several(&given.find(&two).unwrap_err());
        assert!(several.starts_with("000000000001 on a; 000000000002 on b; "), "{several}");
        assert!(several.ends_with("000000000003 on c, gone at 2026-11-28 12:30:00"), "{several}");
        let many: Vec<WorkerView> = (1..=7).map(|id| worker(id, "a", gone)).collect();
        let several = format_several(&given.find(&many).unwrap_err());
        assert!(several.ends_with("; 2 more that `dalsegno worker ls` lists"), "{several}");
    }
}
