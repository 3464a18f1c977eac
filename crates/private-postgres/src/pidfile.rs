//! The contents of `postmaster.pid`.
//!
//! One value per line: pid, data folder, start time, port, socket folder, listen address, shared memory key, status.
//! The last lines are missing while a server starts. The file describes the past; `process` asks the system if the
//! process still is a postmaster.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::Error;
use super::home::Home;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PidFile {
    pub pid: u32,
    pub port: u16,
    pub socket_folder: Option<PathBuf>,
    pub is_ready: bool,
}

impl PidFile {
    /// Reads the file. Returns `None` if it does not exist or is only half written.
    pub fn read(data: &Path) -> Result<Option<Self>, Error> {
        let path = path_in(data);
        match fs::read_to_string(&path) {
            Ok(text) => Ok(parse(&text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::folder("read", &path)(error)),
        }
    }
}

/// Removes the records of a dead server: `postmaster.pid` and the lock beside its socket. Postgres would refuse to
/// start if the recorded pid now belongs to another live process, which is common in containers, or to an unreaped
/// zombie.
pub(super) fn remove_stale(home: &Home) -> Result<(), Error> {
    remove_if_there(&path_in(&home.data()))?;
    let Ok(entries) = fs::read_dir(home.run()) else {
        return Ok(());
    };
    for entry in entries.flatten() {
        if entry.file_name().to_string_lossy().starts_with(".s.PGSQL.") {
            remove_if_there(&entry.path())?;
        }
    }
    Ok(())
}

fn remove_if_there(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(Error::folder("remove the stale", path)(error))
        }
        _ => Ok(()),
    }
}

fn path_in(data: &Path) -> PathBuf {
    data.join("postmaster.pid")
}

fn parse(text: &str) -> Option<PidFile> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let pid = lines.first()?.parse().ok()?;
    Some(PidFile {
        pid,
        port: lines.get(3).and_then(|port| port.parse().ok()).unwrap_or(0),
        socket_folder: lines.get(4).filter(|folder| !folder.is_empty()).map(PathBuf::from),
        is_ready: lines.get(7) == Some(&"ready"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ready_server_on_a_socket_is_parsed() {
        let text = "4711\n/x/data\n1700000000\n5432\n/x/run\n\n  1234 5\nready   \n";
        let expected =
            PidFile { pid: 4711, port: 5432, socket_folder: Some("/x/run".into()), is_ready: true };
        assert_eq!(parse(text), Some(expected));
    }

    #[test]
    fn a_starting_server_on_loopback_is_parsed() {
        let found =
            parse("4711\n/x/data\n1700000000\n6543\n\n127.0.0.1\n 12 3\nstarting\n").unwrap();
        assert_eq!((found.port, found.socket_folder, found.is_ready), (6543, None, false));
    }

    #[test]
    fn a_half_written_file_is_not_a_record() {
        assert_eq!(parse(""), None);
        assert!(parse("4711\n").is_some_and(|found| !found.is_ready));
    }
}
