//! Processor time, which is more exact than the clock on a shared machine. Linux only.

use std::{fs, path::Path};

use sqlx::PgPool;

/// Unit of processor time in `/proc`, the same on all Linux systems that run this.
const TICK_MICROS: u64 = 10_000;

/// Processor time in microseconds of this process, and of the server if it runs on this machine.
pub struct CpuTime {
    pub worker_micros: u64,
    pub server_micros: Option<u64>,
}

pub async fn used(pool: &PgPool) -> CpuTime {
    let worker_micros = of("self", false).unwrap_or(0);
    let backend: Option<i32> =
        sqlx::query_scalar("SELECT pg_backend_pid()").fetch_one(pool).await.ok();
    let postmaster = backend.and_then(|pid| field(&pid.to_string(), 1));
    let server_micros = postmaster.and_then(server);
    CpuTime { worker_micros, server_micros }
}

/// Returns the processor time of the postmaster and all its children, living and dead.
fn server(postmaster: u64) -> Option<u64> {
    let is_server = fs::read_to_string(format!("/proc/{postmaster}/comm"))
        .is_ok_and(|name| name.trim() == "postgres");
    if !is_server {
        return None;
    }
    let mut sum = of(&postmaster.to_string(), true)?;
    for entry in fs::read_dir(Path::new("/proc")).ok()?.flatten() {
        let pid = entry.file_name().to_string_lossy().into_owned();
        if field(&pid, 1) == Some(postmaster) {
            sum += of(&pid, false).unwrap_or(0);
        }
    }
    Some(sum)
}

fn of(pid: &str, with_dead_children: bool) -> Option<u64> {
    let mut ticks = field(pid, 11)? + field(pid, 12)?;
    if with_dead_children {
        ticks += field(pid, 13)? + field(pid, 14)?;
    }
    Some(ticks * TICK_MICROS)
}

/// Returns a number of `/proc/PID/stat`, counted from the state, which follows the name in brackets.
fn field(pid: &str, index: usize) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.split(' ').nth(index)?.parse().ok()
}
