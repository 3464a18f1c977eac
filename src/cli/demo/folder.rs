//! The folder that holds everything of one demo, and goes with it.
//!
//! A demo that is killed cannot take its folder with it, nor the server in there; the next one does. Whether a demo lives is
//! told by a lock in its folder, which the kernel gives back on any kind of death. The lock is held before it has its name, so
//! a folder that is being made is never taken for one that was left.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Context as _;
use rustix::{fs::OFlags, process::geteuid};

use crate::{cli::Failure, db::embedded, settings::Environment};

const PREFIX: &str = "dalsegno-demo-";
const LOCK: &str = "demo.lock";
/// What a server that was left may take to end.
const END_LIMIT: Duration = Duration::from_secs(20);

/// Removed when dropped.
pub(super) struct Folder {
    path: PathBuf,
    /// Held as long as the folder is there.
    _lock: File,
}

impl Folder {
    pub(super) fn make(environment: &Environment) -> Result<Self, Failure> {
        let parent = parent(environment);
        // Resolved once: the workers are told this path, wherever a link in it leads later.
        let made = parent.canonicalize().and_then(|parent| {
            let path = parent.join(format!("{PREFIX}{:08x}", rand::random::<u32>()));
            // As root the server's account has to pass through; what is private in it has modes of its own.
            let mode = if geteuid().is_root() { 0o755 } else { 0o700 };
            DirBuilder::new().mode(mode).create(&path)?;
            lock_new(&path).map(|lock| Self { path, _lock: lock })
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
        remove(&self.path);
    }
}

/// Ends and removes what demos of this user that were killed have left, and says how many there were.
pub(super) async fn clear_leftovers(environment: &Environment) -> usize {
    let entries = fs::read_dir(parent(environment)).into_iter().flatten().flatten();
    let mut n_cleared = 0;
    for path in entries.map(|entry| entry.path()) {
        let Some(_lock) = lock_left(&path) else { continue };
        match embedded::end_leftover(&path, END_LIMIT).await {
            Ok(true) if remove(&path) => n_cleared += 1,
            Ok(_) => {}
            Err(error) => {
                tracing::warn!(folder = %path.display(), %error, "what a demo that was killed has left cannot be ended");
            }
        }
    }
    n_cleared
}

fn parent(environment: &Environment) -> PathBuf {
    let parent = environment.get_os("TMPDIR").filter(|dir| !dir.is_empty());
    parent.map_or_else(|| PathBuf::from("/tmp"), PathBuf::from)
}

fn lock_new(folder: &Path) -> std::io::Result<File> {
    let draft = folder.join(format!("{LOCK}.new"));
    let lock = lock_file().create_new(true).open(&draft)?;
    lock.lock()?;
    fs::rename(draft, folder.join(LOCK))?;
    Ok(lock)
}

/// The lock of a demo that is gone. `None`: it lives, or the folder is none of a demo of this user. Others may lay
/// anything into a folder that all can write to, so nothing is followed and nothing of theirs is touched.
fn lock_left(folder: &Path) -> Option<File> {
    let is_named_so = folder.file_name()?.to_str()?.starts_with(PREFIX);
    let is_own = |found: &fs::Metadata| found.uid() == geteuid().as_raw();
    let is_folder =
        fs::symlink_metadata(folder).is_ok_and(|found| found.is_dir() && is_own(&found));
    if !is_named_so || !is_folder {
        return None;
    }
    let lock = lock_file().open(folder.join(LOCK)).ok()?;
    let is_ours = lock.metadata().is_ok_and(|found| is_own(&found));
    (is_ours && lock.try_lock().is_ok()).then_some(lock)
}

fn lock_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600).custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
    options
}

fn remove(folder: &Path) -> bool {
    let removed = fs::remove_dir_all(folder);
    if let Err(error) = &removed {
        tracing::warn!(folder = %folder.display(), %error, "the folder of a demo could not be removed");
    }
    removed.is_ok()
}
