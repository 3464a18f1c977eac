//! Files of one session below its project's folder. All functions block, so callers use a thread for them.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::Path,
};

use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::paths::main_name;

const PIECE_BYTES: usize = 256 << 10;

/// Returns the names of all files, relative to the project.
pub(super) fn list(project: &Path, session: Uuid) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    let main = main_name(session);
    if project.join(&main).try_exists()? {
        names.push(main);
    }
    let mut folders = vec![session.to_string()];
    while let Some(folder) = folders.pop() {
        let entries = match fs::read_dir(project.join(&folder)) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        for entry in entries {
            let entry = entry?;
            // A name that is not UTF-8 cannot be stored, and is not the CLI's.
            let Some(name) = entry.file_name().to_str().map(|name| format!("{folder}/{name}"))
            else {
                continue;
            };
            // Links are not followed: the target of an agent's link is not the transcript.
            let kind = entry.file_type()?;
            if kind.is_dir() {
                folders.push(name);
            } else if kind.is_file() {
                names.push(name);
            }
        }
    }
    names.sort();
    Ok(names)
}

/// Returns the SHA-256 of the first bytes of a file, or `None` if it has fewer.
pub(super) fn digest_of_first(path: &Path, n_bytes: u64) -> io::Result<Option<[u8; 32]>> {
    let (mut file, mut hasher, mut left) = (File::open(path)?, Sha256::new(), n_bytes);
    let mut piece = vec![0; PIECE_BYTES];
    while left > 0 {
        let wanted = usize::try_from(left).unwrap_or(usize::MAX).min(PIECE_BYTES);
        let n_read = file.read(&mut piece[..wanted])?;
        if n_read == 0 {
            return Ok(None);
        }
        hasher.update(&piece[..n_read]);
        left -= n_read as u64;
    }
    Ok(Some(hasher.finalize().into()))
}

/// Writes a file that only the service may read, completely or not at all.
pub(in crate::providers::claude) fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let new = path.with_extension("new");
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    file.write_all(bytes)?;
    fs::rename(&new, path)
}

/// Removes a file, which may be gone already.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
