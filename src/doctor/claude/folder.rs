//! Check of the folder of sessions and workspaces. It only reads: a diagnosis creates nothing.

use std::path::{Path, PathBuf};

use rustix::fs::{Access, StatVfsMountFlags, access, statvfs};

use super::Finding;
use crate::{config::Config, domain::agents::Agent};

const CHECK: &str = "claude folder";
const WHY: &str = "each session of the CLI has a folder with its transcript, which its turns need";
/// Free space below which a warning is given. The transcript of a long conversation has some ten MB.
const ENOUGH_BYTES: u64 = 1 << 30;
#[cfg(target_os = "linux")]
const TMPFS_MAGIC: rustix::fs::FsWord = 0x0102_1994;

pub(super) fn examine(config: &Config, users: &[&Agent]) -> Vec<Finding> {
    let folder = config.service.data_dir.join("claude");
    let place = nearest(&folder);
    if access(&place, Access::WRITE_OK | Access::EXEC_OK).is_err() {
        let what = format!("cannot write to {}", place.display());
        let fix = "make it writable for the service, or name another service.data_dir";
        return vec![Finding::fail(CHECK, what, WHY, fix)];
    }
    let Ok(system) = statvfs(&place) else {
        let what = format!("cannot read the file system of {}", place.display());
        return vec![Finding::skipped(CHECK, what, WHY)];
    };
    let free_bytes = system.f_bavail.saturating_mul(system.f_frsize);
    let what = format!("{} is writable; {} MiB are free", folder.display(), free_bytes >> 20);
    let mut findings = vec![match free_bytes >= ENOUGH_BYTES {
        true => Finding::ok(CHECK, what, WHY),
        false => {
            Finding::warn(CHECK, what, WHY, "free disk space, or name another service.data_dir")
        }
    }];
    let names = |has: &dyn Fn(&Agent) -> bool| {
        let names: Vec<&str> =
            users.iter().filter(|agent| has(agent)).map(|agent| agent.name.as_str()).collect();
        names.join(", ")
    };
    let shells = names(&|agent| agent.grants.built_in_tools().iter().any(|tool| tool == "Bash"));
    if system.f_flag.contains(StatVfsMountFlags::NOEXEC) && !shells.is_empty() {
        let what = format!("{} is mounted noexec, but {shells} have a shell", place.display());
        let why = "an agent cannot run the programs that it writes";
        let fix = "mount it without noexec, or remove Bash from their files";
        findings.push(Finding::warn(CHECK, what, why, fix));
    }
    let keepers = names(&|agent| agent.grants.workspace);
    if is_in_memory(&place) && !keepers.is_empty() {
        let what =
            format!("{} is in memory, but {keepers} have a workspace in it", place.display());
        let why = "transcripts are stored in the database, but workspaces are lost when the machine restarts";
        let fix = "name a service.data_dir that is on a disk";
        findings.push(Finding::warn(CHECK, what, why, fix));
    }
    findings
}

/// Returns the folder, or its nearest ancestor that exists.
fn nearest(folder: &Path) -> PathBuf {
    let absolute = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    let found = absolute.ancestors().find(|place| place.exists());
    found.unwrap_or(Path::new("/")).to_owned()
}

#[cfg(target_os = "linux")]
fn is_in_memory(place: &Path) -> bool {
    rustix::fs::statfs(place).is_ok_and(|system| system.f_type == TMPFS_MAGIC)
}

#[cfg(not(target_os = "linux"))]
fn is_in_memory(_: &Path) -> bool {
    false
}
