//! Processes that a killed guard leaves behind.
//!
//! A command of an agent runs under the worker's own account, so it can kill its guard. What the guard has watched would then belong
//! to the system, and outlive the turn. Therefore the worker is a subreaper too: orphans of its guards become its children, and it
//! ends them.
//!
//! A worker has other children, some of which it adopts as well, such as processes of the private Postgres. It ends only descendants
//! of guards: each guard lowers its hard limit of file locks by one. The kernel has enforced no such limit since Linux 2.4,
//! children inherit it even if they change their environment, group or session, and only `CAP_SYS_RESOURCE` raises it again.

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

/// What is killed ends at once, unless the kernel is busy with it.
const PATIENCE: Duration = Duration::from_secs(2);
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// The guards of this process. They are marked too, and are waited for elsewhere.
static GUARDS: Mutex<BTreeSet<Process>> = Mutex::new(BTreeSet::new());

/// A guard on the list. To be dropped when it has ended.
#[derive(Debug)]
pub(super) struct Listed(Option<Process>);

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
) -> io::Result<(T, Listed)> {
    #[cfg(target_os = "linux")]
    rustix::process::set_child_subreaper(Pid::from_raw(std::process::id().cast_signed()))?;
    // Held over the start: no search for orphans runs while a guard is not listed yet.
    let mut guards = guards();
    let (started, pid) = spawn()?;
    let process = pid.map(Process::with_pid);
    guards.extend(process);
    Ok((started, Listed(process)))
}

/// Ends the orphans of all killed guards, and what these start meanwhile.
pub(super) async fn end_all() {
    let until = Instant::now() + PATIENCE;
    loop {
        let found = tokio::task::spawn_blocking(find).await.unwrap_or_else(|lost| Err(lost.into()));
        let is_late = Instant::now() > until;
        match found {
            Ok(found) if found.is_empty() => return,
            Ok(found) if is_late => {
                let pids: Vec<i32> = found.iter().map(|process| process.pid).collect();
                tracing::error!(?pids, "processes of a turn do not end; end them by hand");
                return;
            }
            Ok(found) => found.into_iter().filter_map(Process::pid).for_each(end),
            Err(error) if is_late => {
                tracing::error!(%error, "/proc cannot be read; look for processes of a turn by hand");
                return;
            }
            // Such as too many open files: soon there are fewer.
            Err(_) => {}
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

impl Drop for Listed {
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

/// The limit that marks what a guard of this process starts. `None`: this process is at 0, and nothing is below it.
fn limit() -> Option<u64> {
    getrlimit(Resource::Locks).maximum.unwrap_or(u64::MAX / 2).checked_sub(1)
}

fn is_marked(pid: i32) -> io::Result<bool> {
    let Some(marked) = limit() else { return Ok(false) };
    Ok(hard_limit(pid)?.is_some_and(|limit| limit <= marked))
}

/// The hard limit of file locks of a process; `None` where it has none, or cannot be asked.
fn hard_limit(pid: i32) -> io::Result<Option<u64>> {
    let limits = read(pid, "limits")?.unwrap_or_default();
    let line = limits.lines().find_map(|line| line.strip_prefix("Max file locks"));
    Ok(line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_guard_is_listed_until_it_has_ended_also_with_its_pid_alone() {
        let own = Process::with_pid(std::process::id().cast_signed());
        for listed in [own, Process::bare(own.pid)] {
            guards().insert(listed);
            assert!(is_guard(&guards(), own));
            drop(Listed(Some(listed)));
            assert!(!is_guard(&guards(), own));
        }
    }
}
