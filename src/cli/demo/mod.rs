//! `dalsegno demo`: a planner, three writers and a reviewer work on a campaign's board with the simulated model.
//! Meanwhile a worker is killed, a conversation is compacted and a session expires.
//!
//! ```text
//! stage    a folder, a private Postgres in it, three worker processes   nothing of the user's is touched
//! play     posts in, the feed out; kill -9, expiry                      the service does the rest by its own rules
//! report   evidence from the tables, checks on it, words or JSON
//! strike   workers, server, folder: on every way out, a signal included; after a kill, by the next demo
//! ```
//!
//! All output comes from the run: lines from the feed, figures and checks from the tables.

mod checks;
mod demo_tasks;
mod display;
mod evidence;
mod folder;
mod report;
mod script;
mod sequence;
mod settings;
mod setup;
mod watch;
mod words;
mod workers;

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use self::{
    display::Display,
    evidence::Evidence,
    folder::{Folder, clear_leftovers},
    report::Report,
    sequence::DemoScript,
    settings::Settings,
    setup::DemoSetup,
};
use super::{Context, Exit, Failure, signals::run_under_signals};
use crate::{clock::SystemClock, shutdown::Shutdown, telemetry};

pub(super) async fn run(context: &Context) -> Result<Exit, Failure> {
    let folder = Folder::make(&context.environment)?;
    let settings = Settings::in_folder(folder.path(), context)?;
    let log = telemetry::Config {
        // The display shows the events; the log adds warnings only.
        filter: "warn,sqlx=error".to_owned(),
        ..settings.config.log.clone()
    };
    telemetry::init(&log)?;
    let shutdown = Shutdown::new();
    let shown = Box::pin(show(folder, settings, context, &shutdown.soft));
    // The demo has nothing to drain: it stops at the first signal.
    run_under_signals(&shutdown, Duration::MAX, shown).await
}

async fn show(
    folder: Folder,
    settings: Settings,
    context: &Context,
    stop: &CancellationToken,
) -> Result<Exit, Failure> {
    let mut display = Display::new(context.output.is_json(), &context.environment);
    let cleared = stop.run_until_cancelled(clear_leftovers(&context.environment)).await;
    if let Some(n_demos @ 1..) = cleared {
        display.line(&format!("removed the files of killed demos: {n_demos}"));
    }
    display.line("a private Postgres starts in a folder of its own");
    let mut stage = DemoSetup::open(folder, settings, stop).await?;
    let played = stop.run_until_cancelled(play(&mut stage, &mut display, context)).await;
    display.end();
    let struck = stage.tear_down().await;
    let Some(report) = played else {
        display.line("stopped; the database, the workers and the folder are removed");
        return Ok(Exit::Interrupted);
    };
    let report = report?;
    struck?;
    context.output.print_data(&report, || words::report(&report));
    match report.ok {
        true => Ok(Exit::Ok),
        false => Ok(Exit::Failed),
    }
}

async fn play(
    stage: &mut DemoSetup,
    display: &mut Display,
    context: &Context,
) -> Result<Report, Failure> {
    display.line(&stage.describe_database());
    let n_workers = stage.start_workers(context).await?;
    display
        .line(&format!("{n_workers} worker processes; a simulation answers, no model is called"));
    let played = DemoScript::begin(stage, display, &SystemClock).await?.perform().await?;
    let evidence = Evidence::read(stage.pool(), &played).await?;
    let leases = (stage.settings.config.queue.lease_secs, stage.settings.usual_lease_secs);
    Ok(Report::of(&evidence, leases, display.elapsed().as_secs_f64()))
}
