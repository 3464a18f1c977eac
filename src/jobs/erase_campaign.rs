//! Handler that erases a campaign: cancels its tasks, waits until none runs, then removes its rows in short
//! transactions.
//!
//! Each transaction looks for rows that are left. So the job continues after any stop, and two concurrent runs do no
//! harm.

use std::{sync::Arc, time::Duration};

use uuid::Uuid;

use super::Services;
pub use crate::domain::erasures::EraseCampaign;
use crate::{
    db::{self, Vacuum},
    domain::{
        erasures::{self, Erasure, Key, OpenTasks, Step},
        transaction::{begin, commit},
    },
    queue::{End, HandlerResult, HoldUntil, JobError, Run},
};

/// Wait between two checks for running turns. A cancelled turn ends within seconds; the lease of a lost worker has to
/// expire.
const WAIT: Duration = Duration::from_secs(5);
/// Pause between two transactions, for other work on the database.
const PAUSE: Duration = Duration::from_millis(10);

pub(super) async fn run(
    EraseCampaign { campaign_id }: EraseCampaign,
    run: Run,
    services: Arc<Services>,
) -> HandlerResult {
    let before = receipt(campaign_id, &run).await?;
    cancel_open(campaign_id, &run, &services).await?;
    let mut tx = begin(run.pool()).await.map_err(JobError::retry)?;
    erasures::cancel_jobs(&mut tx, campaign_id).await.map_err(JobError::retry)?;
    commit(tx).await.map_err(JobError::retry)?;
    let mut tx = begin(run.pool()).await.map_err(JobError::retry)?;
    if !erasures::is_idle(&mut tx, campaign_id).await.map_err(JobError::retry)? {
        let why = "a turn or a summary of the campaign is still running";
        return Ok(run.commit_snooze(tx, HoldUntil::After(WAIT), None, why).await?);
    }
    erasures::measure_contents(&mut tx, campaign_id).await.map_err(JobError::retry)?;
    commit(tx).await.map_err(JobError::retry)?;
    let mut next = Some(Step::FIRST);
    while let Some(step) = next {
        stop_if_cancelled(&run)?;
        let mut tx = begin(run.pool()).await.map_err(JobError::retry)?;
        erasures::set_step(&mut *tx, campaign_id, Some(step)).await.map_err(JobError::retry)?;
        let more = erasures::next_batch(&mut tx, campaign_id, step).await;
        let more = more.map_err(JobError::retry)?;
        commit(tx).await.map_err(JobError::retry)?;
        next = if more { Some(step) } else { step.next() };
        pause(&run).await;
    }
    let line = erase_tool_lines(campaign_id, &run).await?;
    end(&before, line, &run, &services).await
}

async fn receipt(campaign_id: Uuid, run: &Run) -> Result<Erasure, JobError> {
    let mut tx = begin(run.pool()).await.map_err(JobError::retry)?;
    let receipt = erasures::get(&mut tx, campaign_id).await.map_err(JobError::retry)?;
    commit(tx).await.map_err(JobError::retry)?;
    Ok(receipt)
}

/// Cancels the open tasks: in batches where that is possible, the others one by one, each in its own transaction.
async fn cancel_open(campaign_id: Uuid, run: &Run, services: &Services) -> Result<(), JobError> {
    let mut before = None;
    erasures::set_step(run.pool(), campaign_id, None).await.map_err(JobError::retry)?;
    loop {
        stop_if_cancelled(run)?;
        let mut tx = begin(run.pool()).await.map_err(JobError::retry)?;
        let open = erasures::cancel_open(&mut tx, campaign_id, before, services.clock.now()).await;
        let open = open.map_err(JobError::retry)?;
        commit(tx).await.map_err(JobError::retry)?;
        let Some(OpenTasks { last, left }) = open else { return Ok(()) };
        for task_id in left {
            stop_if_cancelled(run)?;
            let mut tx = begin(run.pool()).await.map_err(JobError::retry)?;
            let now = services.clock.now();
            let cancelled = erasures::cancel_one(&mut tx, campaign_id, task_id, now).await;
            cancelled.map_err(JobError::retry)?;
            commit(tx).await.map_err(JobError::retry)?;
        }
        before = Some(last);
    }
}

