//! `worker-turns` and `worker-upkeep`: signals and telemetry; the work itself is `crate::worker`.

use super::{Context, Exit, Failure, signals::under_signals};
use crate::{
    shutdown::Shutdown,
    telemetry,
    worker::{self, Pool},
};

pub(super) async fn run(pool: Pool, context: &Context) -> Result<Exit, Failure> {
    let config = context.load()?;
    telemetry::init(&config.log)?;
    let shutdown = Shutdown::new();
    let worked = async {
        worker::run(&config, shutdown.clone(), pool).await?;
        Ok(Exit::Ok)
    };
    under_signals(&shutdown, config.shutdown.drain_timeout(), Box::pin(worked)).await
}
