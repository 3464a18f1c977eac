//! Processes that a killed guard leaves behind.
//!
//! A command of an agent runs under the worker's own account, so it can kill its guard. What the guard has watched would then belong
//! to the system, and outlive the turn. Therefore the worker is a subreaper too: orphans of its guards become its children, and it
//! ends them.
//!
//! A worker has other children, some of which it adopts as well, such as processes of the private Postgres. It ends only descendants
//! of guards: each guard lowers its hard limit of file locks by one. The kernel has enforced no such limit since Linux 2.4,
//! children inherit it whatever they do to their environment, group or session, and only `CAP_SYS_RESOURCE` raises it again.

use std::{
    collections::BTreeSet,
    io,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitOptions, getrlimit, kill_process, setrlimit, waitpid,
};

use super::processes::{Process, children};

/// What is killed ends at once, unless the kernel is busy with it.
const PATIENCE: Duration = Duration::from_secs(2);
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// The guards of this process. They are marked too, and are waited for elsewhere.
static GUARDS: Mutex<BTreeSet<Process>> = Mutex::new(BTreeSet::new());

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
) -> io::Result<T> {
    #[cfg(target_os = "linux")]
    rustix::process::set_child_subreaper(Pid::from_raw(std::process::id().cast_signed()))?;
    // Held over the start: nobody looks for orphans while a guard is not listed yet.
    let mut guards = guards();
    let (started, pid) = spawn()?;
    guards.extend(pid.and_then(Process::with_pid));
    Ok(started)
}

/// Ends the orphans of all killed guards, and what these start meanwhile.
pub(super) async fn end_all() {
    let until = Instant::now() + PATIENCE;
    loop {
        let found = tokio::task::spawn_blocking(find).await.unwrap_or_default();
        if found.is_empty() {
            return;
        }
        if Instant::now() > until {
            let pids: Vec<i32> = found.iter().map(|process| process.pid).collect();
            tracing::error!(?pids, "processes of a turn do not end; end them by hand");
            return;
        }
        for pid in found.into_iter().filter_map(Process::pid) {
            let _ = kill_process(pid, Signal::KILL);
            let _ = waitpid(Some(pid), WaitOptions::NOHANG);
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

fn find() -> Vec<Process> {
    let mut guards = guards();
    let children = children();
    guards.retain(|guard| children.contains(guard));
    let is_orphan = |child: &Process| !guards.contains(child) && is_marked(child.pid);
    children.into_iter().filter(is_orphan).collect()
}

fn guards() -> MutexGuard<'static, BTreeSet<Process>> {
    GUARDS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The limit that marks what a guard of this process starts. `None`: this process is at 0, and nothing is below it.
fn limit() -> Option<u64> {
    getrlimit(Resource::Locks).maximum.unwrap_or(u64::MAX / 2).checked_sub(1)
}

fn is_marked(pid: i32) -> bool {
    let marked = limit();
    marked.is_some_and(|marked| hard_limit(pid).is_some_and(|limit| limit <= marked))
}

/// The hard limit of file locks of a process; `None` where it has none, or cannot be asked.
fn hard_limit(pid: i32) -> Option<u64> {
    let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max file locks"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}
