//! Generated manuals: shell completions and man pages from the clap tree, the API document, and the list of metrics.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use clap_complete::env::Shells;

use super::{Context, Exit, Failure, command, completions::VARIABLE};
use crate::{http, metric_catalogue};

/// Name of the program in the scripts, which look for it in PATH.
const PROGRAM: &str = "dalsegno";

#[derive(Debug, Args)]
pub(super) struct Completions {
    /// The shell.
    shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub(super) struct Man {
    /// Existing folder to write into.
    folder: PathBuf,
}

pub(super) fn completions(chosen: &Completions, context: &Context) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    let shells = Shells::builtins();
    if let Some(shell) = shells.completer(&chosen.shell.to_string()) {
        let written = shell.write_registration(VARIABLE, PROGRAM, PROGRAM, PROGRAM, &mut script);
        written.context("cannot write the completions").map_err(Failure::failed)?;
    }
    context.output.print_text(&String::from_utf8_lossy(&script));
    Ok(Exit::Ok)
}

pub(super) fn man(man: &Man) -> Result<Exit, Failure> {
    clap_mangen::generate_to(command(), &man.folder)
        .with_context(|| format!("cannot write the man pages to {}", man.folder.display()))
        .map_err(Failure::failed)?;
    Ok(Exit::Ok)
}

pub(super) fn openapi(context: &Context) -> Exit {
    context.output.print_text(http::document());
    Exit::Ok
}

pub(super) fn metrics(context: &Context) -> Exit {
    context.output.print_data(&metric_catalogue::lines(), metric_catalogue::markdown);
    Exit::Ok
}
