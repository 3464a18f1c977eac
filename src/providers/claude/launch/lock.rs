//! Lock of a session's folder, which the guard of the running call holds.
//!
//! A worker that was stopped, by a signal or with its container, loses its lease when another one takes the session over. Its CLI runs on.
//! So the new worker first asks the old guard to end everything that it has started, and waits for that. The kernel tells which process
//! that is: the lock belongs to a process, no child inherits it, and it ends with the process. No pid is read from a file, so a reused pid
//! is never hit.
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

/// Signal that tells a guard to end everything at once.
pub(super) const KILL_ALL_SIGNAL: Signal = Signal::QUIT;
/// Time to wait for a guard. It needs milliseconds; one that is frozen as a whole never ends.
const PATIENCE: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// Claim of the last call that came: it has the session's folder to itself.
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

    /// Returns `ResourceBusy` if another call has claimed the folder meanwhile, and this one must not change it.
    pub(in crate::providers::claude) fn check(&self) -> io::Result<()> {
        match fs::read_to_string(&self.file)? == self.call.to_string() {
            true => Ok(()),
            false => Err(io::ErrorKind::ResourceBusy.into()),
        }
    }
}

/// Ends the call that runs in the folder. Blocks for `PATIENCE` at most.
pub(super) fn end_running_call(lock: &Path) -> io::Result<()> {
    let (file, until) = (open(lock)?, Instant::now() + PATIENCE);
    while let Some(holder) = fcntl_getlk(&file, &Flock::from(FlockType::WriteLock))? {
        // A pid of another container means nothing here: then the loop only waits.
        if let Some(guard) = holder.pid {
            let _ = kill_process(guard, KILL_ALL_SIGNAL);
            let _ = kill_process(guard, Signal::CONT);
        }
        if Instant::now() > until {
            return Err(io::Error::other("an earlier call of the session does not end"));
        }
        sleep(LOOK_EVERY);
    }
    Ok(())
}

/// Takes the lock, and waits for a predecessor that is about to end. The lock is held as long as the file is open.
pub(super) fn wait_for_lock(lock: &Path) -> io::Result<File> {
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
