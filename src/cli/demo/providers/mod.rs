//! `dalsegno demo --providers`: a campaign whose agents run on all providers, and move between them while servers fail.
//!
//! ```text
//! servers   one per provider, on loopback, in this process; the simulation needs none, and the CLI calls one
//! play      rounds in parallel: each agent is told a fact, its server fails the call, the next model of its chain answers
//! return    the rests end: each agent goes back to its first model
//! report    evidence from the tables and the servers, checks on it
//! ```
//!
//! Everything but the servers is the real service: workers, providers, HTTP, and the Claude Code CLI if it is installed. The CLI gets a key
//! that does not exist, and a home of its own.

mod cast;
mod dialects;
mod evidence;
mod report;
mod script;
mod sequence;
mod servers;
mod words;

use std::{fs, time::Duration};

use anyhow::Context as _;

use self::{cast::Cast, evidence::Evidence, report::Report, sequence::Sequence};
use super::{
    display::Display,
    ending::DemoEnd,
    folder::{Folder, clear_leftovers},
    process::Demo,
    settings::Settings,
    setup::DemoSetup,
};
use crate::{
    cli::{Context, Exit, Failure, signals::run_under_signals},
    clock::SystemClock,
    config::Config,
};

pub(super) async fn run(context: &Context, user: Config) -> Result<Exit, Failure> {
    let folder = Folder::make(&context.environment)?;
    let cast = Cast::start(&user).await.context("cannot start the scripted servers");
    let cast = cast.map_err(Failure::failed)?;
    let flags = cast.flags(folder.path());
    let flags = flags.context("cannot write the key of the demo").map_err(Failure::failed)?;
    script::write_agents(&folder.path().join("agents"), &cast.models)
        .and_then(|()| fs::create_dir_all(folder.path().join("skills")))
        .context("cannot write the agent files of the demo")
        .map_err(Failure::failed)?;
    let settings = Settings::with_flags(&folder, user, DemoEnd::Removed, flags)?;
    let demo = Demo::of(context, &settings)?;
    let shown = Box::pin(show(&demo, folder, settings, &cast));
    run_under_signals(&demo.shutdown, Duration::MAX, shown).await
}

async fn show(
    demo: &Demo<'_>,
    folder: Folder,
    settings: Settings,
    cast: &Cast,
) -> Result<Exit, Failure> {
    let Demo { context, shutdown, .. } = demo;
    let stop = &shutdown.soft;
    let mut display = Display::new(context.output.is_structured(), &context.environment);
    let cleared = stop.run_until_cancelled(clear_leftovers(&context.environment)).await;
    if let Some(n_demos @ 1..) = cleared {
        display.line(&format!("removed the files of killed demos: {n_demos}"));
    }
    display.line("a private Postgres starts in a folder of its own");
    let mut stage = DemoSetup::open(folder, settings, stop).await?;
    let played = stop.run_until_cancelled(play(context, &mut stage, &mut display, cast)).await;
    display.end();
    if let Some(Ok(report)) = &played {
        context.output.print_data(report, || words::report(report));
    }
    let torn_down = stage.tear_down(shutdown).await;
    let Some(played) = played else {
        display.line("stopped; the database, the workers and the folder are removed");
        return Ok(Exit::Interrupted);
    };
    let report = played?;
    torn_down?;
    match report.ok {
        true => Ok(Exit::Ok),
        false => Ok(Exit::Failed),
    }
}

async fn play(
    context: &Context,
    stage: &mut DemoSetup,
    display: &mut Display,
    cast: &Cast,
) -> Result<Report, Failure> {
    let n_workers = stage.start_workers(context).await?;
    display.line(&format!(
        "{n_workers} worker processes, {} scripted servers on loopback",
        cast.servers.len()
    ));
    if let Some(reason) = &cast.left_out {
        display.line(&sequence::cut(&format!("without the Claude Code CLI: {reason}")));
    }
    let campaign_id = Sequence::begin(stage, display, cast, &SystemClock).await?.perform().await?;
    let evidence = Evidence::read(stage.pool(), campaign_id, cast.models.len()).await?;
    Ok(Report::of(&evidence, cast, display.elapsed().as_secs_f64()))
}
