//! Handler that computes the words of ended tasks for the search.
//!
//! Turns leave this work to it. Each run works for a bounded time and pauses, so that turns keep most of the database's time when there are
//! many, or when all tasks of an installation get their words after an upgrade. A repeated run changes nothing.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;

use super::Services;
use crate::{
    domain::{tasks, text_search::IndexTexts},
    queue::{End, HandlerResult, HoldUntil, JobError, Run},
};

/// Tasks of one statement: some tens of milliseconds.
const BATCH: i64 = 100;
/// Time after which a run pauses.
const WORK: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_secs(30);

pub(super) async fn run(_: IndexTexts, run: Run, _: Arc<Services>) -> HandlerResult {
    let began = Instant::now();
    let mut n_taken = 0;
    while began.elapsed() < WORK {
        let n = tasks::index_words(run.pool(), BATCH).await.map_err(JobError::retry)?;
        n_taken += n;
        if n < BATCH {
            break;
        }
    }
    // It looks again while tasks end, rather than being enqueued by each of them.
    Ok(match n_taken {
        0 => End::Done,
        _ => {
            let reason = format!("has computed the words of {n_taken} tasks, and looks for more");
            End::Snooze { until: HoldUntil::After(PAUSE), reason }
        }
    })
}
