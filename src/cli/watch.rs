//! `--watch`: a command that reads is run again and again, until Ctrl-C.

use std::time::Duration;

use clap::{Arg, ArgMatches, Command, value_parser};
use tokio::time::sleep;

use super::{Exit, Failure, output::Screen};

const NAME: &str = "watch";
/// Commands that read from the server or the database, besides every `ls` and `show`.
const OTHERS: [&str; 14] = [
    "overview",
    "installation",
    "cost",
    "explain",
    "deliveries",
    "runs",
    "history",
    "transcript",
    "status",
    "waits",
    "activity",
    "reruns",
    "search",
    "versions",
];
/// Commands about this host, and those that have a `--wait` or `--follow` of their own meaning.
const HOST: [&str; 3] = ["remote", "config", "migrate"];

/// Adds the option to the commands that only read.
pub(super) fn with_watch(command: Command, parent: &str) -> Command {
    let name = command.get_name();
    let reads = ["ls", "show"].contains(&name) || OTHERS.contains(&name);
    let is_leaf = command.get_subcommands().next().is_none();
    if !reads || !is_leaf || HOST.contains(&parent) {
        return command;
    }
    let has_wait = command.get_arguments().any(|argument| argument.get_id() == "wait");
    let watch = Arg::new(NAME)
        .long(NAME)
        .value_name("SECS")
        .num_args(0..=1)
        .require_equals(true)
        .default_missing_value("2")
        .value_parser(value_parser!(u64).range(1..=3600))
        .help("Shows the output again at this interval, until Ctrl-C")
        .long_help(
            "Shows the output again at this interval, until Ctrl-C. Without a number every 2 seconds.\n\n\
             Without a terminal it is printed again only if it has changed.",
        );
    command.arg(if has_wait { watch.conflicts_with("wait") } else { watch })
}

/// Returns the interval that the command line sets.
pub(super) fn interval(matches: &ArgMatches) -> Option<Duration> {
    let mut deepest = matches;
    while let Some((_, below)) = deepest.subcommand() {
        deepest = below;
    }
    let secs = deepest.try_get_one::<u64>(NAME).ok().flatten();
    secs.map(|secs| Duration::from_secs(*secs))
}

/// Runs `work` again and again. An unavailable server is shown and tried again; other failures end it.
pub(super) async fn watch(
    every: Duration,
    work: impl AsyncFn() -> Result<Exit, Failure>,
) -> Result<Exit, Failure> {
    let mut screen = Screen::open(every);
    let repeated = async {
        loop {
            let shown = match work().await {
                Ok(_) => screen.show(),
                Err(failure) if failure.exit == Exit::Unavailable => screen.show_failure(&failure),
                Err(failure) => return Err(failure),
            };
            // The reader is gone (`| head`).
            if shown.is_err() {
                return Ok(Exit::Ok);
            }
            sleep(every).await;
        }
    };
    tokio::select! {
        ended = repeated => ended,
        _ = tokio::signal::ctrl_c() => Ok(Exit::Ok),
    }
}
