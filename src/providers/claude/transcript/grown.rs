//! After a call: what the files grew by.

use std::{
    fs::{self, File},
    io::{self, Read as _, Seek as _, SeekFrom},
    path::Path,
};

use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::{files, has_message, main_name, repaired, write_private};
use crate::providers::{Grown, TranscriptFile};

/// Whether the CLI has really stored the message. It says success without it where its disk is full or read-only.
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

/// What the caller has to store. The process that writes the files has to be gone: torn ends are repaired on the way.
pub(in crate::providers::claude) fn grown(
    project: &Path,
    session: Uuid,
    held: &[TranscriptFile],
) -> io::Result<Vec<Grown>> {
    let mut grown = Vec::new();
    for name in files::list(project, session)? {
        let held = held.iter().find(|file| file.name == name);
        grown.extend(growth_of(project, name, held)?);
    }
    Ok(grown)
}

fn growth_of(
    project: &Path,
    name: String,
    held: Option<&TranscriptFile>,
) -> io::Result<Option<Grown>> {
    let path = project.join(&name);
    let mut bytes = fs::read(&path)?;
    let n_held = held.and_then(|held| usize::try_from(held.n_bytes).ok());
    // What was rewritten from its beginning is sent from its beginning.
    let is_longer = |n: &usize| {
        let first = bytes.get(..*n);
        first.is_some_and(|first| held.is_some_and(|held| Sha256::digest(first)[..] == held.sha256))
    };
    let from = n_held.filter(is_longer).unwrap_or(0);
    if name.ends_with(".jsonl") {
        let whole = repaired(&bytes[from..]);
        if whole.len() != bytes.len() - from {
            let mended = [&bytes[..from], &whole].concat();
            write_private(&path, &mended)?;
            bytes = mended;
        }
    }
    if n_held == Some(from) && bytes.len() == from {
        return Ok(None);
    }
    let sha256 = Sha256::digest(&bytes).into();
    Ok(Some(Grown { name, from: from as u64, sha256, bytes: bytes.split_off(from) }))
}
