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
//! With `--providers`, another campaign runs on all providers (`providers/`).
//! With `--open`, the console shows the campaign while it is played slowly, and the database stays.
//!
//! All output comes from the run: lines from the feed, figures and checks from the tables.

mod browser;
mod checks;
mod demo_tasks;
mod display;
mod ending;
mod evidence;
mod folder;
mod process;
mod providers;
mod report;
mod script;
mod sequence;
mod settings;
mod setup;
mod watch;
mod words;
mod workers;

use std::time::Duration;

use clap::Args;

use self::{
    display::Display,
    ending::DemoEnd,
    evidence::Evidence,
    folder::{Folder, clear_leftovers},
    process::Demo,
    report::Report,
    sequence::DemoScript,
    settings::Settings,
    setup::DemoSetup,
};
use super::{Context, Exit, Failure, signals::run_under_signals};
use crate::clock::SystemClock;

#[derive(Debug, Args)]
pub(super) struct DemoFlags {
    /// Plays slowly, serves the web console, opens the page of the campaign in a browser, and goes on until Ctrl-C. The database stays in the
    /// folder `demo` of `service.data_dir`; each further start adds a campaign to it.
    #[arg(long)]
    open: bool,
    /// Keeps the database after the end, in the folder `demo` of `service.data_dir`, with a `dalsegno.toml` that opens it, and prints how to look
    /// at it. Each further start adds a campaign to it.
    #[arg(long, conflicts_with = "open")]
    keep: bool,
    /// Plays another campaign: its agents run on all providers over scripted servers on this machine, and move between them while servers fail.
    /// The Claude Code CLI takes part if it is installed, without a credential of yours.
    #[arg(long, conflicts_with_all = ["open", "keep"])]
    providers: bool,
}

pub(super) async fn run(flags: DemoFlags, context: &Context) -> Result<Exit, Failure> {
    let user = context.load()?;
    if flags.providers {
        return providers::run(context, user).await;
    }
    let ending = match flags {
        DemoFlags { open: true, .. } => DemoEnd::Open,
        DemoFlags { keep: true, .. } => DemoEnd::Kept,
        DemoFlags { .. } => DemoEnd::Removed,
    };
    let folder = match ending {
        DemoEnd::Removed => Folder::make(&context.environment)?,
        DemoEnd::Kept | DemoEnd::Open => Folder::keep(&user.service.data_dir)?,
    };
    let settings = Settings::in_folder(&folder, user, ending)?;
    let demo = Demo::of(context, &settings)?;
    let shown = Box::pin(demo.show(folder, settings));
    // The demo has nothing to drain: it stops at the first signal.
    run_under_signals(&demo.shutdown, Duration::MAX, shown).await
}

impl Demo<'_> {
    async fn show(&self, folder: Folder, settings: Settings) -> Result<Exit, Failure> {
        let Self { context, shutdown, .. } = self;
        let stop = &shutdown.soft;
        let mut display = Display::new(context.output.is_structured(), &context.environment);
        let cleared = stop.run_until_cancelled(clear_leftovers(&context.environment)).await;
        if let Some(n_demos @ 1..) = cleared {
            display.line(&format!("removed the files of killed demos: {n_demos}"));
        }
        let (ending, path) = (settings.ending, folder.path().to_owned());
        display.line("a private Postgres starts in a folder of its own");
        let mut stage = DemoSetup::open(folder, settings, stop).await?;
        let played = stop.run_until_cancelled(self.play(&mut stage, &mut display)).await;
        display.end();
        if let Some(Ok((report, page))) = &played {
            context
                .output
                .print_data(report, || words::report(report, ending, &path, &context.environment));
            if let Some(page) = page {
                display.line(&format!("the campaign stays at {page} until Ctrl-C"));
                stop.cancelled().await;
            }
        }
        let torn_down = stage.tear_down(shutdown).await;
        let Some(played) = played else {
            display.line(match ending {
                DemoEnd::Open => "stopped; the database stays for the next `dalsegno demo --open`",
                DemoEnd::Kept => "stopped; the database stays for the next `dalsegno demo --keep`",
                DemoEnd::Removed => "stopped; the database, the workers and the folder are removed",
            });
            return Ok(Exit::Interrupted);
        };
        let (report, _) = played?;
        torn_down?;
        match report.ok {
            true => Ok(Exit::Ok),
            false => Ok(Exit::Failed),
        }
    }

    /// Plays the campaign. Returns the report, and the address of the page of a campaign that stays.
    async fn play(
        &self,
        stage: &mut DemoSetup,
        display: &mut Display,
    ) -> Result<(Report, Option<String>), Failure> {
        display.line(&stage.describe_database());
        let n_workers = stage.start_workers(self.context).await?;
        display.line(&format!(
            "{n_workers} worker processes; a simulation answers, no model is called"
        ));
        let console = match stage.settings.ending {
            DemoEnd::Open => Some(stage.open_console(&self.telemetry, &self.shutdown).await?),
            DemoEnd::Kept | DemoEnd::Removed => None,
        };
        let script = DemoScript::begin(stage, display, &SystemClock).await?;
        let page = console.map(|address| format!("{address}/campaigns/{}", script.campaign_id()));
        if let Some(page) = &page {
            script.display.line(&format!("the console shows the campaign at {page}"));
            browser::open(page, &self.context.environment);
        }
        let played = script.perform().await?;
        let evidence = Evidence::read(stage.pool(), &played).await?;
        let leases = (stage.settings.config.queue.lease_secs, stage.settings.usual_lease_secs);
        let report = Report::of(&evidence, leases, display.elapsed().as_secs_f64());
        Ok((report, page))
    }
}
