//! Processes that a killed guard leaves behind.
//!
//! A command of an agent runs under the worker's own account, so it can kill its guard. The processes below that guard would then belong to
//! the system, and outlive the turn. So the worker is a subreaper, too: orphans of its guards become its children, and it ends them.
//!
//! A worker has other children, and adopts some, such as processes of the private Postgres. It ends only descendants of guards, which carry
//! a mark: each guard lowers its hard limit of file locks by one. The kernel has not enforced this limit since Linux 2.4. Children inherit
//! it even if they change their environment, group or session, and only `CAP_SYS_RESOURCE` raises it again.

use std::{
    collections::BTreeSet,
    io,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitOptions, getrlimit, kill_process, setrlimit, waitpid,
};

use super::processes::{Process, children, read};

/// Time to wait for killed processes. They end at once, unless the kernel is busy with them.
const PATIENCE: Duration = Duration::from_secs(2);
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Guards of this process. They carry the mark, too, and are waited for elsewhere.
static GUARDS: Mutex<BTreeSet<Process>> = Mutex::new(BTreeSet::new());

/// Entry of a guard in the list, to be dropped when the guard has ended.
#[derive(Debug)]
pub(super) struct GuardEntry(Option<Process>);

/// Marks this process and everything that it starts from now on as belonging to a guard.
pub(super) fn mark() {
    let lowered = limit().map(|limit| Rlimit { current: Some(limit), maximum: Some(limit) });
    if let Some(lowered) = lowered {
        let _ = setrlimit(Resource::Locks, lowered);
    }
}

/// Starts a guard whose orphans come to this process. `spawn` returns it with its pid.
pub(super) fn start_guard<T>(
    spawn: impl FnOnce() -> io::Result<(T, Option<i32>)>,
) -> io::Result<(T, GuardEntry)> {
    #[cfg(target_os = "linux")]
    rustix::process::set_child_subreaper(Pid::from_raw(std::process::id().cast_signed()))?;
    // Held during the start, so that a search for orphans does not take an unlisted guard for one.
    let mut guards = guards();
    let (started, pid) = spawn()?;
    let process = pid.map(Process::with_pid);
    guards.extend(process);
    Ok((started, GuardEntry(process)))
}

/// Ends the orphans of all killed guards, and the processes that these start meanwhile.
pub(super) async fn end_all() {
    let until = Instant::now() + PATIENCE;
    loop {
        let found = tokio::task::spawn_blocking(find).await.unwrap_or_else(|lost| Err(lost.into()));
        let is_late = Instant::now() > until;
        match found {
            Ok(found) if found.is_empty() => return,
            Ok(found) if is_late => {
                let pids: Vec<i32> = found.iter().map(|process| process.pid).collect();
                tracing::error!(?pids, "cannot stop processes of a turn: kill them");
                return;
            }
            Ok(found) => found.into_iter().filter_map(Process::pid).for_each(end),
            Err(error) if is_late => {
                tracing::error!(%error, "cannot read /proc: check for leftover processes of turns");
                return;
            }
            // For example, too many files are open, which passes.
            Err(_) => {}
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

impl Drop for GuardEntry {
    fn drop(&mut self) {
        if let Some(process) = &self.0 {
            guards().remove(process);
        }
    }
}

fn end(pid: Pid) {
    let _ = kill_process(pid, Signal::KILL);
    let _ = waitpid(Some(pid), WaitOptions::NOHANG);
}

fn find() -> io::Result<Vec<Process>> {
    let guards = guards();
    let mut orphans = Vec::new();
    for child in children()? {
        if !is_guard(&guards, child) && is_marked(child.pid)? {
            orphans.push(child);
        }
    }
    Ok(orphans)
}

fn is_guard(guards: &BTreeSet<Process>, child: Process) -> bool {
    guards.contains(&child) || guards.contains(&Process::bare(child.pid))
}

fn guards() -> MutexGuard<'static, BTreeSet<Process>> {
    GUARDS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the limit that marks descendants of this process's guards. `None`: the limit of this process is 0 and cannot be lowered.
fn limit() -> Option<u64> {
    getrlimit(Resource::Locks).maximum.unwrap_or(u64::MAX / 2).checked_sub(1)
}

fn is_marked(pid: i32) -> io::Result<bool> {
    let Some(marked) = limit() else { return Ok(false) };
    Ok(hard_limit(pid)?.is_some_and(|limit| limit <= marked))
}

/// Returns the hard limit of file locks of a process. `None` if it has none, or if it cannot be read.
fn hard_limit(pid: i32) -> io::Result<Option<u64>> {
    let limits = read(pid, "limits")?.unwrap_or_default();
    let line = limits.lines().find_map(|line| line.strip_prefix("Max file locks"));
    Ok(line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_guard_is_listed_until_it_ends_even_by_pid_alone() {
        let own = Process::with_pid(std::process::id().cast_signed());
        for listed in [own, Process::bare(own.pid)] {
            guards().insert(listed);
            assert!(is_guard(&guards(), own));
            drop(GuardEntry(Some(listed)));
            assert!(!is_guard(&guards(), own));
        }
    }
}
