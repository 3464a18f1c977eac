//! Restores the files before a call, so that they equal the caller's.

use std::{fs::OpenOptions, io, path::Path};

use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::{files, is_of_session, write_private};
use crate::providers::TranscriptFile;

/// State in which the files were found. Afterwards they equal the caller's, unless they are lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::providers::claude) enum LocalState {
    Same,
    Restored,
    /// A file is missing or different, and the caller gave no bytes for it, or bytes with another digest.
    Lost,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Same,
    /// Begins with the caller's bytes, and continues.
    Longer,
    Different,
}

pub(in crate::providers::claude) fn restore(
    project: &Path,
    session: Uuid,
    held: &[TranscriptFile],
) -> io::Result<LocalState> {
    let mut local = LocalState::Same;
    for name in files::list(project, session)? {
        if held.iter().all(|file| file.name != name) {
            files::remove(&project.join(name))?;
            local = LocalState::Restored;
        }
    }
    for file in held {
        match restore_file(project, session, file)? {
            LocalState::Same => {}
            LocalState::Restored => local = LocalState::Restored,
            LocalState::Lost => return Ok(LocalState::Lost),
        }
    }
    Ok(local)
}

/// Returns true if the caller has to give the bytes, because the files here are not enough. Changes nothing.
pub(in crate::providers::claude) fn needs_bytes(
    project: &Path,
    held: &[TranscriptFile],
) -> io::Result<bool> {
    for file in held {
        if state(&project.join(&file.name), file)? == State::Different {
            return Ok(true);
        }
    }
    Ok(false)
}

fn restore_file(project: &Path, session: Uuid, held: &TranscriptFile) -> io::Result<LocalState> {
    if !is_of_session(&held.name, session) {
        return Ok(LocalState::Lost);
    }
    let path = project.join(&held.name);
    match (state(&path, held)?, &held.bytes) {
        (State::Same, _) => Ok(LocalState::Same),
        (State::Longer, _) => {
            OpenOptions::new().write(true).open(&path)?.set_len(held.n_bytes)?;
            Ok(LocalState::Restored)
        }
        (State::Different, Some(bytes)) if matches_stored(bytes, held) => {
            write_private(&path, bytes)?;
            Ok(LocalState::Restored)
        }
        (State::Different, _) => Ok(LocalState::Lost),
    }
}

fn state(path: &Path, held: &TranscriptFile) -> io::Result<State> {
    let length = match path.metadata() {
        Ok(metadata) if metadata.is_file() => metadata.len(),
        Ok(_) => return Ok(State::Different),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(State::Different),
        Err(error) => return Err(error),
    };
    if length < held.n_bytes || files::digest_of_first(path, held.n_bytes)? != Some(held.sha256) {
        return Ok(State::Different);
    }
    Ok(if length == held.n_bytes { State::Same } else { State::Longer })
}

