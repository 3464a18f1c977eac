//! Who runs a session on this host: the guard that holds the lock of its folder.
//!
//! A worker that was stopped in the middle, by a signal or with its container, has lost its lease when another takes the
//! session over, but its CLI runs on. So whoever takes over first asks the guard that is still there to end all that it
//! has started, and waits until it has. The kernel says who that is: the lock is one of a process, which no child inherits,
//! and which goes with it however it ends. No pid is ever read from a file, so none can be of somebody else.
//!
//! A worker that wakes up finds its claim replaced, and touches nothing any more.

use std::{
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    thread::sleep,
    time::{Duration, Instant},
};

use rustix::{
    fs::{FlockOperation, fcntl_lock},
    io::Errno,
    process::{Flock, FlockType, Signal, fcntl_getlk, kill_process},
};
use uuid::Uuid;

use super::super::transcript::write_private;

/// What tells a guard to end everything at once.
pub(super) const GIVE_UP: Signal = Signal::QUIT;
/// A guard that has been told needs milliseconds; one that is frozen as a whole never ends.
const PATIENCE: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// Says which call has a session's folder for itself. The last one that came.
#[derive(Debug, Clone)]
pub(in crate::providers::claude) struct Claim {
    file: PathBuf,
    call: Uuid,
}

impl Claim {
    pub(super) fn take(folder: &Path, call: Uuid) -> io::Result<Self> {
        let claim = Self { file: folder.join("claim"), call };
        write_private(&claim.file, call.to_string().as_bytes())?;
        Ok(claim)
    }

    /// Busy: another call has come meanwhile, and the folder is no longer ours to change.
    pub(in crate::providers::claude) fn check(&self) -> io::Result<()> {
        match fs::read_to_string(&self.file)? == self.call.to_string() {
            true => Ok(()),
            false => Err(io::ErrorKind::ResourceBusy.into()),
        }
    }
}

/// Makes whoever runs in the folder end. Blocking, for no longer than it may take.
pub(super) fn oust(lock: &Path) -> io::Result<()> {
    let (file, until) = (open(lock)?, Instant::now() + PATIENCE);
    while let Some(holder) = fcntl_getlk(&file, &Flock::from(FlockType::WriteLock))? {
        // In another container its pid means nothing here: then there is only waiting.
        if let Some(guard) = holder.pid {
            let _ = kill_process(guard, GIVE_UP);
            let _ = kill_process(guard, Signal::CONT);
        }
        if Instant::now() > until {
            return Err(io::Error::other("an earlier call of the session does not end"));
        }
        sleep(LOOK_EVERY);
    }
    Ok(())
}

/// Held as long as the file is open. Waits for a predecessor that is about to end.
pub(super) fn hold(lock: &Path) -> io::Result<File> {
    let (file, until) = (open(lock)?, Instant::now() + PATIENCE);
    loop {
        match fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(file),
            Err(Errno::AGAIN | Errno::ACCESS) if Instant::now() < until => sleep(LOOK_EVERY),
            Err(error) => return Err(error.into()),
        }
    }
}

fn open(lock: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(lock)
}