/// Removes the texts of the campaign's agents from tool lines of the audit log. Returns the last line that was examined.
async fn erase_tool_lines(campaign_id: Uuid, run: &Run) -> Result<i64, JobError> {
    let mut tx = begin(run.pool()).await.map_err(JobError::retry)?;
    let line = erasures::line_before_first(&mut tx, campaign_id).await;
    let mut line = line.map_err(JobError::retry)?;
    commit(tx).await.map_err(JobError::retry)?;
    loop {
        stop_if_cancelled(run)?;
        let mut tx = begin(run.pool()).await.map_err(JobError::retry)?;
        let last = erasures::erase_tool_lines(&mut tx, campaign_id, line).await;
        let last = last.map_err(JobError::retry)?;
        commit(tx).await.map_err(JobError::retry)?;
        let Some(last) = last else { return Ok(line) };
        line = last;
        pause(run).await;
    }
}

/// Ends the removal, signs the receipt, and vacuums the tables where the role may. A repeated run, after an upgrade for
/// example, vacuums only if it has removed rows or no vacuum was recorded.
async fn end(before: &Erasure, line: i64, run: &Run, services: &Services) -> Result<End, JobError> {
    let campaign_id = before.campaign_id;
    let mut tx = begin(run.pool()).await.map_err(JobError::retry)?;
    let is_quiet = erasures::is_idle(&mut tx, campaign_id).await.map_err(JobError::retry)?;
    let left =
        erasures::list_remaining_kinds(&mut *tx, campaign_id).await.map_err(JobError::retry)?;
    if !is_quiet || !left.is_empty() {
        let why = "rows of the campaign were added or locked during the erasure";
        return Ok(run.commit_snooze(tx, HoldUntil::After(WAIT), None, why).await?);
    }
    let finished_at = services.clock.now();
    let finished = erasures::finish(&mut tx, campaign_id, line, finished_at).await;
    finished.map_err(JobError::retry)?;
    commit(tx).await.map_err(JobError::retry)?;
    let key = Key::open_or_create(&services.erasure_key).map_err(JobError::retry)?;
    let mut tx = begin(run.pool()).await.map_err(JobError::retry)?;
    erasures::sign(&mut tx, campaign_id, &key).await.map_err(JobError::retry)?;
    commit(tx).await.map_err(JobError::retry)?;
    let ended = receipt(campaign_id, run).await?;
    let is_due = ended.removed != before.removed || ended.vacuumed_at.is_none();
    let is_vacuumed = is_due && vacuum(run).await?;
    let mut tx = begin(run.pool()).await.map_err(JobError::retry)?;
    if is_vacuumed {
        let now = services.clock.now();
        erasures::record_vacuum(&mut tx, finished_at, false, now).await.map_err(JobError::retry)?;
    }
    let end = run.commit(tx).await?;
    tracing::info!(campaign.id = %campaign_id, "a campaign was erased");
    Ok(end)
}

/// Returns true if all tables were vacuumed. After a failure, or without the right, autovacuum and the owner do it
/// later.
async fn vacuum(run: &Run) -> Result<bool, JobError> {
    let vacuumed = match db::vacuum(run.pool(), Vacuum::Plain, run.cancel()).await {
        Ok(vacuumed) => vacuumed,
        Err(error) => {
            let error: &dyn std::error::Error = &error;
            tracing::warn!(
                error,
                "cannot vacuum all tables of an erased campaign: run `dalsegno erasure vacuum`"
            );
            return Ok(false);
        }
    };
    if let Some(reason) = vacuumed.obstacles() {
        tracing::warn!(reason, "not all tables of an erased campaign are vacuumed");
    }
    stop_if_cancelled(run)?;
    Ok(vacuumed.is_complete())
}

async fn pause(run: &Run) {
    run.cancel().run_until_cancelled(tokio::time::sleep(PAUSE)).await;
}

/// A worker that shuts down returns the job, which uses no attempt.
fn stop_if_cancelled(run: &Run) -> Result<(), JobError> {
    match run.cancel().is_cancelled() {
        true => Err(JobError::retry("the run was stopped between two transactions")),
        false => Ok(()),
    }
}
