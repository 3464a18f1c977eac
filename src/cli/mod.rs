//! The command line. Data goes to stdout, everything else to stderr; exit codes are in `exit.rs`.

mod agent;
mod agent_filter;
mod args;
mod audit;
mod blackboard;
mod board;
mod budget;
mod bulk;
mod campaign;
mod cleanup;
mod completions;
mod config;
mod context;
mod cost;
mod credential;
mod database;
mod demo;
mod doctor;
mod erasure;
mod estimate;
mod eval;
mod execution_target;
mod exit;
mod feed;
mod fidelity;
mod flow;
mod follow;
mod health;
mod installation;
mod job;
mod key;
mod lane;
mod manual;
mod mcp;
mod memory;
mod migrate;
mod output;
mod overview;
mod progress;
mod queue;
mod rate_limit;
mod reference;
mod remote;
mod remotes;
mod schedule;
mod search;
mod sent_context;
mod serve;
mod server;
mod session;
mod sign_in;
mod signals;
mod target;
mod task;
mod turn;
mod watch;
mod webhook;
mod words;
mod worker;

use std::{
    collections::HashSet,
    ffi::OsString,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use anyhow::anyhow;
use clap::{ArgMatches, Args, CommandFactory as _, Parser, Subcommand, error::ErrorKind};
use clap_complete::CompleteEnv;

use self::{
    context::Context,
    output::{Colours, Format, Output, Style},
    target::{RemoteFlags, Target},
};
pub use self::{
    exit::{Exit, Failure},
    reference::{Document, documents, limits},
};
use crate::{
    jobs::Pool,
    providers::claude::guard,
    settings::{Environment, FILE_VARIABLE, Flags},
};

/// Time limit for dropping the rest of a command: long enough to signal a private Postgres, too short to wait for a
/// name server.
const DROP_LIMIT: Duration = Duration::from_secs(1);

/// Durable conversations for LLM agents on a Postgres job queue.
///
/// Without a command: `serve`.
#[derive(Debug, Parser)]
#[command(name = "dalsegno", version, after_help = exit::HELP)]
pub struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(flatten)]
    remote: RemoteFlags,
    #[command(subcommand)]
    command: Option<Command>,
}

/// A worker process of Dalsegno.
#[derive(Debug, Parser)]
#[command(version, after_help = exit::HELP)]
struct WorkerCli {
    #[command(flatten)]
    global: Global,
}

