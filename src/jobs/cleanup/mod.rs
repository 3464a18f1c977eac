//! Handler of the nightly cleanup: removes expired rows in batches, sessions first, and archives old posts.
//!
//! Each batch is a short transaction, so a run can be stopped between any two and continued later: removed rows are not
//! due any more. Between batches it keeps only its place.
//!
//! Race: a run that was declared lost may still be in a batch. The record of the run names the lease; a batch that
//! cannot update the record rolls back.

mod metrics;

use std::{sync::Arc, time::Duration};

use chrono::TimeDelta;
use uuid::Uuid;

use super::Services;
pub use crate::domain::cleanups::Cleanup;
use crate::{
    domain::{
        StatementError, audit, batches, campaigns,
        cleanups::{self, BoardRules, Page, RunRow, Walk},
        installation, operation_keys,
        posts::DueBoard,
        schedules,
        sessions::DueSession,
        task_files,
        transaction::{begin, commit},
        webhooks,
    },
    queue::{CommitError, End, HandlerResult, JobError, Run, Stop},
};

pub(super) use self::metrics::begin_counts;
pub use self::metrics::{METRICS, describe, installed_at, succeeded_at};

/// Feed events of one transaction.
const EVENTS: i64 = 5_000;
/// Memory items of one transaction, each with its versions.
const ITEMS: i64 = 500;
/// Summaries of expired sessions of one transaction.
const SUMMARIES: i64 = 1_000;
/// Idempotency keys of operations of one transaction.
const KEYS: i64 = 2_000;
/// Replaced versions of campaigns of one transaction, each with two texts.
const VERSIONS: i64 = 500;
/// Contents of files of one transaction.
const CONTENTS: i64 = 100;
/// Orphaned message batches of one transaction.
const BATCHES: usize = 100;
/// Lines of the audit log of one transaction.
const AUDIT_BATCH: i64 = 5_000;

