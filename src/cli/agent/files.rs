//! Subcommands that print files of agents, skills, nodes and flow templates, and versions of prompts.

use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::{
    cli::{
        Context, Exit, Failure,
        output::{format_table, short_id, text_cell, time_cell},
        sent_context::diff::{format_changes, indent},
        server::Server,
    },
    domain::{
        contexts,
        files::{SourceFile, SourceKind},
        prompt_versions::{PromptVersion, short_hash},
    },
    operations::{
        FILE_VERSION, Files, ListFiles, ListPromptVersions, PromptText, Refusal, ShowFile,
        ShowPromptVersion, WordChange, WordChangeKind, diff_words,
    },
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
    /// Prints the text of this version: its hash, or a unique beginning of it. `file` is the prompt of the file as it is now.
    #[arg(long, value_name = "VERSION", conflicts_with = "diff")]
    show: Option<String>,
    /// Compares this version with another one, word by word.
    #[arg(long, value_name = "VERSION")]
    diff: Option<String>,
    /// The other version. Default: the prompt of the file as it is now.
    #[arg(long, value_name = "VERSION", requires = "diff")]
    to: Option<String>,
}

/// The difference between two versions of a prompt.
#[derive(Debug, Serialize)]
struct PromptDiff {
    agent: String,
    from: String,
    to: String,
    words: Vec<WordChange>,
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
    args: &VersionArgs,
    context: &Context,
    server: &Server,
) -> Result<Exit, Failure> {
    let (output, agent) = (context.output, &args.agent);
    if let Some(version) = &args.show {
        let shown = read_version(agent, version, server).await?;
        let text = text_of(agent, &shown)?;
        output.print_data(&shown, || text.to_owned());
    } else if let Some(from) = &args.diff {
        let to = args.to.as_deref().unwrap_or(FILE_VERSION);
        let before = read_version(agent, from, server).await?;
        let after = read_version(agent, to, server).await?;
        let words = diff_words(text_of(agent, &before)?, text_of(agent, &after)?);
        let diff = PromptDiff {
            agent: agent.clone(),
            from: before.prompt_hash,
            to: after.prompt_hash,
            words,
        };
        output.print_data(&diff, || format_diff(&diff));
    } else {
        let versions = server.call(ListPromptVersions { name: agent.clone() }).await?.items;
        output.print_data(&versions, || format_versions(&versions));
    }
    Ok(Exit::Ok)
}

async fn read_version(agent: &str, version: &str, server: &Server) -> Result<PromptText, Failure> {
    let show = ShowPromptVersion { name: agent.to_owned(), version: version.to_owned() };
    server.call(show).await
}

/// Returns the text of a version, or the error that it is not stored.
fn text_of<'a>(agent: &str, version: &'a PromptText) -> Result<&'a str, Failure> {
    version.text.as_deref().ok_or_else(|| {
        let class = contexts::Error::NOT_STORED;
        let detail = format!(
            "the text of version {} of the prompt of agent `{agent}` is not stored: no call with it has a stored context; `dalsegno agent versions {agent}` lists the versions",
            short_hash(&version.prompt_hash)
        );
        Refusal::new(class.kind, class.code, detail).into()
    })
}

/// Formats a difference. Versions of the lead differ by the roster, too.
fn format_diff(PromptDiff { from, to, words, .. }: &PromptDiff) -> String {
    let (before, after) = (short_hash(from), short_hash(to));
    if from == to {
        return format!("Both are version {before}.");
    }
    match words.iter().all(|it| it.kind == WordChangeKind::Same) {
        true => format!(
            "Versions {before} and {after} have the same prompt. They differ in the roster, which only the instance `main` of a lead has."
        ),
        false => format!(
            "version {before} to version {after}\n\n{}\n",
            indent(format_changes(words).trim())
        ),
    }
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
            short_hash(&version.prompt_hash).to_owned(),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_names_both_versions_and_marks_the_changed_words() {
        let diff = |from: &str, to: &str, old, new| PromptDiff {
            agent: "copywriter".to_owned(),
            from: from.repeat(64),
            to: to.repeat(64),
            words: diff_words(old, new),
        };
        let changed =
            format_diff(&diff("a", "b", "You write long parts.", "You write short parts."));
        assert!(changed.starts_with("version aaaaaaaaaaaa to version bbbbbbbbbbbb\n"), "{changed}");
        assert!(changed.contains("[-long-]{+short+}"), "{changed}");
        assert_eq!(
            format_diff(&diff("a", "a", "Same.", "Same.")),
            "Both are version aaaaaaaaaaaa."
        );
        let roster = format_diff(&diff("a", "b", "Same.", "Same."));
        assert!(roster.contains("They differ in the roster"), "{roster}");
    }
}
