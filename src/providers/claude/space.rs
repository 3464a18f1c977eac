//! Check of this host's disk space: without it the CLI answers and is paid, but stores nothing.

use std::{io, path::Path};

use rustix::fs::statvfs;

/// Space for the prompts, files and transcript of a turn. Only its tools may write more.
const NEEDED_BYTES: u64 = 16 << 20;

/// Fails if the volume of `folder` has no space for a turn.
pub(super) fn require(folder: &Path) -> io::Result<()> {
    let volume = statvfs(folder)?;
    let free_bytes = volume.f_bavail.saturating_mul(volume.f_frsize);
    if free_bytes < NEEDED_BYTES {
        let words = format!("{free_bytes} bytes are free, but a turn needs {NEEDED_BYTES}");
        return Err(io::Error::new(io::ErrorKind::StorageFull, words));
    }
    Ok(())
}

/// Returns true if a file could not be written because its volume, or the quota of the account, is used up.
pub fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}
