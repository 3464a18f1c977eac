//! `dalsegno serve`: signals, telemetry and the words at the start; the service itself is `crate::serve`.

use super::{Context, Exit, Failure};
use crate::{
    serve::{self, Ready},
    shutdown::Shutdown,
    telemetry,
};

pub(super) async fn run(context: &Context) -> Result<Exit, Failure> {
    let config = context.load()?;
    let telemetry = telemetry::init(&config.log)?;
    let shutdown = Shutdown::new();
    let signals = tokio::spawn(shutdown.clone().on_signals(config.shutdown.drain_timeout()));
    let announce = |ready: &Ready| context.output.data(ready, || words(ready));
    let served = serve::serve(config, &telemetry, shutdown, announce).await;
    signals.abort();
    served?;
    Ok(Exit::Ok)
}

fn words(ready: &Ready) -> String {
    format!(
        "dalsegno {} is ready\n  address   {}\n  data      {}\n  database  {}\n  stop      Ctrl-C\n",
        ready.version, ready.address, ready.data_dir, ready.database
    )
}
