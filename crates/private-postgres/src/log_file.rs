//! The server's log: its tail for error messages, and a limit on its size.
//!
//! The server appends to the open file as long as it lives, so the file cannot be renamed. A log that has grown too
//! long is copied aside and truncated in place. Lines that the server writes between the two steps are lost, a few at
//! worst.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use super::Error;
use super::home::private_file_options;

const MAX_BYTES: u64 = 4 * 1024 * 1024;
const TAIL_BYTES: u64 = 8 * 1024;
const TAIL_LINES: usize = 20;

/// Opens the log for a server to append to, and returns its present length.
pub(super) fn open(path: &Path) -> Result<(File, u64), Error> {
    limit_size(path).map_err(Error::folder("bound the log", path))?;
    let file = private_file_options()
        .append(true)
        .open(path)
        .map_err(Error::folder("open the log", path))?;
    let length = file.metadata().map_err(Error::folder("look at", path))?.len();
    Ok((file, length))
}

/// Keeps the log and its one predecessor below the limit each.
pub(super) fn limit_size(path: &Path) -> io::Result<()> {
    let length = match fs::symlink_metadata(path) {
        Ok(found) => found.len(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if length <= MAX_BYTES {
        return Ok(());
    }
    let mut full = private_file_options().read(true).write(true).open(path)?;
    full.seek(SeekFrom::Start(length - MAX_BYTES))?;
    let mut aside =
        private_file_options().write(true).truncate(true).open(path.with_extension("log.1"))?;
    io::copy(&mut (&full).take(MAX_BYTES), &mut aside)?;
    full.set_len(0)
}

/// Returns the last lines that were written at or after `from_byte`.
pub(super) fn tail(path: &Path, from_byte: u64) -> String {
    read_tail(path, from_byte).unwrap_or_else(|error| format!("(cannot be read: {error})"))
}

/// Returns the last lines of an output.
pub(super) fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
}

fn read_tail(path: &Path, from_byte: u64) -> io::Result<String> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    let start = from_byte.min(length).max(length.saturating_sub(TAIL_BYTES));
    file.seek(SeekFrom::Start(start))?;
    let mut raw = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut raw)?;
    Ok(last_lines(&String::from_utf8_lossy(&raw)))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_long_log_is_cut_and_its_end_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("server.log");
        let (mut server, _) = open(&path).unwrap();
        for n in 0..200_000 {
            writeln!(server, "line {n} of a server that has much to say").unwrap();
        }
        limit_size(&path).unwrap();
        writeln!(server, "after the cut").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "after the cut\n");
        let aside = fs::read_to_string(folder.path().join("server.log.1")).unwrap();
        assert!(aside.len() as u64 <= MAX_BYTES);
        assert!(aside.ends_with("line 199999 of a server that has much to say\n"));
    }

    #[test]
    fn a_log_tail_begins_at_the_servers_start() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("server.log");
        fs::write(&path, "old\n").unwrap();
        let (mut server, from_byte) = open(&path).unwrap();
        writeln!(server, "new").unwrap();
        assert_eq!(tail(&path, from_byte), "new");
    }
}