fn matches_stored(bytes: &[u8], held: &TranscriptFile) -> bool {
    bytes.len() as u64 == held.n_bytes && Sha256::digest(bytes)[..] == held.sha256
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::providers::{
        Flag,
        claude::{
            secrets::Secrets,
            transcript::{find_growth, main_name},
        },
    };

    const ANY: u64 = u64::MAX;

    fn no_secrets() -> Secrets {
        Secrets::new(std::iter::empty(), &[])
    }

    const LINES: &[u8] = b"{\"a\":1}\n{\"b\":2}\n";

    fn stored_file(name: &str, bytes: &[u8]) -> TranscriptFile {
        TranscriptFile {
            name: name.to_owned(),
            n_bytes: bytes.len() as u64,
            sha256: Sha256::digest(bytes).into(),
            bytes: None,
        }
    }

    #[test]
    fn a_local_file_in_any_state_is_restored_to_the_stored_one() {
        let (folder, session) = (tempfile::tempdir().unwrap(), Uuid::from_u128(7));
        let path = folder.path().join(main_name(session));
        let with_bytes = TranscriptFile {
            bytes: Some(LINES.to_vec()),
            ..stored_file(&main_name(session), LINES)
        };
        let without = TranscriptFile { bytes: None, ..with_bytes.clone() };
        let longer = [LINES, b"{\"c\":3}\n{\"torn"].concat();
        let states: [(Option<&[u8]>, LocalState, LocalState); 6] = [
            (Some(LINES), LocalState::Same, LocalState::Same),
            (Some(&longer), LocalState::Restored, LocalState::Restored),
            (Some(&LINES[..5]), LocalState::Restored, LocalState::Lost),
            (Some(b"{\"a\":1}\n{\"b\":3}\n"), LocalState::Restored, LocalState::Lost),
            (Some(b""), LocalState::Restored, LocalState::Lost),
            (None, LocalState::Restored, LocalState::Lost),
        ];
        for (found, expected, expected_without) in states {
            for (held, expected) in [(&with_bytes, expected), (&without, expected_without)] {
                files::remove(&path).unwrap();
                if let Some(bytes) = found {
                    fs::write(&path, bytes).unwrap();
                }
                let held = std::slice::from_ref(held);
                let is_lost = needs_bytes(folder.path(), held).unwrap();
                assert_eq!(is_lost, expected_without == LocalState::Lost, "{found:?}");
                assert_eq!(restore(folder.path(), session, held).unwrap(), expected, "{found:?}");
                if expected != LocalState::Lost {
                    assert_eq!(fs::read(&path).unwrap(), LINES);
                }
            }
        }
    }

    #[test]
    fn files_unknown_to_the_caller_are_removed() {
        let (folder, session) = (tempfile::tempdir().unwrap(), Uuid::from_u128(7));
        let (main, sub) = (main_name(session), format!("{session}/subagents/agent-1.jsonl"));
        for name in [&main, &sub, &main_name(Uuid::from_u128(8))] {
            write_private(&folder.path().join(name), LINES).unwrap();
        }
        assert_eq!(restore(folder.path(), session, &[]).unwrap(), LocalState::Restored);
        assert!(files::list(folder.path(), session).unwrap().is_empty());
        assert!(folder.path().join(main_name(Uuid::from_u128(8))).exists());
    }

    #[test]
    fn bytes_with_a_wrong_hash_or_path_are_not_written() {
        let (folder, session) = (tempfile::tempdir().unwrap(), Uuid::from_u128(7));
        let wrong = TranscriptFile {
            bytes: Some(b"{}\n".to_vec()),
            ..stored_file(&main_name(session), LINES)
        };
        assert_eq!(restore(folder.path(), session, &[wrong]).unwrap(), LocalState::Lost);
        let outside =
            TranscriptFile { bytes: Some(LINES.to_vec()), ..stored_file("../x.jsonl", LINES) };
        assert_eq!(restore(folder.path(), session, &[outside]).unwrap(), LocalState::Lost);
        assert!(!folder.path().parent().unwrap().join("x.jsonl").exists());
    }

    #[test]
    fn only_grown_files_are_returned() {
        let (folder, session) = (tempfile::tempdir().unwrap(), Uuid::from_u128(7));
        let (main, sub) = (main_name(session), format!("{session}/subagents/agent-1.jsonl"));
        let known = [stored_file(&main, LINES), stored_file(&sub, LINES)];
        write_private(&folder.path().join(&sub), LINES).unwrap();
        let path = folder.path().join(&main);
        write_private(&path, &[LINES, b"{\"c\":3}\n{\"torn"].concat()).unwrap();
        let (more, _) = find_growth(folder.path(), session, &known, &no_secrets(), ANY).unwrap();
        assert_eq!(more.len(), 1, "an unchanged file is not sent");
        assert_eq!((more[0].from, &more[0].bytes[..]), (LINES.len() as u64, &b"{\"c\":3}\n"[..]));
        assert_eq!(more[0].sha256[..], Sha256::digest(fs::read(&path).unwrap())[..]);
        write_private(&path, b"{\"new\":1}\n").unwrap();
        let (rewritten, _) =
            find_growth(folder.path(), session, &known, &no_secrets(), ANY).unwrap();
        assert_eq!((rewritten[0].from, &rewritten[0].bytes[..]), (0, &b"{\"new\":1}\n"[..]));
    }

    #[test]
    fn side_files_are_stored_up_to_the_limit_and_the_rest_is_reported() {
        let (folder, session) = (tempfile::tempdir().unwrap(), Uuid::from_u128(7));
        let sub = |n: u32| format!("{session}/subagents/agent-{n}.jsonl");
        for name in [main_name(session), sub(1), sub(2), sub(3)] {
            write_private(&folder.path().join(name), LINES).unwrap();
        }
        let known = [stored_file(&sub(3), LINES)];
        let two = 2 * LINES.len() as u64;
        let (more, left_out) =
            find_growth(folder.path(), session, &known, &no_secrets(), two).unwrap();
        let names: Vec<_> = more.into_iter().map(|grown| grown.name).collect();
        assert_eq!(names, [main_name(session), sub(1)], "files stored before come first");
        assert_eq!(left_out, Some(Flag::NotStored { files: 1, bytes: LINES.len() as u64 }));
        let (_, left_out) =
            find_growth(folder.path(), session, &known, &no_secrets(), ANY).unwrap();
        assert_eq!(left_out, None);
    }
}
