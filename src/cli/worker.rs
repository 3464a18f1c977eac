//! `worker-turns` and `worker-upkeep`: signals and telemetry; the work itself is `crate::worker`.

use super::{Context, Exit, Failure};
use crate::{
    shutdown::Shutdown,
    telemetry,
    worker::{self, Pool},
};

pub(super) async fn run(pool: Pool, context: &Context) -> Result<Exit, Failure> {
    let config = context.load()?;
    let _telemetry = telemetry::init(&config.log)?;
    let shutdown = Shutdown::new();
    let signals = tokio::spawn(shutdown.clone().on_signals(config.shutdown.drain_timeout()));
    let ended = worker::run(&config, shutdown, pool).await;
    signals.abort();
    ended?;
    Ok(Exit::Ok)
}
