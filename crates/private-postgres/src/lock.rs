//! The lock that allows at most one service per folder.
//!
//! The kernel holds the lock as long as the file is open and drops it however the process dies. The file is never
//! removed: removing a lock file is a race. Rust opens files close-on-exec, so no child keeps the lock alive.

use std::fs::{self, File};
use std::io::{Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::Error;
use super::home::private_file_options;

/// The kind of process that owns a folder. It tells others how long they may have to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// Runs until it is stopped.
    Service,
    /// Runs until its task is done.
    Command,
}

/// The process that took a lock, as recorded in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holder {
    pub pid: u32,
    pub owner: Owner,
}

/// The right to run the server of a folder.
#[derive(Debug)]
pub(super) struct FolderLock {
    file: File,
}

impl FolderLock {
    /// Takes the lock and records this process in the file.
    pub fn take(path: &Path, data_dir: &Path, owner: Owner) -> Result<Self, Error> {
        loop {
            let mut file = open(path)?;
            if !try_lock(&file, path)? {
                return Err(Error::AlreadyRunning {
                    data_dir: data_dir.to_path_buf(),
                    holder: read_holder(path),
                });
            }
            // The folder may have been removed between the opening and the locking. A lock on an unlinked file would
            // exclude no other process.
            if is_still_at(&file, path) {
                write_holder(&mut file, owner).map_err(Error::folder("write", path))?;
                return Ok(Self { file });
            }
        }
    }

    pub fn path_in(data_dir: &Path) -> PathBuf {
        data_dir.join("service.lock")
    }
}

impl Drop for FolderLock {
    /// Unlocks explicitly. Closing the file is not enough while another thread starts a child: until the child executes
    /// its program it holds a copy of the file, and with it the lock.
    fn drop(&mut self) {
        if let Err(errno) = flock(&self.file, FlockOperation::Unlock) {
            tracing::debug!(%errno, "cannot remove the lock file of the data folder");
        }
    }
}

fn open(path: &Path) -> Result<File, Error> {
    private_file_options()
        .read(true)
        .write(true)
        .truncate(false)
        // Other processes read the holder.
        .mode(0o644)
        .open(path)
        .map_err(Error::folder("open the lock", path))
}

/// Returns true if the lock was taken, false if another process holds it.
pub(super) fn try_lock(file: &File, path: &Path) -> Result<bool, Error> {
    loop {
        return match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(true),
            Err(Errno::WOULDBLOCK) => Ok(false),
            Err(Errno::INTR) => continue,
            Err(errno) => Err(Error::folder("lock", path)(errno.into())),
        };
    }
}

fn is_still_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), fs::metadata(path)) {
        (Ok(held), Ok(named)) => held.ino() == named.ino() && held.dev() == named.dev(),
        _ => false,
    }
}

pub(super) fn read_holder(path: &Path) -> Option<Holder> {
    let text = fs::read_to_string(path).ok()?;
    let (pid, owner) = text.split_once('\n')?;
    let owner = match owner.trim() {
        "command" => Owner::Command,
        _ => Owner::Service,
    };
    Some(Holder { pid: pid.parse().ok()?, owner })
}

fn write_holder(file: &mut File, owner: Owner) -> std::io::Result<()> {
    let owner = match owner {
        Owner::Service => "service",
        Owner::Command => "command",
    };
    file.set_len(0)?;
    file.rewind()?;
    // In one write, because other processes may read it at any time.
    file.write_all(format!("{}\n{owner}\n", std::process::id()).as_bytes())
}
