//! What the CLI and all that it starts may use of the machine.
//!
//! The guard sets them before it starts the CLI, and children inherit them. In a control group (cgroup v2) memory and
//! processes are counted together, and the kernel says when it has killed for the limit. Where no group is configured,
//! resource limits have to do: memory then is what each single process may have for itself, and processes are counted
//! for the user as a whole, root excepted.
//!
//! `RLIMIT_DATA` and not `RLIMIT_AS`: address space that is only set aside, which runtimes do by the gigabyte, is not
//! counted there as far as it cannot be written.

use std::{
    ffi::{OsStr, OsString},
    fs, io,
    path::{Path, PathBuf},
};

use rustix::process::{Pid, Resource, Rlimit, Signal};

/// 0: any.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::providers::claude) struct Limits {
    pub file_max_bytes: u64,
    pub memory_max_bytes: u64,
    /// Threads are counted too.
    pub processes_max: u64,
    /// A folder of cgroup v2 in which this process may make groups.
    pub cgroup: PathBuf,
}

/// The control group of one call.
#[derive(Debug)]
pub(super) struct Group {
    folder: PathBuf,
}

const PREFIX: &str = "dalsegno-";

impl Limits {
    /// What the guard is told, in front of the program.
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

    /// Ends what a killed guard has left in its control group. Without groups there is nothing to do.
    pub(super) fn end_group_of(&self, guard: u32) {
        if self.cgroup.as_os_str().is_empty() {
            return;
        }
        let group = Group { folder: self.cgroup.join(format!("{PREFIX}{guard}")) };
        group.kill();
        // As long as it is in use this fails, and the next guard removes it.
        group.remove();
    }

    /// Limits this process, and so whatever it starts from now on.
    pub(super) fn apply(&self) -> io::Result<Option<Group>> {
        // A core would hold the conversation and the credential.
        set(Resource::Core, Some(0));
        set(Resource::Fsize, wanted(self.file_max_bytes));
        if !self.cgroup.as_os_str().is_empty() {
            return Group::join(self).map(Some);
        }
        set(Resource::Data, wanted(self.memory_max_bytes));
        set(Resource::Nproc, wanted(self.processes_max));
        Ok(None)
    }
}

impl Group {
    fn join(limits: &Limits) -> io::Result<Self> {
        // What guards left behind that were killed themselves. A group that is in use is not removed.
        for entry in fs::read_dir(&limits.cgroup)?.flatten() {
            if entry.file_name().to_string_lossy().starts_with(PREFIX) {
                let _ = fs::remove_dir(entry.path());
            }
        }
        let folder = limits.cgroup.join(format!("{PREFIX}{}", std::process::id()));
        fs::create_dir(&folder)?;
        let group = Self { folder };
        if let Some(bytes) = wanted(limits.memory_max_bytes) {
            group.write("memory.max", bytes)?;
            // What is swapped out is not in it. Where there is no swap, there is no such file.
            let _ = group.write("memory.swap.max", 0);
        }
        if let Some(n) = wanted(limits.processes_max) {
            group.write("pids.max", n)?;
        }
        group.write("cgroup.procs", std::process::id().into())?;
        Ok(group)
    }

    /// The guard itself goes back: it must not be what the kernel kills, and the group can be removed without it.
    pub(super) fn step_out(&self, home: Option<&Path>) {
        if let Some(home) = home {
            let _ = fs::write(home.join("cgroup.procs"), std::process::id().to_string());
        }
    }

    /// Kills everything in it, at once where the kernel can (Linux 5.14).
    fn kill(&self) {
        if self.write("cgroup.kill", 1).is_ok() {
            return;
        }
        let members = fs::read_to_string(self.folder.join("cgroup.procs")).unwrap_or_default();
        let pids = members.lines().filter_map(|line| Pid::from_raw(line.parse().ok()?));
        pids.for_each(|pid| _ = rustix::process::kill_process(pid, Signal::KILL));
    }

    /// Whether the kernel has killed something in it for its memory.
    pub(super) fn has_killed(&self) -> bool {
        let events = fs::read_to_string(self.folder.join("memory.events")).unwrap_or_default();
        let killed = events.lines().filter_map(|line| line.strip_prefix("oom_kill "));
        killed.filter_map(|n| n.trim().parse::<u64>().ok()).any(|n| n > 0)
    }

    /// Once nothing runs in it any more. Otherwise the next guard does it.
    pub(super) fn remove(self) {
        let _ = fs::remove_dir(&self.folder);
    }

    fn write(&self, file: &str, value: u64) -> io::Result<()> {
        fs::write(self.folder.join(file), value.to_string())
    }
}

/// The group that this process is in, in the hierarchy that `folder` belongs to.
pub(super) fn own_group(folder: &Path) -> Option<PathBuf> {
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = own.lines().find_map(|line| line.strip_prefix("0::/"))?;
    // The root of the hierarchy is the topmost folder that has this file.
    let is_group = |folder: &&Path| folder.join("cgroup.procs").exists();
    let root = folder.ancestors().take_while(is_group).last()?;
    Some(root.join(OsStr::new(own)))
}

fn wanted(limit: u64) -> Option<u64> {
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
    fn the_guard_is_told_what_the_worker_wants() {
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
    fn a_kill_for_memory_is_known_by_the_groups_own_count() {
        let folder = tempfile::tempdir().unwrap();
        let group = Group { folder: folder.path().to_owned() };
        assert!(!group.has_killed());
        for (events, killed) in [("oom 3\noom_kill 0\n", false), ("oom_kill 2\n", true)] {
            fs::write(folder.path().join("memory.events"), events).unwrap();
            assert_eq!(group.has_killed(), killed, "{events}");
        }
    }
}
