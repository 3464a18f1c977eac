//! Subcommands that print files of agents, skills, nodes and flow templates, and versions of prompts.

use clap::{Args, ValueEnum};

use crate::{
    cli::{
        Context, Exit, Failure,
        output::{format_table, short_id, text_cell, time_cell},
        server::Server,
    },
    domain::{
        files::{SourceFile, SourceKind},
        prompt_versions::PromptVersion,
    },
    operations::{Files, ListFiles, ListPromptVersions, ShowFile},
};

#[derive(Debug, Args)]
pub(in crate::cli) struct FileArgs {
    /// Kind of the file.
    #[arg(value_enum)]
    kind: KindName,
    /// Its name: that of the file without `.md`, of a skill that of its folder.
    name: String,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct VersionArgs {
    /// The agent.
    agent: String,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum KindName {
    Agent,
    Skill,
    Node,
    Flow,
}

impl From<KindName> for SourceKind {
    fn from(name: KindName) -> Self {
        match name {
            KindName::Agent => Self::Agent,
            KindName::Skill => Self::Skill,
            KindName::Node => Self::Node,
            KindName::Flow => Self::Flow,
        }
    }
}

pub(super) async fn list(context: &Context, server: &Server) -> Result<Exit, Failure> {
    let files = server.call(ListFiles {}).await?;
    context.output.print_data(&files, || format_files(&files));
    Ok(Exit::Ok)
}

pub(super) async fn show(
    FileArgs { kind, name }: &FileArgs,
    context: &Context,
    server: &Server,
) -> Result<Exit, Failure> {
    let file = server.call(ShowFile { kind: (*kind).into(), name: name.clone() }).await?;
    for problem in &file.file.problems {
        context.output.print_note(&problem.to_string());
    }
    context.output.print_data(&file, || file.text.clone().unwrap_or_default());
    Ok(Exit::Ok)
}

pub(super) async fn versions(
    VersionArgs { agent }: &VersionArgs,
    context: &Context,
    server: &Server,
) -> Result<Exit, Failure> {
    let versions = server.call(ListPromptVersions { name: agent.clone() }).await?.items;
    context.output.print_data(&versions, || format_versions(&versions));
    Ok(Exit::Ok)
}

fn format_files(files: &Files) -> String {
    let row = |file: &SourceFile| {
        let problem = file.problems.first().map(|problem| text_cell(&problem.message));
        [
            file.kind.as_str().to_owned(),
            file.name.clone(),
            file.problems.len().to_string(),
            file.path.clone(),
            problem.unwrap_or_else(|| "-".to_owned()),
        ]
    };
    let head = ["KIND", "NAME", "PROBLEMS", "FILE", "FIRST PROBLEM"];
    format_table(&head, files.items.iter().map(row))
}

fn format_versions(versions: &[PromptVersion]) -> String {
    let row = |version: &PromptVersion| {
        [
            version.prompt_hash.chars().take(12).collect(),
            if version.is_current { "current" } else { "-" }.to_owned(),
            time_cell(version.first_used_at),
            time_cell(version.last_used_at),
            version.sessions.to_string(),
            version.turns.to_string(),
            short_id(version.last_session_id),
        ]
    };
    let head =
        ["VERSION", "STATE", "FIRST (UTC)", "LAST (UTC)", "SESSIONS", "TURNS", "LAST SESSION"];
    format_table(&head, versions.iter().map(row))
}
