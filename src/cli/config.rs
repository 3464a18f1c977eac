//! `dalsegno config`: the configuration as the service sees it.

use clap::Subcommand;

use super::{Context, Exit, Failure};
use crate::{
    config::{self, Config, TEMPLATE},
    domain::installation::Setting,
};

#[derive(Debug, Subcommand)]
pub(super) enum ConfigCommand {
    /// Lists all problems of the configuration; exits 2 if there is one.
    Check,
    /// Prints each setting with its value and the source of the value.
    Print,
    /// Prints a configuration file with the documented defaults.
    Template,
}

pub(super) fn run(command: &ConfigCommand, context: &Context) -> Result<Exit, Failure> {
    match command {
        ConfigCommand::Check => return Ok(check(context)),
        ConfigCommand::Print => {
            let values = config::print(&context.environment, &context.flags)?;
            context.output.print_data(&values, || format_values(&values));
        }
        ConfigCommand::Template => context.output.print_text(TEMPLATE),
    }
    Ok(Exit::Ok)
}

/// Checks the configuration and prints the problems to stdout, because they are this command's data.
fn check(context: &Context) -> Exit {
    let found = Config::load(&context.environment, &context.flags).err();
    let problems = found.unwrap_or_default();
    context.output.print_data(&problems.0, || match problems.is_empty() {
        true => "the configuration is in order".to_owned(),
        false => problems.to_string(),
    });
    match problems.is_empty() {
        true => Exit::Ok,
        false => Exit::Usage,
    }
}

fn format_values(values: &[Setting]) -> String {
    let line = |v: &Setting| format!("{} = {}    # {}\n", v.key, v.value, v.origin);
    values.iter().map(line).collect()
}
