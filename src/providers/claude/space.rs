//! Disk space on this host: without it the CLI answers, is paid, and stores nothing.

use std::{io, path::Path};

use rustix::fs::statvfs;

/// The prompts, files and transcript of a turn are smaller, except where its tools write much.
const NEEDED_BYTES: u64 = 16 << 20;

/// Fails where the volume of `folder` has no space for a turn.
pub(super) fn require(folder: &Path) -> io::Result<()> {
    let volume = statvfs(folder)?;
    let free_bytes = volume.f_bavail.saturating_mul(volume.f_frsize);
    if free_bytes < NEEDED_BYTES {
        let words = format!("{free_bytes} bytes are free, and a turn needs {NEEDED_BYTES}");
        return Err(io::Error::new(io::ErrorKind::StorageFull, words));
    }
    Ok(())
}

/// True if a file could not be written because its volume, or the quota of the account, is used up.
pub fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}
