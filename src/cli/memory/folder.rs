//! Memory items as files of a folder: `edicts/<name>.md`, `records/<name>.md`, `journals/<agent>/<name>.md`.
//!
//! Nothing outside of the folder is read or written: names from the database are checked again, and links are not
//! followed.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use anyhow::anyhow;
use serde::Serialize;

use crate::{
    cli::{Exit, Failure},
    domain::{
        agents,
        memory::{self, BODY_MAX_BYTES, Entry, Item, Kind},
    },
};

/// Larger than any valid item with its front matter.
const FILE_MAX_BYTES: u64 = BODY_MAX_BYTES as u64 + 64 * 1024;
/// Deepest level below the folder: journals, the agent, its instance, the entry.
const MAX_DEPTH: usize = 4;

/// Counts of an export.
#[derive(Debug, Default, Serialize)]
pub(super) struct ExportCounts {
    pub(super) written: usize,
    /// Files that already had the item's content.
    pub(super) unchanged: usize,
}

/// Writes all items, or none of them and reports the problems of all files.
pub(super) fn write(
    folder: &Path,
    items: &[Item],
    overwrites: bool,
) -> Result<ExportCounts, Failure> {
    let (mut problems, mut files, mut exported) = (Vec::new(), Vec::new(), ExportCounts::default());
    for item in items {
        let Some(inner) = path_of(item) else {
            problems.push(format!("item {} has a name that is not valid for a file", item.id));
            continue;
        };
        let content = memory::write_document(item);
        match compare_file(folder, &inner, &content) {
            Ok(FileState::Nothing) => files.push((inner, content)),
            Ok(FileState::Same) => exported.unchanged += 1,
            Ok(FileState::Other) if overwrites => files.push((inner, content)),
            Ok(FileState::Other) => problems.push(format!(
                "{} has other content: use --overwrite to replace it",
                folder.join(&inner).display()
            )),
            Err(problem) => problems.push(problem),
        }
    }
    if !problems.is_empty() {
        return Err(refused("nothing was written", &problems));
    }
    for (inner, content) in files {
        let path = folder.join(&inner);
        let written = path.parent().map_or(Ok(()), fs::create_dir_all);
        written.and_then(|()| fs::write(&path, content)).map_err(|error| {
            let words = format!("cannot write to {}", path.display());
            Failure::failed(anyhow!(error).context(words))
        })?;
        exported.written += 1;
    }
    Ok(exported)
}

/// Reads all files that end in `.md`, or reports the problems of all of them.
pub(super) fn read(folder: &Path) -> Result<Vec<Entry>, Failure> {
    let (mut problems, mut entries) = (Vec::new(), Vec::new());
    // The folder itself may be a link, because the user has named it.
    match fs::metadata(folder) {
        Ok(found) if found.is_dir() => {
            for path in files_below(folder, 0, &mut problems) {
                read_file(&path, &mut entries, &mut problems);
            }
        }
        Ok(_) => read_file(folder, &mut entries, &mut problems),
        Err(error) => problems.push(format!("{}: {error}", folder.display())),
    }
    match problems.is_empty() {
        true if entries.is_empty() => Err(refused(
            "nothing was imported",
            &[format!("{} contains no .md files", folder.display())],
        )),
        true => Ok(entries),
        false => Err(refused("nothing was imported", &problems)),
    }
}

/// State of the file that an item is written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileState {
    Nothing,
    Same,
    Other,
}

/// Returns the path of an item, or `None` if its name could lead out of the folder.
fn path_of(item: &Item) -> Option<PathBuf> {
    let mut path = PathBuf::from(item.kind.plural());
    if item.kind == Kind::Journal {
        for part in item.owner.as_deref()?.split('/') {
            path.push(Some(part).filter(|part| agents::is_name(part))?);
        }
    }
    path.push(format!("{}.md", Some(&item.name).filter(|name| agents::is_name(name))?));
    Some(path)
}

fn compare_file(folder: &Path, inner: &Path, content: &str) -> Result<FileState, String> {
    let mut path = folder.to_owned();
    for part in inner {
        path.push(part);
        match fs::symlink_metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(FileState::Nothing),
            Err(error) => return Err(format!("{}: {error}", path.display())),
            Ok(found) if found.is_symlink() => {
                return Err(format!(
                    "{} is a symbolic link, which is not followed: write to its target",
                    path.display()
                ));
            }
            Ok(_) => {}
        }
    }
    match fs::read(&path) {
        Ok(bytes) if bytes == content.as_bytes() => Ok(FileState::Same),
        Ok(_) => Ok(FileState::Other),
        Err(error) => Err(format!("{}: {error}", path.display())),
    }
}

/// Lists the Markdown files below a folder, ordered by path.
fn files_below(folder: &Path, depth: usize, problems: &mut Vec<String>) -> Vec<PathBuf> {
    let mut paths = match fs::read_dir(folder) {
        Ok(entries) => entries.flatten().map(|entry| entry.path()).collect::<Vec<_>>(),
        Err(error) => {
            problems.push(format!("{}: {error}", folder.display()));
            return Vec::new();
        }
    };
    paths.sort();
    let mut files = Vec::new();
    for path in paths {
        let is_markdown = path.extension().is_some_and(|extension| extension == "md");
        match fs::symlink_metadata(&path) {
            Ok(found) if found.is_symlink() && is_markdown => {
                problems.push(format!(
                    "{} is a symbolic link, which is not followed: copy its target",
                    path.display()
                ));
            }
            Ok(found) if found.is_dir() && depth < MAX_DEPTH => {
                files.extend(files_below(&path, depth + 1, problems));
            }
            Ok(found) if found.is_file() && is_markdown => files.push(path),
            Ok(_) => {}
            Err(error) => problems.push(format!("{}: {error}", path.display())),
        }
    }
    files
}

fn read_file(path: &Path, entries: &mut Vec<Entry>, problems: &mut Vec<String>) {
    let at = path.display().to_string();
    let is_too_long = fs::metadata(path).is_ok_and(|found| found.len() > FILE_MAX_BYTES);
    let content = match is_too_long {
        true => Err(format!("it is too long: an item has at most {FILE_MAX_BYTES} bytes")),
        false => fs::read_to_string(path).map_err(|error| error.to_string()),
    };
    let read = content
        .and_then(|text| memory::read_document(&at, &text).map_err(|error| error.to_string()));
    match read {
        Ok(document) => entries.push(Entry { at, document }),
        Err(why) => problems.push(format!("{at}: {why}")),
    }
}

fn refused(what: &str, problems: &[String]) -> Failure {
    let list: String = problems.iter().map(|problem| format!("\n- {problem}")).collect();
    Failure::new(Exit::Usage, anyhow!("{what}{list}"))
}
