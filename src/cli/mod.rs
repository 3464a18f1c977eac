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
mod campaign_names;
mod cleanup;
mod command;
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
mod parse;
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
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use clap::{Args, CommandFactory as _, Parser};
use clap_complete::CompleteEnv;

use self::{
    command::{Command, block_on},
    context::Context,
    output::{Colours, Format, Output, Style},
    parse::{parse, with_conventions},
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
    #[arg(long, global = true, value_name = "KEY=VALUE", value_parser = parse::key_value)]
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
    /// Shows all columns with whole ids and exact times, and cuts no cell of a table.
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
    #[arg(long, global = true, value_name = "KEY", value_parser = parse::idempotency_key)]
    idempotency_key: Option<String>,
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
                context.shows_agents = command.shows_agents();
                context.target = command.target(&context.remote, &context.environment)?;
                if let Some(note) = context.target.as_ref().and_then(Target::describe) {
                    context.output.print_note(&note);
                }
                command.run(context)
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
        shows_agents: false,
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
