//! The command line as a whole: conventions of all commands, checks that the parser does not make, and errors as JSON.

use std::{collections::HashSet, ffi::OsString, process::ExitCode, time::Duration};

use anyhow::anyhow;
use clap::{ArgMatches, Parser, error::ErrorKind};

use super::{
    Exit, Failure,
    output::{Format, Output},
    watch,
};

/// Adds the alias `list` to each `ls` and `--watch` to the commands that read, and moves global options under a heading of their own.
pub(super) fn with_conventions(command: clap::Command, parent: &str) -> clap::Command {
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

/// Parses the command line. Returns the interval of `--watch`, too.
pub(super) fn parse<P: Parser>() -> Result<(P, Option<Duration>), ExitCode> {
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

/// Checks a key, which is sent as a header.
pub(super) fn idempotency_key(text: &str) -> Result<String, String> {
    let is_sendable = text.bytes().all(|byte| matches!(byte, b' '..=b'~')) && text.trim() == text;
    match text.len() {
        1..=195 if is_sendable => Ok(text.to_owned()),
        _ => Err("use 1 to 195 visible ASCII characters".to_owned()),
    }
}

/// Splits a setting into its key and its value.
pub(super) fn key_value(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("use for example http.listen=127.0.0.1:8080")?;
    Ok((key.to_owned(), value.to_owned()))
}
