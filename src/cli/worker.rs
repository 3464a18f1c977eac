//! `dalsegno worker`, `worker-turns` and `worker-upkeep`: signals and telemetry; the work itself is `crate::worker`.

use std::io::Read as _;

use clap::{Args, ValueEnum};

use super::{Context, Exit, Failure, signals::under_signals};
use crate::{jobs::Pool, shutdown::Shutdown, telemetry, worker};

#[derive(Debug, Args)]
pub(super) struct Worker {
    pool: PoolName,
    /// Stops at once when its standard input ends, so that it does not outlive whoever holds the other end.
    #[arg(long)]
    stop_with_stdin: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum PoolName {
    /// Runs turns, which take minutes; few slots, slow drain.
    Turns,
    /// Runs short jobs.
    Upkeep,
}

pub(super) async fn run_named(worker: &Worker, context: &Context) -> Result<Exit, Failure> {
    let pool = match worker.pool {
        PoolName::Turns => Pool::Turns,
        PoolName::Upkeep => Pool::Upkeep,
    };
    let shutdown = Shutdown::new();
    if worker.stop_with_stdin {
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
    let worked = async {
        worker::run(config, &telemetry, shutdown.clone(), pool).await?;
        Ok(Exit::Ok)
    };
    under_signals(shutdown, drain_timeout, Box::pin(worked)).await
}

/// A thread of its own, which the end of the process takes along: a read of a terminal or a pipe cannot be called off.
fn stop_with_stdin(shutdown: Shutdown) {
    std::thread::spawn(move || {
        let mut buffer = [0; 64];
        // What is written there says nothing; only its end does.
        while matches!(std::io::stdin().read(&mut buffer), Ok(1..)) {}
        shutdown.hard.cancel();
    });
}
