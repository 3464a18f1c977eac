//! The reference of commands, from the clap tree.

use clap::{
    Arg, ArgAction, Command,
    builder::{PossibleValue, StyledStr},
};

use super::cells::{cell, code, sentences};

const HEAD: &str = "\
# Commands

`dalsegno COMMAND --help` prints the same texts. [openapi.json](openapi.json) describes the routes; a running service has it at
`/v1/openapi.json`.

## Conventions

- Ids may be shortened to a unique beginning or end; an end needs at least 8 digits. Lists show the last digits, because ids made within a minute begin
  alike. If several ids match, the command lists them. Campaigns can be given by name; `DALSEGNO_CAMPAIGN` sets `--campaign`. Of several campaigns with
  one name, the only one that is not closed is meant.
- Durations are written as `90s`, `30m`, `24h`, `7d`. `--since` and `--until` take a time (`2026-11-23T08:00:00Z`) or such a duration before now.
- `-h` prints one line per option; `--help` prints all details.
- `-o json`, `jsonl`, `yaml` and `csv` print data; `--json` is short for `-o json`. With `--wait`, of `task add` and `task show`, the exit code is 0 for done, 1 for failed, 9 for cancelled, 6 when the time ran out.
  `dalsegno --help` lists all exit codes.
- `--url https://dalsegno.example.com --key-file FILE` sends a command to a server instead of the database, with the same output; `DALSEGNO_URL` and
  `DALSEGNO_KEY` set both. `dalsegno remote add prod URL --key-file FILE` stores a server, `dalsegno remote use prod` selects it. Commands about this host
  and its files, such as `serve`, `worker`, `migrate`, `doctor`, `agent check` and `flow check`, refuse `--url`.
- `--idempotency-key` makes a change once: the same command with the same key prints the result of the first. Each kind of command has keys of its own:
  `campaign pause` and `campaign resume` with one key are both carried out.
";

/// Writes the reference.
pub(super) fn markdown() -> String {
    let mut root = crate::cli::command();
    root.build();
    let mut text = HEAD.to_owned();
    text += "\n## Global options\n\n";
    text += &options(root.get_arguments().filter(|argument| argument.is_global_set()));
    for command in root.get_subcommands().filter(|command| command.get_name() != "help") {
        text += &format!("\n## {}\n", command.get_name());
        write(command, &mut text);
    }
    text
}

fn write(command: &Command, text: &mut String) {
    let about = command.get_long_about().or(command.get_about());
    *text += &format!("\n{}\n", paragraphs(about));
    let subcommands: Vec<_> = command
        .get_subcommands()
        .filter(|below| below.get_name() != "help" && !below.is_hide_set())
        .collect();
    if subcommands.is_empty() {
        let usage = command.clone().render_usage().to_string();
        *text += &format!("\n```text\n{}\n```\n", usage.trim_start_matches("Usage: "));
    }
    let own: Vec<_> = command.get_arguments().filter(|argument| is_own(argument)).collect();
    if !own.is_empty() {
        *text += &format!("\n{}", options(own.into_iter()));
    }
    for below in subcommands {
        let name = below.get_bin_name().unwrap_or(below.get_name());
        *text += &format!("\n### {}\n", name.trim_start_matches("dalsegno "));
        write(below, text);
    }
}

fn is_own(argument: &Arg) -> bool {
    let is_built_in = matches!(
        argument.get_action(),
        ArgAction::Help | ArgAction::HelpShort | ArgAction::HelpLong | ArgAction::Version
    );
    !argument.is_global_set() && !argument.is_hide_set() && !is_built_in
}

fn options<'a>(arguments: impl Iterator<Item = &'a Arg>) -> String {
    let mut text = String::from("| option | meaning |\n|---|---|\n");
    for argument in arguments {
        let about = argument.get_long_help().or(argument.get_help());
        let mut about = sentences(&about.map(StyledStr::to_string).unwrap_or_default());
        let choices: Vec<_> = argument
            .get_possible_values()
            .iter()
            .filter(|value| !value.is_hide_set())
            .map(describe_value)
            .collect();
        if !choices.is_empty() && argument.get_action().takes_values() {
            about += &format!(" Values: {}.", choices.join(", "));
        }
        let defaults = argument.get_default_values().iter().filter_map(|value| value.to_str());
        let is_shown =
            argument.get_action().takes_values() && !argument.is_hide_default_value_set();
        for default in defaults.filter(|_| is_shown) {
            about += &format!(" Default: `{default}`.");
        }
        text += &format!("| {} | {about} |\n", code(&argument_name(argument)));
    }
    text
}

/// Writes a possible value with its meaning: `` `edict` (a rule for all agents)``.
fn describe_value(value: &PossibleValue) -> String {
    let name = value.get_name();
    let Some(help) = value.get_help() else { return format!("`{name}`") };
    let help = cell(&help.to_string());
    let mut chars = help.chars();
    let first: String = chars.next().into_iter().flat_map(char::to_lowercase).collect();
    format!("`{name}` ({first}{})", chars.as_str().trim_end_matches('.'))
}

/// Writes an argument as a user types it: `-c, --campaign <CAMPAIGN>`, or `<ID>`.
fn argument_name(argument: &Arg) -> String {
    let values: Vec<_> = argument.get_value_names().unwrap_or_default().iter().collect();
    let values = values.iter().map(|name| format!("<{name}>")).collect::<Vec<_>>().join(" ");
    let names: Vec<_> = argument
        .get_short()
        .map(|short| format!("-{short}"))
        .into_iter()
        .chain(argument.get_long().map(|long| format!("--{long}")))
        .collect();
    let takes = argument.get_action().takes_values();
    match (names.is_empty(), takes) {
        (true, _) => values,
        (false, true) if is_optional(argument) => format!("{}[={values}]", names.join(", ")),
        (false, true) => format!("{} {values}", names.join(", ")),
        (false, false) => names.join(", "),
    }
}

/// Returns true if the option may stand without its value.
fn is_optional(argument: &Arg) -> bool {
    argument.get_num_args().is_some_and(|n| n.min_values() == 0)
}

/// Writes a help text with one line per paragraph.
fn paragraphs(about: Option<&StyledStr>) -> String {
    let text = about.map(StyledStr::to_string).unwrap_or_default();
    let paragraphs = text.trim().split("\n\n").map(sentences);
    paragraphs.collect::<Vec<_>>().join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_their_meanings_and_hidden_defaults_are_left_out() {
        let text = markdown();
        assert!(text.contains("`edict` (a rule for all agents), `record` (shared knowledge)"));
        assert!(!text.contains("9223372036854775807") && !text.contains("Default: ``"));
    }
}