#[derive(Debug, Args)]
struct Global {
    /// Configuration file (TOML).
    ///
    /// Default: dalsegno.toml in the working directory, if it exists. DALSEGNO_CONFIG sets it, too.
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Overrides one setting; may be repeated.
    ///
    /// Example: --set http.listen=127.0.0.1:8080.
    #[arg(long, global = true, value_name = "KEY=VALUE", value_parser = key_value)]
    set: Vec<(String, String)>,
    /// Format of the output.
    #[arg(
        long,
        short,
        global = true,
        value_enum,
        value_name = "FORMAT",
        default_value_t,
        hide_default_value = true
    )]
    output: Format,
    /// Prints data and errors as JSON, like `-o json`.
    #[arg(long, global = true)]
    json: bool,
    /// Shows whole ids and exact times, and cuts no cell of a table.
    ///
    /// Without a terminal, tables have exact times and whole cells anyway.
    #[arg(long, global = true)]
    wide: bool,
    /// Colours of the output.
    #[arg(
        long = "color",
        global = true,
        value_enum,
        value_name = "WHEN",
        default_value_t,
        hide_default_value = true
    )]
    colours: Colours,
    /// Makes a change only once.
    ///
    /// The same command with the same key prints the result of the first; other input under the key is refused. Each kind of command
    /// has keys of its own: `campaign resume` is not compared with `campaign pause`.
    #[arg(long, global = true, value_name = "KEY", value_parser = idempotency_key)]
    idempotency_key: Option<String>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs the whole service in this process.
    Serve,
    /// Shows what waits for a person, what runs, and the last hour.
    Overview,
    /// Searches tasks, posts, memory and transcripts of all campaigns, the newest first.
    Search(search::Search),
    /// Shows version, settings, migrations and sizes of the installation.
    Installation,
    /// Creates, shows, edits, pauses and erases campaigns; sets their budgets.
    #[command(subcommand)]
    Campaign(campaign::CampaignCommand),
    /// Prints and writes posts on the message board of a campaign.
    #[command(subcommand)]
    Board(board::BoardCommand),
    /// Adds, shows, cancels, retries and explains tasks.
    #[command(subcommand)]
    Task(task::TaskCommand),
    /// Lists and shows bulk actions of `task cancel` and `task retry`.
    #[command(subcommand)]
    Bulk(bulk::BulkCommand),
    /// Publishes, searches and revokes edicts, records and journal entries.
    #[command(subcommand)]
    Memory(memory::MemoryCommand),
    /// Lists, shows, resets, compacts and interrupts sessions.
    #[command(subcommand)]
    Session(session::SessionCommand),
    /// Lists the turns of a session, and shows what each call was sent.
    #[command(subcommand)]
    Turn(turn::TurnCommand),
    /// Lists budgets and sets their limits: of campaigns, tasks, agents, users and the day.
    #[command(subcommand)]
    Budget(budget::BudgetCommand),
    /// Adds up the costs of calls by day, campaign, agent, model, provider, purpose or user.
    Cost(cost::CostFlags),
    /// Reports if models saw the history of their conversations, and which summaries were rejected.
    #[command(subcommand)]
    Fidelity(fidelity::FidelityCommand),
    /// Compares variants of an agent by the checks of an eval file.
    #[command(subcommand)]
    Eval(eval::EvalCommand),
    /// Shows what calls were sent, byte for byte.
    #[command(subcommand)]
    Context(sent_context::ContextCommand),
    /// Shows and changes the JSON document that a campaign shares.
    #[command(subcommand)]
    Blackboard(blackboard::BlackboardCommand),
    /// Lists, checks, pauses, interrupts and resets agents.
    #[command(subcommand)]
    Agent(agent::AgentCommand),
    /// Plays a campaign on a simulated model; needs no database.
    ///
    /// It writes a series in twelve parts, with a killed worker, a compaction and an expiry, and removes its files at the end. With --open it
    /// plays slowly enough to read along in the web console, and keeps its database.
    Demo(demo::DemoFlags),
    /// Runs a worker process of one pool, and lists worker processes.
    #[command(subcommand)]
    Worker(worker::WorkerCommand),
    /// Applies missing migrations, and shows their status.
    #[command(subcommand)]
    Migrate(migrate::Migrate),
    /// Checks and prints the configuration.
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// Lists, shows, pauses and resumes queues.
    #[command(subcommand)]
    Queue(queue::QueueCommand),
    /// Lists, shows, retries, cancels, holds and explains jobs.
    #[command(subcommand)]
    Job(job::JobCommand),
    /// Lists, shows, holds and releases lanes.
    #[command(subcommand)]
    Lane(lane::LaneCommand),
    /// Adds, shows, runs, pauses and removes recurring work.
    #[command(subcommand)]
    Schedule(schedule::ScheduleCommand),
    /// Checks flow templates; starts, shows, pauses and cancels flows of dependent tasks.
    #[command(subcommand)]
    Flow(flow::FlowCommand),
    /// Lists credentials of Claude, and resumes one that is paused.
    #[command(subcommand)]
    Credential(credential::CredentialCommand),
    /// Rate limits of calls.
    #[command(subcommand)]
    RateLimit(rate_limit::RateLimitCommand),
    /// Runs the nightly cleanup now, or lists past cleanups.
    Cleanup(cleanup::Cleanup),
    /// Prints events as they happen, until Ctrl-C; without --campaign, those of all campaigns.
    ///
    /// With --json, one object per line.
    Feed(feed::Feed),
    /// Serves the operator's tools for a campaign to an MCP client, over stdin and stdout.
    Mcp(mcp::Mcp),
    /// Creates, lists, rotates and revokes API keys.
    #[command(subcommand)]
    Key(key::KeyCommand),
    /// Lists and ends sign-ins of browsers to the console.
    #[command(subcommand)]
    SignIn(sign_in::SignInCommand),
    /// Verifies receipts of erasures, and vacuums erased texts.
    #[command(subcommand)]
    Erasure(erasure::ErasureCommand),
    /// Lists the audit log: which caller changed which thing.
    #[command(subcommand)]
    Audit(audit::AuditCommand),
    /// Adds, tests and removes webhooks, which report the ends of tasks; replays their deliveries.
    #[command(subcommand)]
    Webhook(webhook::WebhookCommand),
    /// Checks this installation, and names a fix for each problem.
    Doctor(doctor::Doctor),
    /// Checks that a running service is ready, for container probes.
    Health(health::Health),
    /// Stores servers by name, and selects one for commands.
    #[command(subcommand)]
    Remote(remotes::RemoteCommand),
    /// Prints the OpenAPI 3.1 document of the HTTP API.
    Openapi,
    /// Lists the metrics of `/metrics`: name, type, labels, meaning.
    Metrics,
    /// Writes the generated reference documents and JSON Schemas into a folder.
    Reference(reference::Reference),
    /// Prints completions for a shell, which also know campaigns, agents and tasks.
    ///
    /// For bash, `source <(dalsegno completions bash)` in ~/.bashrc loads them.
    Completions(manual::Completions),
    /// Writes man pages into a folder.
    Man(manual::Man),
}

