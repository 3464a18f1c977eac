//! The children of this process, as `/proc` lists them.

use rustix::process::Pid;

/// A process that is told from a later one with the same pid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Process {
    pub(super) pid: i32,
    /// Clock ticks since the boot of the machine.
    started: u64,
}

impl Process {
    /// `None`: there is no such process.
    pub(super) fn with_pid(pid: i32) -> Option<Self> {
        stat(pid).map(|(process, _parent)| process)
    }

    pub(super) fn pid(self) -> Option<Pid> {
        Pid::from_raw(self.pid)
    }
}

/// The children of this process, zombies included. Empty where the system does not list them.
pub(super) fn children() -> Vec<Process> {
    let own = std::process::id().cast_signed();
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    let pids =
        entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let found = pids.filter_map(stat).filter(|(_, parent)| *parent == own);
    found.map(|(process, _)| process).collect()
}

/// A process and the pid of its parent. The second field of `stat` is the name in brackets, and may hold anything.
fn stat(pid: i32) -> Option<(Process, i32)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, after_name) = stat.rsplit_once(") ")?;
    let mut fields = after_name.split(' ');
    let parent = fields.nth(1)?.parse().ok()?;
    let started = fields.nth(17)?.parse().ok()?;
    Some((Process { pid, started }, parent))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_its_own_start_and_parent() {
        let own = std::process::id().cast_signed();
        let (process, parent) = stat(own).unwrap();
        assert_eq!(Process::with_pid(own), Some(process));
        assert_eq!(parent, std::os::unix::process::parent_id().cast_signed());
        assert!(process.started > 0);
        assert_eq!(Process::with_pid(-1), None);
    }
}
