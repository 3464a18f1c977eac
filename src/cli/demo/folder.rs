//! The folder that holds everything of one demo, and goes with it.

use std::{
    fs::{self, DirBuilder},
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
};

use anyhow::Context as _;

use crate::{cli::Failure, config::Environment};

/// Removed when dropped.
pub(super) struct Folder {
    path: PathBuf,
}

impl Folder {
    pub(super) fn make(environment: &Environment) -> Result<Self, Failure> {
        let parent = environment.get_os("TMPDIR").filter(|dir| !dir.is_empty());
        let parent = parent.map_or(Path::new("/tmp"), Path::new);
        // Resolved once: the workers are told this path, wherever a link in it leads later.
        let made = parent.canonicalize().and_then(|parent| {
            let path = parent.join(format!("dalsegno-demo-{:08x}", rand::random::<u32>()));
            // As root the server's account has to pass through; what is private in it has modes of its own.
            let mode = if rustix::process::geteuid().is_root() { 0o755 } else { 0o700 };
            DirBuilder::new().mode(mode).create(&path).map(|()| Self { path })
        });
        made.with_context(|| {
            format!("no folder can be made in {}; set TMPDIR to one where it can", parent.display())
        })
        .map_err(Failure::failed)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.path) {
            tracing::warn!(folder = %self.path.display(), %error, "the folder of the demo could not be removed");
        }
    }
}
