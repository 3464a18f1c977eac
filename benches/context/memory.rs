//! The memory of a plan: the growth of the peak of a process that only makes one plan.

use std::process::Command;

use anyhow::Context as _;
use dalsegno::context::{Calibration, compaction::plan::plan};
use serde_json::{Value, json};

use crate::{
    history::{entries, scene},
    size,
};

/// The argument with which a copy of this program measures.
pub const CHILD: &str = "measure-plan-of";

fn lengths() -> [usize; 4] {
    size::of([10_000, 20_000, 40_000, 80_000], [400, 800, 1_200, 1_600])
}

/// Returns bytes per message at growing lengths. The memory is linear if they stay the same.
pub fn by_length() -> anyhow::Result<Value> {
    let mut points = Vec::new();
    for n_messages in lengths() {
        let program = std::env::current_exe()?;
        let output = Command::new(program).args([CHILD, &n_messages.to_string()]).output()?;
        anyhow::ensure!(output.status.success(), "a measurement failed");
        let measured: Value = serde_json::from_slice(&output.stdout)?;
        points.push(measured);
    }
    let per_message = |point: &Value| point["bytes_per_message"].as_f64().unwrap_or(f64::NAN);
    let growth = per_message(&points[points.len() - 1]) / per_message(&points[0]);
    Ok(json!({ "scenario": "plan_memory", "points": points, "last_over_first": growth }))
}

/// Runs in the child: measures the peak before and after one plan.
pub fn measure_alone(n_messages: usize) -> anyhow::Result<()> {
    let (entries, calibration) = (entries(n_messages), Calibration::cold());
    let scene = scene(&entries, &calibration)?;
    let before = peak_bytes()?;
    let made = plan(&scene)?;
    let bytes = peak_bytes()? - before;
    let per_message = bytes as f64 / n_messages as f64;
    println!(
        "{}",
        json!({ "messages": n_messages, "batches": made.batches.len(), "bytes": bytes, "bytes_per_message": per_message,
                "transcript_bytes": before })
    );
    Ok(())
}

/// Returns the peak memory of this process, as counted by the kernel.
fn peak_bytes() -> anyhow::Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status").context("reading /proc")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()).context("no VmHWM in /proc")?;
    Ok(kib.parse::<u64>()? * 1024)
}
