//! Removals of folders in a sweep. One that fails does not stop the others, and is reported after them.

use crate::{domain::StatementError, providers::claude};

/// The result of a round.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SweepCount {
    pub folders: i64,
    pub bytes: i64,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Database(#[from] StatementError),
    #[error(transparent)]
    Folders(#[from] claude::Error),
    #[error("not all folders could be removed ({n_left} left, {n_removed} removed)")]
    Left {
        n_left: usize,
        n_removed: i64,
        #[source]
        first: claude::Error,
    },
}

/// Folders that a sweep has removed, and those that are left.
#[derive(Debug, Default)]
pub(super) struct FolderRemovals {
    count: SweepCount,
    n_left: usize,
    first_error: Option<claude::Error>,
}

impl FolderRemovals {
    /// Adds the removal of a folder, with its bytes if there was one.
    pub(super) fn add(&mut self, removed: Result<Option<u64>, claude::Error>) {
        match removed {
            Ok(None) => {}
            Ok(Some(n_bytes)) => {
                self.count.folders += 1;
                let n_bytes = i64::try_from(n_bytes).unwrap_or(i64::MAX);
                self.count.bytes = self.count.bytes.saturating_add(n_bytes);
            }
            Err(error) => {
                self.n_left += 1;
                self.first_error.get_or_insert(error);
            }
        }
    }

    pub(super) fn count(&self) -> SweepCount {
        self.count
    }

    /// Returns the removed folders, or an error if one is left.
    pub(super) fn finish(self) -> Result<SweepCount, Error> {
        let Self { count, n_left, first_error } = self;
        match first_error {
            None => Ok(count),
            Some(first) => Err(Error::Left { n_left, n_removed: count.folders, first }),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::causes::causes;

    #[test]
    fn a_folder_that_is_left_is_reported_after_the_others() {
        let refused = |name: &str| {
            let source = io::ErrorKind::PermissionDenied.into();
            Err(claude::Error::Folder { doing: "remove files", folder: name.into(), source })
        };
        let mut removals = FolderRemovals::default();
        for removed in [Ok(Some(700)), refused("/d/one"), refused("/d/two"), Ok(None), Ok(Some(0))]
        {
            removals.add(removed);
        }
        assert_eq!(removals.count(), SweepCount { folders: 2, bytes: 700 });
        let error = removals.finish().unwrap_err();
        assert_eq!(
            causes(&error),
            "not all folders could be removed (2 left, 2 removed): \
             cannot remove files in /d/one; check its free space and permissions: permission denied"
        );
        let mut removals = FolderRemovals::default();
        removals.add(Ok(Some(1)));
        assert_eq!(removals.finish().unwrap(), SweepCount { folders: 1, bytes: 1 });
    }
}
