//! `dalsegno worker`, `worker-turns` and `worker-upkeep`: signals and telemetry; the work itself is `crate::worker`.
//! `worker ls` lists the processes.

use std::io::Read as _;

use clap::{Args, Subcommand};

use super::{
    Context, Exit, Failure,
    output::{format_table, time_cell, time_cell_or_dash},
    server::with_server,
    signals::run_under_signals,
};
use crate::{
    jobs::Pool,
    operations::{ListWorkers, ShowWorkerActivity, WorkerActivity},
    queue::admin::{WorkerLoad, WorkerView},
    shutdown::Shutdown,
    telemetry, worker,
};

/// Printed below an empty list.
const NO_WORKERS: &str =
    "no workers: `dalsegno serve` runs some, `dalsegno worker turns` runs one alone";

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
    Activity {
        /// Minutes to look back, up to 60.
        #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(i64).range(1..=60))]
        minutes: i64,
    },
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
        matches!(self, Self::Ls { .. } | Self::Activity { .. })
    }
}

pub(super) async fn run_named(command: &WorkerCommand, context: &Context) -> Result<Exit, Failure> {
    let (pool, flags) = match command {
        WorkerCommand::Turns(flags) => (Pool::Turns, flags),
        WorkerCommand::Upkeep(flags) => (Pool::Upkeep, flags),
        WorkerCommand::Ls { limit } => return list(*limit, context).await,
        WorkerCommand::Activity { minutes } => return show_activity(*minutes, context).await,
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

async fn show_activity(minutes: i64, context: &Context) -> Result<Exit, Failure> {
    with_server(context, async |server| {
        let activity = server.call(ShowWorkerActivity { minutes: Some(minutes) }).await?;
        context.output.print_data(&activity, || format_activity(&activity));
        Ok(Exit::Ok)
    })
    .await
}

fn format_activity(activity: &WorkerActivity) -> String {
    let row = |worker: &WorkerLoad| {
        let own = || activity.runs.iter().filter(|run| run.worker_id == worker.id);
        let running = own().filter(|run| run.ended_at.is_none());
        let running: Vec<_> = running.map(|run| format!("{} {}", run.kind, run.job_id)).collect();
        [
            worker.host.clone(),
            worker.pid.to_string(),
            format!("{} of {}", running.len(), worker.slots),
            own().filter(|run| run.ended_at.is_some()).count().to_string(),
            time_cell(worker.lease_until),
            running.join(", "),
        ]
    };
    let head = ["HOST", "PID", "SLOTS", "ENDED", "LEASE UNTIL (UTC)", "RUNS"];
    format_table(&head, activity.workers.iter().map(row))
}

fn format_workers(workers: &[WorkerView]) -> String {
    let row = |worker: &WorkerView| {
        [
            worker.host.clone(),
            worker.pid.to_string(),
            worker.queues.join(","),
            time_cell(worker.started_at),
            time_cell_or_dash(worker.gone_at),
            worker.gone_reason.clone().unwrap_or_else(|| "runs".to_owned()),
        ]
    };
    let head = ["HOST", "PID", "QUEUES", "STARTED (UTC)", "GONE (UTC)", "STATE"];
    format_table(&head, workers.iter().map(row))
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
