//! The removal of everything that the preview names, with its numbers in the record of the run.

use uuid::Uuid;

use super::{Error, metrics, pause};
use crate::{
    domain::{
        cleanups::{self, BoardRules, Page, RunRow, Walk},
        posts::DueBoard,
        sessions::DueSession,
        transaction::{begin, commit},
    },
    jobs::Services,
    queue::Run,
};

/// Feed events of one transaction.
const EVENTS: i64 = 5_000;
/// Memory items of one transaction, each with its versions.
const ITEMS: i64 = 500;
/// Summaries of expired sessions of one transaction.
const SUMMARIES: i64 = 1_000;

pub(super) async fn remove_all(
    run: &Run,
    services: &Services,
    recorded: &mut RunRow,
) -> Result<(), Error> {
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
