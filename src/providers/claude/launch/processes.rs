//! Children of this process, as `/proc` lists them.
//!
//! A process that has ended meanwhile is left out. Any other failure to read is an error, because an incomplete list would pass for a
//! complete one.

use std::io;

use rustix::{io::Errno, process::Pid};

/// A process, told apart from a later one with the same pid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Process {
    pub(super) pid: i32,
    /// Start in clock ticks since the boot of the machine. `None` if it could not be read, so that only the pid is known.
    started: Option<u64>,
}

impl Process {
    /// Returns the process with this pid, without its start if that cannot be read.
    pub(super) fn with_pid(pid: i32) -> Self {
        let found = stat(pid).ok().flatten();
        found.map_or_else(|| Self::bare(pid), |(process, _parent)| process)
    }

    pub(super) fn bare(pid: i32) -> Self {
        Self { pid, started: None }
    }

    pub(super) fn pid(self) -> Option<Pid> {
        Pid::from_raw(self.pid)
    }
}

/// Lists the children of this process, zombies included. Empty on a system without `/proc`.
pub(super) fn children() -> io::Result<Vec<Process>> {
    let own = std::process::id().cast_signed();
    let entries = match std::fs::read_dir("/proc") {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut children = Vec::new();
    for entry in entries {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else { continue };
        if let Some((process, _)) = stat(pid)?.filter(|(_, parent)| *parent == own) {
            children.push(process);
        }
    }
    Ok(children)
}

/// Reads a file about a process. `None`: the process has ended, or belongs to others on a host that hides those.
pub(super) fn read(pid: i32, file: &str) -> io::Result<Option<String>> {
    match std::fs::read(format!("/proc/{pid}/{file}")) {
        // The name of a process may hold any bytes.
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(error) => match Errno::from_io_error(&error) {
            Some(Errno::NOENT | Errno::SRCH | Errno::ACCESS | Errno::PERM) => Ok(None),
            _ => Err(error),
        },
    }
}

/// Returns a process and the pid of its parent.
fn stat(pid: i32) -> io::Result<Option<(Process, i32)>> {
    let Some(stat) = read(pid, "stat")? else { return Ok(None) };
    parsed(pid, &stat).map(Some).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// Parses `stat`, whose second field is the name in brackets and may hold anything.
fn parsed(pid: i32, stat: &str) -> Option<(Process, i32)> {
    let (_, after_name) = stat.rsplit_once(") ")?;
    let mut fields = after_name.split(' ');
    let parent = fields.nth(1)?.parse().ok()?;
    let started = fields.nth(17)?.parse().ok()?;
    Some((Process { pid, started: Some(started) }, parent))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_a_start_time_and_a_parent() {
        let own = std::process::id().cast_signed();
        let (process, parent) = stat(own).unwrap().unwrap();
        assert_eq!(Process::with_pid(own), process);
        assert_eq!(parent, std::os::unix::process::parent_id().cast_signed());
        assert!(process.started > Some(0));
        assert_eq!(stat(-1).unwrap(), None);
        assert_eq!(Process::with_pid(-1), Process::bare(-1));
    }
}
