//! The folder of one demo: a temporary one, or with `--open` one that stays.
//!
//! A killed demo leaves its folder and its server behind; the next demo removes them. A lock in the folder says if its
//! demo is alive: the kernel releases it at any kind of death. The lock is taken before it gets its final name, so that
//! a folder which is just being made never looks like a leftover.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, anyhow};
use rustix::{fs::OFlags, process::geteuid};

use crate::{
    cli::{Exit, Failure},
    db::embedded,
    settings::Environment,
};

const PREFIX: &str = "dalsegno-demo-";
const LOCK: &str = "demo.lock";
/// Name of the folder that stays, below `service.data_dir`.
const KEPT: &str = "demo";
/// Time limit for stopping a leftover server.
const END_LIMIT: Duration = Duration::from_secs(20);

/// The folder of this demo. A temporary one is removed on drop.
pub(super) struct Folder {
    path: PathBuf,
    is_kept: bool,
    /// Held as long as the folder exists.
    _lock: File,
}

impl Folder {
    pub(super) fn make(environment: &Environment) -> Result<Self, Failure> {
        let parent = parent(environment);
        // Resolved once: workers are given this path, even if a link in it changes later.
        let made = parent.canonicalize().and_then(|parent| {
            let path = parent.join(format!("{PREFIX}{:08x}", rand::random::<u32>()));
            // With root, the server runs under another account and has to pass through. Private files have modes of
            // their own.
            let mode = if geteuid().is_root() { 0o755 } else { 0o700 };
            DirBuilder::new().mode(mode).create(&path)?;
            lock_new(&path).map(|lock| Self { path, is_kept: false, _lock: lock })
        });
        made.with_context(|| {
            format!(
                "cannot create a folder in {}; set TMPDIR to a writable folder",
                parent.display()
            )
        })
        .map_err(Failure::failed)
    }

    /// Opens the folder that stays, which one demo uses at a time.
    pub(super) fn keep(data_dir: &Path) -> Result<Self, Failure> {
        let path = data_dir.join(KEPT);
        let made = fs::create_dir_all(&path).and_then(|()| {
            // Workers have another current folder.
            let path = path.canonicalize()?;
            Ok((lock_file().create(true).truncate(false).open(path.join(LOCK))?, path))
        });
        let shown = path.display();
        let (lock, path) = made
            .with_context(|| {
                format!("cannot create the folder {shown}; set service.data_dir to a writable one")
            })
            .map_err(Failure::failed)?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { path, is_kept: true, _lock: lock }),
            Err(_taken) => {
                let error = anyhow!(
                    "another demo uses {shown}: open the address that it has printed, or end it with Ctrl-C"
                );
                Err(Failure::new(Exit::Conflict, error))
            }
        }
    }

    pub(super) fn is_kept(&self) -> bool {
        self.is_kept
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.is_kept {
            remove(&self.path);
        }
    }
}

/// Stops and removes the leftovers of killed demos of this user, and returns their count.
pub(super) async fn clear_leftovers(environment: &Environment) -> usize {
    let entries = fs::read_dir(parent(environment)).into_iter().flatten().flatten();
    let mut n_cleared = 0;
    for path in entries.map(|entry| entry.path()) {
        let Some(_lock) = lock_left(&path) else { continue };
        match embedded::stop_orphaned_server(&path, END_LIMIT).await {
            Ok(true) if remove(&path) => n_cleared += 1,
            Ok(_) => {}
            Err(error) => {
                tracing::warn!(folder = %path.display(), %error, "cannot stop the processes of a killed demo");
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

/// Takes the lock of a leftover demo. `None`: the demo is alive, or the folder is not a demo of this user.
///
/// Other users can write to the parent folder, so links are not followed and files of other users are not touched.
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
        tracing::warn!(folder = %folder.display(), %error, "cannot remove the folder of a demo");
    }
    removed.is_ok()
}
