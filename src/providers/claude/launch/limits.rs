//! Resource limits of the CLI and of everything that it starts.
//!
//! The guard sets them before it starts the CLI, and children inherit them. In a control group (cgroup v2) memory and processes are counted
//! together, and the kernel reports when it has killed for the limit. Without a group, resource limits are used instead: the memory limit
//! applies to each single process, and processes are counted per user, root excepted.
//!
//! `RLIMIT_DATA` is used, and not `RLIMIT_AS`: runtimes reserve address space by the gigabyte. `RLIMIT_DATA` does not count reserved space
//! that cannot be written.

use std::{
    ffi::{OsStr, OsString},
    fs, io,
    path::{Path, PathBuf},
};

use rustix::process::{Pid, Resource, Rlimit, Signal};

/// Limits of a CLI; 0 disables each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::providers::claude) struct Limits {
    pub file_max_bytes: u64,
    pub memory_max_bytes: u64,
    /// Maximum number of processes and threads.
    pub processes_max: u64,
    /// Folder of cgroup v2 in which this process may make groups.
    pub cgroup: PathBuf,
}

/// The control group of one call.
#[derive(Debug)]
pub(super) struct Group {
    folder: PathBuf,
}

const PREFIX: &str = "dalsegno-";

impl Limits {
    /// Returns the arguments of the guard in front of the program.
    pub(super) fn arguments(&self) -> [OsString; 4] {
        let number = |n: u64| OsString::from(n.to_string());
        [
            number(self.file_max_bytes),
            number(self.memory_max_bytes),
            number(self.processes_max),
            self.cgroup.clone().into(),
        ]
    }

    pub(super) fn from_arguments(arguments: &mut impl Iterator<Item = OsString>) -> Option<Self> {
        let mut number = || arguments.next()?.to_str()?.parse().ok();
        Some(Self {
            file_max_bytes: number()?,
            memory_max_bytes: number()?,
            processes_max: number()?,
            cgroup: arguments.next()?.into(),
        })
    }

    /// Ends the processes that a killed guard has left in its control group. Does nothing without groups.
    pub(super) fn end_group_of(&self, guard: u32) {
        if self.cgroup.as_os_str().is_empty() {
            return;
        }
        let group = Group { folder: self.cgroup.join(format!("{PREFIX}{guard}")) };
        group.kill();
        // Fails while the group is in use; the next guard removes it.
        group.remove();
    }

    /// Limits this process, and everything that it starts from now on.
    pub(super) fn apply(&self) -> io::Result<Option<Group>> {
        // A core dump would contain the conversation and the credential.
        set(Resource::Core, Some(0));
        set(Resource::Fsize, nonzero(self.file_max_bytes));
        if !self.cgroup.as_os_str().is_empty() {
            return Group::join(self).map(Some);
        }
        set(Resource::Data, nonzero(self.memory_max_bytes));
        set(Resource::Nproc, nonzero(self.processes_max));
        Ok(None)
    }
}

impl Group {
    fn join(limits: &Limits) -> io::Result<Self> {
        // Removes groups of guards that were killed themselves. Groups in use stay.
        for entry in fs::read_dir(&limits.cgroup)?.flatten() {
            if entry.file_name().to_string_lossy().starts_with(PREFIX) {
                let _ = fs::remove_dir(entry.path());
            }
        }
        let folder = limits.cgroup.join(format!("{PREFIX}{}", std::process::id()));
        fs::create_dir(&folder)?;
        let group = Self { folder };
        if let Some(bytes) = nonzero(limits.memory_max_bytes) {
            group.write("memory.max", bytes)?;
            // `memory.max` does not count swapped memory. Without swap the file does not exist.
            let _ = group.write("memory.swap.max", 0);
        }
        if let Some(n) = nonzero(limits.processes_max) {
            group.write("pids.max", n)?;
        }
        group.write("cgroup.procs", std::process::id().into())?;
        Ok(group)
    }

    /// Moves the guard out: the kernel must not kill it, and the group can be removed without it.
    pub(super) fn step_out(&self, home: Option<&Path>) {
        if let Some(home) = home {
            let _ = fs::write(home.join("cgroup.procs"), std::process::id().to_string());
        }
    }

    /// Kills everything in the group, at once where the kernel can (Linux 5.14).
    fn kill(&self) {
        if self.write("cgroup.kill", 1).is_ok() {
            return;
        }
        let members = fs::read_to_string(self.folder.join("cgroup.procs")).unwrap_or_default();
        let pids = members.lines().filter_map(|line| Pid::from_raw(line.parse().ok()?));
        pids.for_each(|pid| _ = rustix::process::kill_process(pid, Signal::KILL));
    }

    /// Returns true if the kernel has killed a process of the group for its memory.
    pub(super) fn has_killed(&self) -> bool {
        let events = fs::read_to_string(self.folder.join("memory.events")).unwrap_or_default();
        let killed = events.lines().filter_map(|line| line.strip_prefix("oom_kill "));
        killed.filter_map(|n| n.trim().parse::<u64>().ok()).any(|n| n > 0)
    }

    /// Removes the group if nothing runs in it. Otherwise the next guard does.
    pub(super) fn remove(self) {
        let _ = fs::remove_dir(&self.folder);
    }

    fn write(&self, file: &str, value: u64) -> io::Result<()> {
        fs::write(self.folder.join(file), value.to_string())
    }
}

/// Returns the group of this process, in the hierarchy that `folder` belongs to.
pub(super) fn own_group(folder: &Path) -> Option<PathBuf> {
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = own.lines().find_map(|line| line.strip_prefix("0::/"))?;
    // The root of the hierarchy is the topmost folder that has this file.
    let is_group = |folder: &&Path| folder.join("cgroup.procs").exists();
    let root = folder.ancestors().take_while(is_group).last()?;
    Some(root.join(OsStr::new(own)))
}

fn nonzero(limit: u64) -> Option<u64> {
    Some(limit).filter(|limit| *limit > 0)
}

fn set(resource: Resource, limit: Option<u64>) {
    if let Some(n) = limit {
        // A limit that is lower already cannot be raised, and need not be.
        let _ = rustix::process::setrlimit(resource, Rlimit { current: Some(n), maximum: Some(n) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guard_receives_the_workers_limits() {
        let limits = Limits {
            file_max_bytes: 1,
            memory_max_bytes: 2,
            processes_max: 3,
            cgroup: "/a b".into(),
        };
        let mut arguments = limits.arguments().into_iter();
        assert_eq!(Limits::from_arguments(&mut arguments), Some(limits));
        assert_eq!(Limits::from_arguments(&mut ["x".into()].into_iter()), None);
    }

    #[test]
    fn an_out_of_memory_kill_is_recognised_by_the_groups_own_counter() {
        let folder = tempfile::tempdir().unwrap();
        let group = Group { folder: folder.path().to_owned() };
        assert!(!group.has_killed());
        for (events, killed) in [("oom 3\noom_kill 0\n", false), ("oom_kill 2\n", true)] {
            fs::write(folder.path().join("memory.events"), events).unwrap();
            assert_eq!(group.has_killed(), killed, "{events}");
        }
    }
}