/// Reasons why a run did not finish.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("the run was stopped between two batches")]
    Stopped,
    #[error("a later run of this job took over")]
    Overtaken,
    #[error(transparent)]
    Database(#[from] StatementError),
    #[error(transparent)]
    End(#[from] CommitError),
}

pub(super) async fn run(_: Cleanup, run: Run, services: Arc<Services>) -> HandlerResult {
    let mut recorded = record(&run, &services).await?;
    let removed = async {
        remove_all(&run, &services, &mut recorded).await?;
        remove_old_deliveries(&run, &services).await?;
        remove_old_keys(&run, &services).await?;
        remove_old_versions(&run, &services).await?;
        remove_old_audit(&run, &services).await?;
        remove_unused_contents(&run, &services).await?;
        give_up_orphaned_batches(&run, &services).await?;
        record_sizes(&run, &services).await
    };
    let ended = match removed.await {
        Ok(()) => finish(&run, &services, &recorded).await,
        Err(error) => Err(error),
    };
    match ended {
        Ok(end) => Ok(end),
        Err(Error::Stopped) if run.stop_reason() == Some(Stop::Cancelled) => {
            let now = services.clock.now();
            cleanups::cancel(run.pool(), &recorded, now).await.map_err(JobError::retry)?;
            Err(JobError::retry(Error::Stopped))
        }
        // The queue knows why the run was stopped: a worker that shuts down returns the job, which uses no attempt.
        Err(Error::End(error)) => Err(error.into()),
        Err(error) => Err(JobError::retry(error)),
    }
}

async fn record(run: &Run, services: &Services) -> Result<RunRow, JobError> {
    let now = services.clock.now();
    let recorded = async {
        let mut tx = begin(run.pool()).await?;
        let requester = schedules::requester(run.headers());
        let (job_id, lease, requester) = (run.job_id(), run.lease(), requester.as_deref());
        let recorded = cleanups::begin(&mut tx, job_id, lease, requester, now).await?;
        commit(tx).await?;
        recorded.ok_or(Error::Overtaken)
    };
    recorded.await.map_err(JobError::retry)
}

async fn remove_all(run: &Run, services: &Services, recorded: &mut RunRow) -> Result<(), Error> {
    let config = &services.sessions;
    let rules = BoardRules::new(services.board, &services.library.current());
    let walk = Walk::new(services.clock.now(), config, &services.memory);
    let mut walk = walk.archiving(rules);
    while let Some(Page { going, kept }) =
        page(run, &mut walk, config.cleanup_batch_sessions).await?
    {
        let reasons: Vec<_> = kept.iter().map(|(_, kept)| *kept).collect();
        recorded.progress.count_kept(&reasons);
        let mut left = going;
        while !left.is_empty() {
            if run.cancel().is_cancelled() {
                return Err(Error::Stopped);
            }
            left = remove_batch(run, &walk, left, recorded).await?;
            pause(run, services).await;
        }
    }
    while remove_old_events(run, &walk, recorded).await? {
        pause(run, services).await;
    }
    while remove_old_summaries(run, &walk, recorded).await? {
        pause(run, services).await;
    }
    while remove_old_memory(run, &walk, recorded).await? {
        pause(run, services).await;
    }
    archive_old_posts(run, services, &walk, recorded).await
}

/// Archives the old posts of all boards, board by board.
async fn archive_old_posts(
    run: &Run,
    services: &Services,
    walk: &Walk,
    recorded: &mut RunRow,
) -> Result<(), Error> {
    let mut after = Uuid::nil();
    loop {
        let mut tx = begin(run.pool()).await?;
        let boards = cleanups::due_boards(&mut tx, walk, after).await?;
        commit(tx).await?;
        let Some(last) = boards.last() else { return Ok(()) };
        after = last.campaign_id;
        for board in &boards {
            while archive_posts(run, walk, board, recorded).await? {
                pause(run, services).await;
            }
        }
    }
}

/// Archives a batch of a board's old posts. Returns true if there may be more.
async fn archive_posts(
    run: &Run,
    walk: &Walk,
    board: &DueBoard,
    recorded: &mut RunRow,
) -> Result<bool, Error> {
    if run.cancel().is_cancelled() {
        return Err(Error::Stopped);
    }
    let mut tx = begin(run.pool()).await?;
    let n_posts = cleanups::archive_board(&mut tx, walk, board).await?;
    let mut next = recorded.clone();
    next.progress.posts_archived += n_posts;
    if !cleanups::advance(&mut *tx, &next).await? {
        return Err(Error::Overtaken);
    }
    commit(tx).await?;
    *recorded = next;
    Ok(n_posts > 0)
}

/// Leaves the database to others between two batches.
async fn pause(run: &Run, services: &Services) {
    let pause = Duration::from_millis(services.sessions.cleanup_pause_ms.into());
    run.cancel().run_until_cancelled(tokio::time::sleep(pause)).await;
}

/// Removes a batch of memory items and facts that ended long enough ago, and of records about them. Returns true if there may
/// be more.
async fn remove_old_memory(run: &Run, walk: &Walk, recorded: &mut RunRow) -> Result<bool, Error> {
    if run.cancel().is_cancelled() {
        return Err(Error::Stopped);
    }
    let mut tx = begin(run.pool()).await?;
    let removed = cleanups::remove_memory(&mut tx, walk, ITEMS).await?;
    let mut next = recorded.clone();
    next.progress.memory_items += removed.items;
    if !cleanups::advance(&mut *tx, &next).await? {
        return Err(Error::Overtaken);
    }
    commit(tx).await?;
    *recorded = next;
    metrics::removed_memory(removed.items);
    Ok(removed.items + removed.records > 0)
}

/// Removes a batch of summaries that no successor has used in time. Returns true if there may be more.
async fn remove_old_summaries(
    run: &Run,
    walk: &Walk,
    recorded: &mut RunRow,
) -> Result<bool, Error> {
    if run.cancel().is_cancelled() {
        return Err(Error::Stopped);
    }
    let mut tx = begin(run.pool()).await?;
    let n_removed = cleanups::remove_summaries(&mut tx, walk, SUMMARIES).await?;
    let mut next = recorded.clone();
    next.progress.summaries_removed += n_removed;
    if !cleanups::advance(&mut *tx, &next).await? {
        return Err(Error::Overtaken);
    }
    commit(tx).await?;
    *recorded = next;
    metrics::removed_summaries(n_removed);
    Ok(n_removed > 0)
}

/// Removes a batch of old feed events. Returns true if there may be more.
async fn remove_old_events(run: &Run, walk: &Walk, recorded: &mut RunRow) -> Result<bool, Error> {
    if run.cancel().is_cancelled() {
        return Err(Error::Stopped);
    }
    let mut tx = begin(run.pool()).await?;
    let n_events = cleanups::remove_events(&mut tx, walk, EVENTS).await?;
    let mut next = recorded.clone();
    next.progress.events += n_events;
    if !cleanups::advance(&mut *tx, &next).await? {
        return Err(Error::Overtaken);
    }
    commit(tx).await?;
    *recorded = next;
    metrics::removed_events(n_events);
    // Until a batch is empty: a row from a clock that was ahead stays in the batch and lowers its count.
    Ok(n_events > 0)
}

/// Removes old webhook deliveries, in batches of their own.
async fn remove_old_deliveries(run: &Run, services: &Services) -> Result<(), Error> {
    let before = services.clock.now() - services.webhooks.config().keep();
    let batch = i64::from(services.sessions.cleanup_batch_sessions);
    while !run.cancel().is_cancelled() {
        let n_removed = webhooks::remove_old(run.pool(), before, batch).await?;
        metrics::removed_deliveries(n_removed);
        if n_removed.cast_signed() < batch {
            return Ok(());
        }
        pause(run, services).await;
    }
    Err(Error::Stopped)
}

/// Removes old idempotency keys of operations. They are kept as long as those of the queue.
async fn remove_old_keys(run: &Run, services: &Services) -> Result<(), Error> {
    let keep = TimeDelta::days(services.keep.idempotency_keys_days.into());
    let before = services.clock.now() - keep;
    while !run.cancel().is_cancelled() {
        let n_removed = operation_keys::remove_old(run.pool(), before, KEYS).await?;
        metrics::removed_keys(n_removed);
        if n_removed.cast_signed() < KEYS {
            return Ok(());
        }
        pause(run, services).await;
    }
    Err(Error::Stopped)
}

/// Removes versions of campaigns that were replaced long enough ago.
async fn remove_old_versions(run: &Run, services: &Services) -> Result<(), Error> {
    let keep_days = services.sessions.keep_campaign_versions_days;
    if keep_days == 0 {
        return Ok(());
    }
    let before = services.clock.now() - TimeDelta::days(keep_days.into());
    while !run.cancel().is_cancelled() {
        let n_removed = campaigns::remove_old_versions(run.pool(), before, VERSIONS).await?;
        metrics::removed_versions(n_removed);
        if n_removed < VERSIONS {
            return Ok(());
        }
        pause(run, services).await;
    }
    Err(Error::Stopped)
}

/// Removes contents of files that no task has: those that a later turn has replaced.
async fn remove_unused_contents(run: &Run, services: &Services) -> Result<(), Error> {
    while !run.cancel().is_cancelled() {
        let n_removed = task_files::remove_unused(run.pool(), CONTENTS).await?;
        metrics::removed_contents(n_removed);
        if n_removed < CONTENTS {
            return Ok(());
        }
        pause(run, services).await;
    }
    Err(Error::Stopped)
}

/// Gives up message batches that no turn waits for. Jobs cancel them.
async fn give_up_orphaned_batches(run: &Run, services: &Services) -> Result<(), Error> {
    while !run.cancel().is_cancelled() {
        let mut tx = begin(run.pool()).await?;
        let n_given_up = batches::give_up_orphaned(&mut tx, BATCHES).await?;
        commit(tx).await?;
        if n_given_up > 0 {
            tracing::warn!(
                batches = n_given_up,
                "gave up batches whose turns had ended without them"
            );
        }
        if n_given_up < BATCHES {
            return Ok(());
        }
        pause(run, services).await;
    }
    Err(Error::Stopped)
}

/// Stores the sizes of the tables on this day.
async fn record_sizes(run: &Run, services: &Services) -> Result<(), Error> {
    let mut tx = begin(run.pool()).await?;
    installation::record_sizes(&mut tx, services.clock.now().date_naive()).await?;
    Ok(commit(tx).await?)
}

async fn page(run: &Run, walk: &mut Walk, n_sessions: u16) -> Result<Option<Page>, Error> {
    if run.cancel().is_cancelled() {
        return Err(Error::Stopped);
    }
    let mut tx = begin(run.pool()).await?;
    let page = walk.page(&mut tx, n_sessions.into()).await?;
    commit(tx).await?;
    Ok(page)
}

/// Removes as many sessions as fit into one transaction, and returns the others.
async fn remove_batch(
    run: &Run,
    walk: &Walk,
    going: Vec<DueSession>,
    recorded: &mut RunRow,
) -> Result<Vec<DueSession>, Error> {
    let mut tx = begin(run.pool()).await?;
    let batch = cleanups::remove(&mut tx, walk, going).await?;
    let mut next = recorded.clone();
    next.progress.add(&batch);
    if !cleanups::advance(&mut *tx, &next).await? {
        return Err(Error::Overtaken);
    }
    commit(tx).await?;
    *recorded = next;
    metrics::count_removed_sessions(&batch);
    Ok(batch.left)
}

/// Removes old lines of the audit log in transactions of their own: they belong to no session and to no preview.
async fn remove_old_audit(run: &Run, services: &Services) -> Result<(), Error> {
    let moment = services.clock.now() - services.audit.keep();
    loop {
        if run.cancel().is_cancelled() {
            return Err(Error::Stopped);
        }
        let removed = audit::remove_before(run.pool(), moment, AUDIT_BATCH).await?;
        metrics::removed_audit(removed);
        if removed > 0 {
            tracing::info!(lines = removed, "removed old lines of the audit log");
        }
        if removed < AUDIT_BATCH {
            return Ok(());
        }
        pause(run, services).await;
    }
}

async fn finish(run: &Run, services: &Services, recorded: &RunRow) -> Result<End, Error> {
    let now = services.clock.now();
    let mut tx = begin(run.pool()).await?;
    if !cleanups::finish(&mut *tx, recorded, now).await? {
        return Err(Error::Overtaken);
    }
    let end = run.commit(tx).await?;
    let progress = &recorded.progress;
    tracing::info!(
        sessions = progress.sessions,
        messages = progress.messages,
        bytes = progress.bytes,
        events = progress.events,
        memory_items = progress.memory_items,
        summaries_kept = progress.summaries_kept,
        summaries_removed = progress.summaries_removed,
        posts_archived = progress.posts_archived,
        kept = progress.kept.values().sum::<i64>(),
        "the cleanup is complete"
    );
    succeeded_at(now);
    Ok(end)
}
