//! Metrics of the process, with the names that all client libraries of Prometheus use. They are read from `/proc` at
//! each scrape, and absent on systems without it.

use std::{fmt::Write as _, fs};

use crate::metric::Metric;

const CPU: Metric = Metric::counter(
    "process_cpu_seconds_total",
    &[],
    "User and system CPU time of the process in seconds.",
);
const RESIDENT: Metric =
    Metric::gauge("process_resident_memory_bytes", &[], "Resident memory in bytes.");
const VIRTUAL: Metric =
    Metric::gauge("process_virtual_memory_bytes", &[], "Virtual memory in bytes.");
const OPEN_FDS: Metric = Metric::gauge("process_open_fds", &[], "Open file descriptors.");
const MAX_FDS: Metric =
    Metric::gauge("process_max_fds", &[], "Limit of open file descriptors (soft limit).");
const START: Metric = Metric::gauge(
    "process_start_time_seconds",
    &[],
    "Unix time in seconds at which the process started.",
);
const THREADS: Metric =
    Metric::gauge("process_threads", &[], "Threads of the process in the operating system.");

/// All metrics of the process.
pub const METRICS: [Metric; 7] = [CPU, RESIDENT, VIRTUAL, OPEN_FDS, MAX_FDS, START, THREADS];

/// The units of `/proc/self/stat`, and the origin of its times.
struct Units {
    ticks_per_sec: f64,
    page_bytes: f64,
    boot_unix_secs: f64,
}

/// Appends the metrics that can be read.
pub(super) fn render(page: &mut String) {
    for (Metric { name, kind, help, .. }, value) in read() {
        let kind = kind.as_str();
        // Writing to a text cannot fail.
        let _ = writeln!(page, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n");
    }
}

fn read() -> Vec<(Metric, f64)> {
    let mut values = from_stat().unwrap_or_default();
    if let Ok(open) = fs::read_dir("/proc/self/fd") {
        // Reading the folder opens one more.
        values.push((OPEN_FDS, open.count().saturating_sub(1) as f64));
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        values.extend(limit.map(|limit| (MAX_FDS, limit as f64)));
    }
    values
}

fn from_stat() -> Option<Vec<(Metric, f64)>> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    let system = fs::read_to_string("/proc/stat").ok()?;
    let boot = system.lines().find_map(|line| line.strip_prefix("btime "))?;
    let units = Units {
        ticks_per_sec: rustix::param::clock_ticks_per_second() as f64,
        page_bytes: rustix::param::page_size() as f64,
        boot_unix_secs: boot.trim().parse().ok()?,
    };
    parse(&stat, &units)
}

/// Parses `/proc/self/stat`, whose fields proc(5) numbers from 1.
fn parse(stat: &str, units: &Units) -> Option<Vec<(Metric, f64)>> {
    // The name of the program, which is field 2, may contain blanks and brackets.
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let field = |n: usize| fields.get(n - 3)?.parse::<f64>().ok();
    let (user, system) = (field(14)?, field(15)?);
    Some(vec![
        (CPU, (user + system) / units.ticks_per_sec),
        (THREADS, field(20)?),
        (START, units.boot_unix_secs + field(22)? / units.ticks_per_sec),
        (VIRTUAL, field(23)?),
        (RESIDENT, field(24)? * units.page_bytes),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_of_the_status_are_those_of_proc_5() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194560 100 0 0 0 250 50 9 9 20 0 12 0 3000 409600 25 1844 1 1";
        let units = Units { ticks_per_sec: 100.0, page_bytes: 4096.0, boot_unix_secs: 1e9 };
        let values = parse(stat, &units).unwrap();
        let values: Vec<_> = values.iter().map(|(metric, value)| (metric.name, *value)).collect();
        assert_eq!(
            values,
            [
                ("process_cpu_seconds_total", 3.0),
                ("process_threads", 12.0),
                ("process_start_time_seconds", 1e9 + 30.0),
                ("process_virtual_memory_bytes", 409_600.0),
                ("process_resident_memory_bytes", 102_400.0),
            ]
        );
        assert!(parse("7 (a) S 1", &units).is_none() && parse("", &units).is_none());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn every_metric_is_read_on_linux() {
        let read: Vec<_> = read().iter().map(|(metric, _)| metric.name).collect();
        for metric in METRICS {
            assert!(read.contains(&metric.name), "{} is missing", metric.name);
        }
    }
}