/// Runs `dalsegno`: parses the command line, runs the command and returns its exit code.
pub fn main() -> ExitCode {
    if let Some(code) = guard::intercept(std::env::args_os()) {
        return code;
    }
    // Prints candidates and ends the process, if the shell asks for them.
    CompleteEnv::with_factory(|| completions::with_candidates(command()))
        .var(completions::VARIABLE)
        .complete();
    match parse::<Cli>() {
        Ok((cli, watch)) => {
            let command = cli.command;
            finish(cli.global, cli.remote, watch, |context| {
                if command.is_none() {
                    context.output.print_note(
                        "no command given: starting the service, as `dalsegno serve` does",
                    );
                }
                let command = command.unwrap_or(Command::Serve);
                command.check_key(context.idempotency_key.as_deref())?;
                context.target = command.target(&context.remote, &context.environment)?;
                if let Some(note) = context.target.as_ref().and_then(Target::describe) {
                    context.output.print_note(&note);
                }
                run(command, context)
            })
        }
        Err(exit) => exit,
    }
}

/// Runs `worker-turns` or `worker-upkeep`.
pub fn worker_main(pool: Pool) -> ExitCode {
    if let Some(code) = guard::intercept(std::env::args_os()) {
        return code;
    }
    match parse::<WorkerCli>() {
        Ok((cli, _)) => finish(cli.global, RemoteFlags::default(), None, |context| {
            block_on(worker::run(pool, context))
        }),
        Err(exit) => exit,
    }
}

/// Returns the clap tree, for parsing, completions, man pages and tests.
pub fn command() -> clap::Command {
    with_conventions(Cli::command(), "")
}

/// Adds the alias `list` to each `ls` and `--watch` to the commands that read, and moves global options under a heading of their own.
fn with_conventions(command: clap::Command, parent: &str) -> clap::Command {
    let command = match command.get_name() {
        "ls" => command.visible_alias("list"),
        _ => command,
    };
    let under_heading = |argument: clap::Arg| match argument.is_global_set() {
        true => argument.help_heading("Global options"),
        false => argument,
    };
    let command = watch::with_watch(command.mut_args(under_heading), parent);
    let name = command.get_name().to_owned();
    command.mut_subcommands(|below| with_conventions(below, &name))
}

