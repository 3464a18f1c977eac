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

mod dialects;
mod evidence;
mod report;
mod script;
mod sequence;
mod servers;
mod words;

use std::{fs, path::Path, time::Duration};

use anyhow::Context as _;

use self::{
    dialects::Dialect,
    evidence::Evidence,
    report::Report,
    script::{ANTHROPIC, CLAUDE, LOCAL, MODELS, ModelScript, OLLAMA, SIM},
    sequence::Sequence,
    servers::ScriptedServer,
};
use super::{
    Demo, DemoEnd,
    display::Display,
    folder::{Folder, clear_leftovers},
    settings::Settings,
    setup::DemoSetup,
};
use crate::{
    cli::{Context, Exit, Failure, signals::run_under_signals},
    clock::SystemClock,
    config::Config,
};

/// Settings that differ from the defaults, besides those of the servers.
const SETTINGS: [(&str, &str); 14] = [
    ("agents.provider", "sim"),
    ("agents.model", "sim-1"),
    ("claude.max_retries", "0"),
    ("database.max_connections", "12"),
    ("log.filter", "info,sqlx=error"),
    ("log.format", "json"),
    ("queue.poll_busy_ms", "100"),
    ("queue.poll_idle_ms", "500"),
    ("scheduler.enabled", "false"),
    ("shutdown.drain_timeout_secs", "0"),
    ("shutdown.stop_timeout_secs", "5"),
    ("sim.directives", "true"),
    // All agents work at once.
    ("worker.turns_slots", "3"),
    ("providers.anthropic.kind", "anthropic"),
];
/// Key of the scripted servers. It opens nothing else.
const KEY: &str = "sk-ant-of-the-demo-0000000000";

/// The models of this run and their servers.
struct Cast {
    models: Vec<ModelScript>,
    servers: Vec<ScriptedServer>,
    /// Settings of the CLI, if it was found.
    cli: Option<[(&'static str, String); 2]>,
    /// The reason why the CLI takes no part.
    left_out: Option<String>,
}

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

impl Cast {
    async fn start(user: &Config) -> std::io::Result<Self> {
        let (cli, left_out) = match user.claude.find_program() {
            Ok(program) => {
                let path = user.claude.path.clone();
                let program = program.display().to_string();
                (Some([("claude.program", program), ("claude.path", path)]), None)
            }
            Err(error) => (None, Some(error.to_string())),
        };
        let models = MODELS.into_iter().filter(|model| cli.is_some() || model.provider != CLAUDE);
        let models: Vec<ModelScript> = models.collect();
        let mut servers = Vec::new();
        for model in &models {
            let dialect = match model.provider {
                CLAUDE => Dialect::MessagesOfCli,
                OLLAMA => Dialect::Ollama,
                LOCAL => Dialect::ChatCompletions,
                ANTHROPIC => Dialect::Messages,
                _ => continue,
            };
            servers.push(ScriptedServer::start(*model, dialect).await?);
        }
        Ok(Self { models, servers, cli, left_out })
    }

    fn server(&self, provider: &str) -> Option<&ScriptedServer> {
        self.servers.iter().find(|server| server.model.provider == provider)
    }

    /// Returns the settings of the demo. Writes the key of the servers into the folder, where only this user can read it.
    fn flags(&self, folder: &Path) -> std::io::Result<Vec<(String, String)>> {
        let key = folder.join("key");
        fs::write(&key, KEY)?;
        let key = key.display();
        let own = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
        let mut flags: Vec<(String, String)> = SETTINGS.into_iter().map(own).collect();
        let mut set = |key: &str, value: String| flags.push((key.to_owned(), value));
        for server in &self.servers {
            let url = &server.base_url;
            match server.model.provider {
                CLAUDE => set("claude.base_url", url.clone()),
                OLLAMA => set("ollama.base_url", url.clone()),
                LOCAL => set("providers.local.base_url", format!("{url}/v1")),
                ANTHROPIC => set("providers.anthropic.base_url", format!("{url}/v1")),
                _ => {}
            }
        }
        set("providers.anthropic.credential_file", key.to_string());
        for (name, value) in self.cli.iter().flatten() {
            set(name, value.clone());
        }
        if self.cli.is_some() {
            let credential = format!("{{ name = \"demo\", kind = \"api_key\", file = \"{key}\" }}");
            set("claude.credentials", format!("[{credential}]"));
        }
        Ok(flags)
    }
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

/// Returns true if a model has a server; the simulation has none.
fn has_server(model: &ModelScript) -> bool {
    model.provider != SIM
}
