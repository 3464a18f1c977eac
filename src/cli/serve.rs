//! `dalsegno serve`: signals, telemetry and the start message. The service itself is `crate::serve`.

use super::{Context, Exit, Failure, signals::run_under_signals};
use crate::{
    serve::{self, Ready},
    shutdown::Shutdown,
    telemetry,
};

pub(super) async fn run(context: &Context) -> Result<Exit, Failure> {
    let config = context.load()?;
    let telemetry = telemetry::init(&config.log)?;
    let (shutdown, drain_timeout) = (Shutdown::new(), config.shutdown.drain_timeout());
    let announce = |ready: &Ready| context.output.print_data(ready, || format_ready(ready));
    let served = async {
        serve::serve(config, &telemetry, shutdown.clone(), announce).await?;
        Ok(Exit::Ok)
    };
    run_under_signals(&shutdown, drain_timeout, Box::pin(served)).await
}

fn format_ready(ready: &Ready) -> String {
    let Ready { version, console, address, config, data_dir, database } = ready;
    let config =
        config.as_deref().unwrap_or("built-in defaults; a dalsegno.toml here would be read");
    let data = data_dir.as_ref().map(|data_dir| format!("  data      {data_dir}\n"));
    format!(
        "dalsegno {version} is ready\n  console   {console}\n  address   {address}\n  config    {config}\n{}  database  {database}\n  stop      Ctrl-C\n",
        data.unwrap_or_default()
    )
}