fn run(command: Command, context: &Context) -> Result<Exit, Failure> {
    match command {
        Command::Config(command) => config::run(&command, context),
        Command::Remote(command) => remotes::run(&command, context),
        Command::Openapi => Ok(manual::openapi(context)),
        Command::Metrics => Ok(manual::metrics(context)),
        Command::Reference(reference) => reference::run(&reference, context),
        Command::Completions(shell) => manual::completions(&shell, context),
        Command::Man(man) => manual::man(&man),
        Command::Agent(command) => block_on(agent::run(&command, context)),
        Command::Overview => block_on(overview::run(context)),
        Command::Search(search) => block_on(search::run(&search, context)),
        Command::Installation => block_on(installation::run(context)),
        Command::Campaign(command) => block_on(campaign::run(&command, context)),
        Command::Task(command) => block_on(task::run(&command, context)),
        Command::Bulk(command) => block_on(bulk::run(&command, context)),
        Command::Board(command) => block_on(board::run(&command, context)),
        Command::Memory(command) => block_on(memory::run(&command, context)),
        Command::Session(command) => block_on(session::run(&command, context)),
        Command::Turn(command) => block_on(turn::run(&command, context)),
        Command::Eval(command) => block_on(eval::run(&command, context)),
        Command::Budget(command) => block_on(budget::run(&command, context)),
        Command::Cost(flags) => block_on(cost::run(&flags, context)),
        Command::Fidelity(command) => block_on(fidelity::run(&command, context)),
        Command::Context(command) => block_on(sent_context::run(&command, context)),
        Command::Blackboard(command) => block_on(blackboard::run(&command, context)),
        Command::Serve => block_on(serve::run(context)),
        Command::Demo(flags) => block_on(demo::run(flags, context)),
        Command::Worker(command) => block_on(worker::run_named(&command, context)),
        Command::Migrate(command) => block_on(migrate::run(&command, context)),
        Command::Queue(command) => block_on(queue::run(&command, context)),
        Command::Job(command) => block_on(job::run(&command, context)),
        Command::Lane(command) => block_on(lane::run(&command, context)),
        Command::Schedule(command) => block_on(schedule::run(&command, context)),
        Command::Flow(command) => block_on(flow::run(&command, context)),
        Command::RateLimit(command) => block_on(rate_limit::run(&command, context)),
        Command::Credential(command) => block_on(credential::run(&command, context)),
        Command::Cleanup(cleanup) => block_on(cleanup::run(&cleanup, context)),
        Command::Feed(feed) => block_on(feed::run(&feed, context)),
        Command::Mcp(mcp) => block_on(mcp::run(&mcp, context)),
        Command::Key(command) => block_on(key::run(&command, context)),
        Command::SignIn(command) => block_on(sign_in::run(&command, context)),
        Command::Erasure(command) => block_on(erasure::run(&command, context)),
        Command::Audit(command) => block_on(audit::run(&command, context)),
        Command::Webhook(command) => block_on(webhook::run(&command, context)),
        Command::Doctor(doctor) => block_on(doctor::run(&doctor, context)),
        Command::Health(health) => block_on(health::run(&health, context)),
    }
}

/// Parses the command line. Returns the interval of `--watch`, too.
fn parse<P: Parser>() -> Result<(P, Option<Duration>), ExitCode> {
    let matches = with_conventions(P::command(), "").try_get_matches();
    let matches = matches.and_then(check_settings).and_then(check_metadata);
    let parsed =
        matches.and_then(|matches| Ok((P::from_arg_matches(&matches)?, watch::interval(&matches))));
    parsed.map_err(|error| {
        // Help and version arrive here too, with exit code 0.
        if error.use_stderr() && wants_json() {
            let words = error.render().to_string();
            let words = words.trim_end().trim_start_matches("error: ").to_owned();
            Output::new(Format::Json).print_failure(&Failure::new(Exit::Usage, anyhow!(words)));
        } else {
            // A closed stdout is not an error.
            let _ = error.print();
        }
        ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
    })
}

