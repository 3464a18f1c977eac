//! The files of a folder.

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

use super::{File, MAX_BYTES, Problem, read};

/// Reads the files of a folder, sorted. `place` returns the name of an entry and the file to read for it, or `None` to skip it. Returns
/// `None` if the folder is missing: the files that come with Dalsegno are used then.
pub(in crate::domain) fn read_folder(
    folder: &Path,
    place: impl Fn(&Path) -> Option<(String, PathBuf)>,
) -> Result<Option<Vec<File>>, Problem> {
    let Some(paths) = paths(folder).map_err(|error| unreadable_folder(folder, error))? else {
        return Ok(None);
    };
    let file = |(name, path): (String, PathBuf)| File {
        content: read(&path, MAX_BYTES).map_err(|error| error.to_string()),
        path: path.display().to_string(),
        name,
        is_built_in: false,
    };
    Ok(Some(paths.iter().filter_map(|path| place(path)).map(file).collect()))
}

/// The name of `<name>.md`, and the file itself.
pub(in crate::domain) fn markdown(path: &Path) -> Option<(String, PathBuf)> {
    let name = path.file_stem()?.to_string_lossy().into_owned();
    (path.extension()? == "md").then(|| (name, path.to_owned()))
}

pub(in crate::domain) fn unreadable_folder(folder: &Path, error: impl fmt::Display) -> Problem {
    let message = format!("cannot be read: {error}");
    Problem::of_file(&folder.display().to_string(), message, "a readable folder")
}

fn paths(folder: &Path) -> io::Result<Option<Vec<PathBuf>>> {
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        entries => entries?,
    };
    let paths: io::Result<Vec<_>> = entries.map(|entry| Ok(entry?.path())).collect();
    let mut paths = paths?;
    paths.sort();
    Ok(Some(paths))
}

/// Says which files are read for a folder: its own, or those that come with Dalsegno.
pub fn describe_place(folder: &Path) -> String {
    match folder.is_dir() {
        true => format!("in {}", folder.display()),
        false => format!("built in, because there is no folder {}", folder.display()),
    }
}
