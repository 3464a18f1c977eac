//! Growth of the transcript's files, collected after a call.

use std::{
    borrow::Cow,
    fs::{self, File},
    io::{self, Read as _, Seek as _, SeekFrom},
    path::Path,
};

use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::{files, has_message, main_name, repair, write_private};
use crate::providers::{FileGrowth, Flag, TranscriptFile, claude::secrets::Secrets};

/// Returns true if the CLI has really stored the message. If its disk is full or read-only, it reports success without that.
pub(in crate::providers::claude) fn is_persisted(
    project: &Path,
    session: Uuid,
    held: &[TranscriptFile],
    message: Uuid,
) -> io::Result<bool> {
    let name = main_name(session);
    let n_held = held.iter().find(|file| file.name == name).map_or(0, |file| file.n_bytes);
    let mut bytes = Vec::new();
    match File::open(project.join(name)) {
        Ok(mut file) => {
            file.seek(SeekFrom::Start(n_held))?;
            file.read_to_end(&mut bytes)?;
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    Ok(has_message(&bytes, message))
}

/// Returns the growth that the caller has to store. The process that writes the files must have ended: torn ends are repaired on the way,
/// and credentials removed.
///
/// The files beside the session's own may have `side_max_bytes` in total. Files that were stored before go first. Files that do not fit are
/// left out, and counted in the flag.
pub(in crate::providers::claude) fn find_growth(
    project: &Path,
    session: Uuid,
    held: &[TranscriptFile],
    secrets: &Secrets,
    side_max_bytes: u64,
) -> io::Result<(Vec<FileGrowth>, Option<Flag>)> {
    let mut grown = Vec::new();
    let (mut left, mut files, mut bytes) = (side_max_bytes, 0, 0);
    let main = main_name(session);
    let held_of = |name: &str| held.iter().find(|file| file.name == name);
    let mut names = files::list(project, session)?;
    names.sort_by_key(|name| (*name != main, held_of(name).is_none()));
    for name in names {
        let held = held_of(&name);
        if name != main {
            let n_bytes = project.join(&name).metadata()?.len();
            if n_bytes > left {
                let n_held = held.map_or(0, |held| held.n_bytes);
                left = left.saturating_sub(n_held);
                (files, bytes) = (files + 1, bytes + n_bytes.saturating_sub(n_held));
                continue;
            }
            left -= n_bytes;
        }
        grown.extend(growth_of(project, name, held, secrets)?);
    }
    Ok((grown, (files > 0).then_some(Flag::NotStored { files, bytes })))
}

fn growth_of(
    project: &Path,
    name: String,
    held: Option<&TranscriptFile>,
    secrets: &Secrets,
) -> io::Result<Option<FileGrowth>> {
    let path = project.join(&name);
    let mut bytes = fs::read(&path)?;
    let n_held = held.and_then(|held| usize::try_from(held.n_bytes).ok());
    // A file that was rewritten is returned from its beginning.
    let is_longer = |n: &usize| {
        let first = bytes.get(..*n);
        first.is_some_and(|first| held.is_some_and(|held| Sha256::digest(first)[..] == held.sha256))
    };
    let from = n_held.filter(is_longer).unwrap_or(0);
    let new = &bytes[from..];
    let whole = if name.ends_with(".jsonl") { repair(new) } else { Cow::Borrowed(new) };
    let mended = secrets.cleaned_lines(&whole);
    if *mended != *new {
        let mended = mended.into_owned();
        bytes.truncate(from);
        bytes.extend_from_slice(&mended);
        write_private(&path, &bytes)?;
    }
    if n_held == Some(from) && bytes.len() == from {
        return Ok(None);
    }
    let sha256 = Sha256::digest(&bytes).into();
    Ok(Some(FileGrowth { name, from: from as u64, sha256, bytes: bytes.split_off(from) }))
}