/// Returns true if an invalid command line asks for JSON.
fn wants_json() -> bool {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let is_json = |text: &OsString| ["json", "jsonl"].iter().any(|format| text == format);
    let joined = ["--json", "--output=json", "--output=jsonl", "-ojson", "-ojsonl"];
    let is_joined = |text: &OsString| joined.iter().any(|joined| text == joined);
    let is_option = |text: &OsString| text == "-o" || text == "--output";
    arguments.iter().any(is_joined)
        || arguments.windows(2).any(|two| is_option(&two[0]) && is_json(&two[1]))
}

/// Refuses settings on both sides of a command: the parser would drop those before it.
fn check_settings(matches: ArgMatches) -> Result<ArgMatches, clap::Error> {
    let flags = std::env::args_os().take_while(|argument| argument != "--");
    let is_setting = |argument: &OsString| {
        argument == "--set" || argument.as_encoded_bytes().starts_with(b"--set=")
    };
    let n_given = flags.filter(is_setting).count();
    let kept = matches.try_get_many::<(String, String)>("set").ok().flatten();
    match kept.map_or(0, |kept| kept.len()) < n_given {
        true => Err(clap::Error::raw(
            ErrorKind::ArgumentConflict,
            "--set stands before the command and after it, and only the later ones would count: write all of them after it\n",
        )),
        false => Ok(matches),
    }
}

/// Refuses two values for one key of --metadata.
fn check_metadata(matches: ArgMatches) -> Result<ArgMatches, clap::Error> {
    let mut deepest = &matches;
    while let Some((_, below)) = deepest.subcommand() {
        deepest = below;
    }
    let mut keys = HashSet::new();
    let pairs = deepest.try_get_many::<(String, String)>("metadata").ok().flatten();
    match pairs.into_iter().flatten().find(|pair| !keys.insert(&pair.0)) {
        Some((key, _)) => {
            let words = format!("--metadata names the key `{key}` twice: give it one value\n");
            Err(clap::Error::raw(ErrorKind::ValueValidation, words))
        }
        None => Ok(matches),
    }
}

fn finish(
    global: Global,
    remote: RemoteFlags,
    watch: Option<Duration>,
    run: impl FnOnce(&mut Context) -> Result<Exit, Failure>,
) -> ExitCode {
    let environment = Environment::capture();
    let file = global.config.or_else(|| default_file(&environment));
    Style::new(global.colours, global.wide, &environment).set();
    let output = Output::new(if global.json { Format::Json } else { global.output });
    let mut context = Context {
        environment,
        flags: Flags { file, set: global.set },
        output: if watch.is_some() { output.kept() } else { output },
        remote,
        target: None,
        idempotency_key: global.idempotency_key,
        watch,
    };
    match run(&mut context) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            output.print_failure(&failure);
            failure.exit.into()
        }
    }
}

/// Returns the default configuration file, if it exists and DALSEGNO_CONFIG is not set.
fn default_file(environment: &Environment) -> Option<PathBuf> {
    let file = Path::new("dalsegno.toml");
    (environment.get(FILE_VARIABLE).is_none() && file.is_file()).then(|| file.to_owned())
}

fn block_on(command: impl Future<Output = Result<Exit, Failure>>) -> Result<Exit, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::failed(error.into()))?;
    let ended = runtime.block_on(command);
    runtime.shutdown_timeout(DROP_LIMIT);
    ended
}

fn idempotency_key(text: &str) -> Result<String, String> {
    let is_sendable = text.bytes().all(|byte| matches!(byte, b' '..=b'~')) && text.trim() == text;
    match text.len() {
        1..=195 if is_sendable => Ok(text.to_owned()),
        _ => Err("use 1 to 195 visible ASCII characters".to_owned()),
    }
}

fn key_value(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("use for example http.listen=127.0.0.1:8080")?;
    Ok((key.to_owned(), value.to_owned()))
}
