//! Finds the processes of a cluster and sends signals to them.
//!
//! A pid alone proves nothing: pids are reused, in containers all the time. A process counts only if its name says
//! Postgres *and* it works in the cluster's folder. Where the system hides the folder, the command line has to name it.
//! That happens to root without CAP_SYS_PTRACE in a container, for a process of another user.

#[cfg(target_os = "linux")]
use std::fs;
use std::path::Path;

pub(super) use rustix::process::Signal;
use rustix::process::{Pid, kill_process};

/// Returns true if `pid` is a server process of the cluster in `data`.
pub(super) fn is_server(pid: u32, data: &Path, cluster_name: &str) -> bool {
    #[cfg(target_os = "linux")]
    return belongs(pid, data, cluster_name);
    #[cfg(not(target_os = "linux"))]
    return servers(data, cluster_name).contains(&pid);
}

/// Sends a signal. Ignores processes that are already gone.
pub(super) fn send(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    if let Some(pid) = pid
        && let Err(errno) = kill_process(pid, signal)
    {
        tracing::debug!(pid = pid.as_raw_nonzero(), ?signal, %errno, "cannot deliver a signal");
    }
}

/// Lists all processes of Postgres that work below `folder`: servers, backends, initdb.
#[cfg(target_os = "linux")]
pub(super) fn servers(folder: &Path, cluster_name: &str) -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| belongs(*pid, folder, cluster_name))
        .collect()
}

#[cfg(not(target_os = "linux"))]
pub(super) fn servers(folder: &Path, cluster_name: &str) -> Vec<u32> {
    let listing = super::command::list_processes();
    listing
        .lines()
        .filter_map(|line| line.trim().split_once(' '))
        .filter(|(_, command)| names_cluster(command, folder, cluster_name))
        .filter_map(|(pid, _)| pid.parse().ok())
        .collect()
}

#[cfg(target_os = "linux")]
fn belongs(pid: u32, folder: &Path, cluster_name: &str) -> bool {
    let process = Path::new("/proc").join(pid.to_string());
    let is_postgres = fs::read_to_string(process.join("comm"))
        .is_ok_and(|name| name.contains("postgres") || name.contains("initdb"));
    if !is_postgres {
        return false;
    }
    match fs::read_link(process.join("cwd")) {
        Ok(cwd) => cwd.starts_with(folder),
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            fs::read(process.join("cmdline"))
                .map(|raw| String::from_utf8_lossy(&raw).replace('\0', " "))
                .is_ok_and(|command| names_cluster(&command, folder, cluster_name))
        }
        Err(_) => false,
    }
}

/// Returns true if the command line belongs to the cluster. The arguments of a postmaster or initdb name the folder; a
/// backend's title names the cluster.
fn names_cluster(command: &str, folder: &Path, cluster_name: &str) -> bool {
    if let Some(title) = command.strip_prefix("postgres: ") {
        return title.starts_with(&format!("{cluster_name}: "));
    }
    let program = command.split(' ').next().unwrap_or_default();
    let is_postgres = program.contains("postgres") || program.ends_with("initdb");
    let folder = folder.to_string_lossy();
    is_postgres
        && command.split(" -D ").skip(1).any(|rest| {
            rest.strip_prefix(&*folder)
                .is_some_and(|end| end.is_empty() || end.starts_with([' ', '/']))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_and_arguments_name_the_cluster() {
        let check = |command: &str| names_cluster(command, Path::new("/srv/x/data"), "dalsegno-ab");
        assert!(check("/usr/lib/postgresql/15/bin/postgres -D /srv/x/data -c port=5432"));
        assert!(check("/opt/bin/initdb -D /srv/x/data"));
        assert!(check("postgres: dalsegno-ab: checkpointer "));
        assert!(!check("/usr/lib/postgresql/15/bin/postgres -D /srv/x/data2"));
        assert!(!check("postgres: dalsegno-cd: checkpointer "));
        assert!(!check("vim -D /srv/x/data"));
    }

    #[test]
    fn a_running_process_of_another_kind_is_not_a_server() {
        let here = std::env::current_dir().unwrap();
        assert!(!is_server(std::process::id(), &here, "dalsegno-ab"));
    }
}
