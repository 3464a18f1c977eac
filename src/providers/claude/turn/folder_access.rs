//! Work on the folders of sessions, and its errors.

use std::{io, path::Path};

use super::super::{Error, space};
use crate::providers::Class;

/// Runs work on files away from the threads of other turns.
pub(in crate::providers::claude) async fn run_blocking_in<T: Send + 'static>(
    doing: &'static str,
    folder: &Path,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, Error> {
    let done =
        tokio::task::spawn_blocking(work).await.unwrap_or_else(|gone| Err(io::Error::other(gone)));
    done.map_err(|source| match source.kind() {
        // This kind comes from a claim that was replaced, and from no file.
        io::ErrorKind::ResourceBusy => Error::TakenOver,
        _ => no_space_or_folder(doing, folder, source),
    })
}

/// Replaces an error that may pass by `NoSpace`, if there is no disk space even without the files of the call. The next call then waits for
/// space: an agent that fills the disk is not called again and again.
pub(super) fn prefer_no_space(error: Error, sessions: &Path) -> Error {
    match (error.class(), space::require(sessions)) {
        (Class::Retry { .. }, Err(source)) if space::is_full(&source) => {
            Error::NoSpace { folder: sessions.to_owned(), source }
        }
        _ => error,
    }
}

fn no_space_or_folder(doing: &'static str, folder: &Path, source: io::Error) -> Error {
    let folder = folder.to_owned();
    match space::is_full(&source) {
        true => Error::NoSpace { folder, source },
        false => Error::Folder { doing, folder, source },
    }
}
