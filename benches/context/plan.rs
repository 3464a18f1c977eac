//! The time to make a plan.

use std::time::Instant;

use dalsegno::context::{
    Calibration,
    compaction::{FoldDraft, ladder::CompactionSteps, plan::plan},
    xml::FenceSeed,
};
use serde_json::{Value, json};

use crate::{
    history::{entries, scene},
    size,
};

fn n_messages() -> usize {
    size::of(10_000, 400)
}

fn n_runs() -> usize {
    size::of(101, 1)
}

const BAR_MS: f64 = 20.0;

pub fn plan_alone() -> anyhow::Result<Value> {
    let (entries, calibration) = (entries(n_messages()), Calibration::cold());
    let scene = scene(&entries, &calibration)?;
    let n_batches = plan(&scene)?.batches.len();
    let millis = timed(|| plan(&scene).map(drop))?;
    Ok(
        json!({ "scenario": "compaction_plan", "messages": n_messages(), "batches": n_batches, "p50_ms": at(&millis, 0.5),
               "p99_ms": at(&millis, 0.99), "max_ms": at(&millis, 1.0), "bar_ms": BAR_MS }),
    )
}

/// Adds to the plan: reading all texts for pins, and writing the first question.
pub fn with_pins() -> anyhow::Result<Value> {
    let (entries, calibration) = (entries(n_messages()), Calibration::cold());
    let seed = FenceSeed::from_bytes([7; 32]);
    let scene = scene(&entries, &calibration)?;
    let n_bytes: usize = entries.iter().map(|entry| entry.message.text.len()).sum();
    let millis =
        timed(|| FoldDraft::begin(scene, &seed, 1, CompactionSteps::new(3, false)).map(drop))?;
    Ok(
        json!({ "scenario": "compaction_begin", "messages": n_messages(), "text_bytes": n_bytes, "p50_ms": at(&millis, 0.5),
               "p99_ms": at(&millis, 0.99) }),
    )
}

/// Returns the times of many runs in milliseconds, the shortest first.
fn timed<E>(mut run: impl FnMut() -> Result<(), E>) -> Result<Vec<f64>, E> {
    let mut millis = Vec::with_capacity(n_runs());
    for _ in 0..n_runs() {
        let began = Instant::now();
        run()?;
        millis.push(began.elapsed().as_secs_f64() * 1e3);
    }
    millis.sort_by(f64::total_cmp);
    Ok(millis)
}

fn at(millis: &[f64], share: f64) -> f64 {
    millis[((millis.len() - 1) as f64 * share).round() as usize]
}
