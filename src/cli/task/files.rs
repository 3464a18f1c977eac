//! `dalsegno task files`: the attachments and the output files of a task.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, anyhow};
use clap::Args;
use serde::Serialize;

use crate::{
    cli::{Context, Exit, Failure, args::Id, output::format_table, server::Server},
    domain::{
        task_files::{FileDirection, TaskFile, check_name},
        text::count,
    },
    operations::{DownloadTaskFile, ListTaskFiles, Noun},
};

#[derive(Debug, Args)]
pub(in crate::cli) struct Files {
    #[command(flatten)]
    id: Id,
    /// Saves the output files below this folder, which is created if it does not exist. Existing files are not replaced.
    ///
    /// Attachments are saved below `in` in that folder.
    #[arg(long, value_name = "DIR")]
    save: Option<PathBuf>,
}

/// A saved file, for programs.
#[derive(Serialize)]
struct SavedFile {
    name: String,
    path: PathBuf,
    n_bytes: usize,
}

pub(super) async fn run(
    files: &Files,
    context: &Context,
    server: &Server,
) -> Result<Exit, Failure> {
    let id = server.id(Noun::Task, &files.id.id).await?;
    let listed = server.call(ListTaskFiles { id }).await?.items;
    let Some(folder) = &files.save else {
        context.output.print_data(&listed, || format_files(&listed));
        return Ok(Exit::Ok);
    };
    let mut saved = Vec::new();
    for file in listed.iter().filter(|file| file.problem.is_none()) {
        let (name, direction) = (file.name.clone(), Some(file.direction));
        let download = DownloadTaskFile { id, name: name.clone(), direction };
        let content = server.download(download).await?;
        let folder = match file.direction {
            FileDirection::In => folder.join(FileDirection::In.as_str()),
            FileDirection::Out => folder.clone(),
        };
        let path = save(&folder, &name, &content).map_err(Failure::failed)?;
        saved.push(SavedFile { name, path, n_bytes: content.len() });
    }
    for file in &listed {
        if let Some(problem) = &file.problem {
            context.output.print_note(&format!("`{}` is not stored: {problem}", file.name));
        }
    }
    context.output.print_data(&saved, || {
        let n_files = count(saved.len(), "file is saved", "files are saved");
        format!("{n_files} in {}", folder.display())
    });
    Ok(Exit::Ok)
}

/// Saves a file. Its name is checked again, because a server of another origin may send any.
fn save(folder: &Path, name: &str, content: &[u8]) -> anyhow::Result<PathBuf> {
    check_name(name.as_bytes()).map_err(|error| {
        anyhow!("cannot save the file {name:?}: {error}; its name comes from the server")
    })?;
    let path = folder.join(name);
    let words = || format!("cannot save {}", path.display());
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).with_context(words)?;
    }
    let opened = OpenOptions::new().write(true).create_new(true).open(&path);
    let mut file = opened.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            anyhow!("{} already exists: remove it, or save to another folder", path.display())
        }
        _ => anyhow::Error::new(error).context(words()),
    })?;
    file.write_all(content).with_context(words)?;
    Ok(path)
}

pub(super) fn format_files(files: &[TaskFile]) -> String {
    let row = |file: &TaskFile| {
        [
            file.direction.as_str().to_owned(),
            file.name.clone(),
            file.n_bytes.map_or("-".to_owned(), |n_bytes| n_bytes.to_string()),
            file.media_type.clone().unwrap_or_else(|| "-".to_owned()),
            file.turn.map_or("-".to_owned(), |turn| turn.to_string()),
            file.problem.iter().map(|problem| format!("not stored: {problem}")).collect(),
        ]
    };
    format_table(&["", "FILE", "BYTES", "TYPE", "TURN", ""], files.iter().map(row))
}
