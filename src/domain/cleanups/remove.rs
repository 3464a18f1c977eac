//! The removal of a few sessions, in one short transaction.

use sqlx::PgConnection;
use uuid::Uuid;

use super::{KeepReason, RemovedCount, Walk, group, walk};
use crate::domain::{
    StatementError, compactions, context_texts, facts, failovers, feed, memory,
    messages::{self, Size},
    nodes, session_summaries,
    sessions::{self, DueSession},
    transcripts, turns,
};

/// Maximum number of messages that one transaction removes. A single session with more messages is still removed as a whole.
const MAX_MESSAGES: i64 = 10_000;

/// The result of one transaction.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Batch {
    pub removed: Vec<RemovedCount>,
    pub sessions: i64,
    pub messages: i64,
    pub bytes: i64,
    /// Sessions of which a summary is kept.
    pub summaries_kept: i64,
    pub kept: Vec<KeepReason>,
    /// Sessions that were too much for this transaction, for the next one.
    pub left: Vec<DueSession>,
}

/// Locks these sessions, and removes those that are still unused. The caller commits.
pub async fn remove(
    conn: &mut PgConnection,
    walk: &Walk,
    going: Vec<DueSession>,
) -> Result<Batch, StatementError> {
    let (going, left) = fitting(&mut *conn, going).await?;
    let ids: Vec<Uuid> = going.iter().map(|session| session.id).collect();
    let locked = sessions::lock_due(&mut *conn, &ids, walk.now, walk.closed_until).await?;
    let n_in_use = ids.len() - locked.len();
    let page = walk::split_awaited(&mut *conn, locked).await?;
    let mut batch = Batch { left, kept: vec![KeepReason::InUse; n_in_use], ..Batch::default() };
    batch.kept.extend(page.kept.iter().map(|(_, kept)| *kept));
    let ids: Vec<Uuid> = page.going.iter().map(|session| session.id).collect();
    if ids.is_empty() {
        return Ok(batch);
    }
    facts::request_of_ended(&mut *conn, &page.going).await?;
    batch.summaries_kept =
        session_summaries::store(&mut *conn, &ids, walk.summaries_until, walk.now).await?;
    let size = remove_sessions(&mut *conn, &ids).await?;
    let (campaigns, agents, instances) =
        sessions::conversations_without_open(&mut *conn, &page.going).await?;
    failovers::remove_all(conn, &campaigns, &agents, &instances).await?;
    batch.sessions = count(&page.going);
    batch.messages = size.messages;
    batch.bytes = size.bytes;
    batch.removed = group(&page.going)
        .into_iter()
        .map(|((provider, because), sessions)| RemovedCount {
            provider,
            because,
            sessions: count(&sessions),
        })
        .collect();
    Ok(batch)
}

/// Removes up to `limit` old events of the feed, and returns their number. The caller commits.
pub async fn remove_events(
    conn: &mut PgConnection,
    walk: &Walk,
    limit: i64,
) -> Result<i64, StatementError> {
    feed::remove_before(conn, walk.feed_until, limit).await
}

/// Removes up to `limit` summaries of expired sessions that no successor has taken over in time. The caller commits.
pub async fn remove_summaries(
    conn: &mut PgConnection,
    walk: &Walk,
    limit: i64,
) -> Result<i64, StatementError> {
    session_summaries::remove_until(conn, walk.summaries_until, limit).await
}

/// Counts of what was removed from memories.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemovedMemory {
    /// Items and facts.
    pub items: i64,
    /// Records of what was shown and read, and texts of contexts that two removals at once have left. They have no further use, and are left out of all statistics.
    pub records: i64,
}

/// Removes up to `limit` items of memories, as many facts that ended long enough ago, and as many of the records beside them. The caller
/// commits.
pub async fn remove_memory(
    conn: &mut PgConnection,
    walk: &Walk,
    limit: i64,
) -> Result<RemovedMemory, StatementError> {
    let n_items = memory::remove_ended(&mut *conn, walk.memory_until, limit).await?;
    let (n_facts, n_records) = facts::remove_ended(&mut *conn, walk.memory_until, limit).await?;
    let n_texts = context_texts::remove_unused(conn, limit).await?;
    Ok(RemovedMemory { items: n_items + n_facts, records: n_records + n_texts })
}

/// Removes these sessions with all that belongs to them. Returns the size of their messages and transcripts.
pub(in crate::domain) async fn remove_sessions(
    conn: &mut PgConnection,
    ids: &[Uuid],
) -> Result<Size, StatementError> {
    let size = messages::remove_all(&mut *conn, ids).await?;
    context_texts::remove_all(&mut *conn, ids).await?;
    turns::remove_all(&mut *conn, ids).await?;
    compactions::remove_all(&mut *conn, ids).await?;
    nodes::remove_all(&mut *conn, ids).await?;
    let transcript_bytes = transcripts::remove_all(&mut *conn, ids).await?;
    sessions::remove_all(conn, ids).await?;
    Ok(Size { bytes: size.bytes + transcript_bytes, ..size })
}

/// Keeps as many ids from the front as one transaction may remove, at least one.
pub(in crate::domain) async fn limit_ids(
    conn: &mut PgConnection,
    mut ids: Vec<Uuid>,
) -> Result<Vec<Uuid>, StatementError> {
    let counts = messages::count(conn, &ids).await?;
    let mut n_messages = 0;
    let fits = ids.iter().take_while(|id| {
        n_messages += counts.get(*id).copied().unwrap_or(0);
        n_messages <= MAX_MESSAGES
    });
    let n_fitting = fits.count().max(1);
    ids.truncate(n_fitting);
    Ok(ids)
}

/// Splits off the sessions that are too much for one transaction.
async fn fitting(
    conn: &mut PgConnection,
    mut going: Vec<DueSession>,
) -> Result<(Vec<DueSession>, Vec<DueSession>), StatementError> {
    let ids = going.iter().map(|session| session.id).collect();
    let n_fitting = limit_ids(conn, ids).await?.len();
    let left = going.split_off(n_fitting);
    Ok((going, left))
}

fn count<T>(items: &[T]) -> i64 {
    i64::try_from(items.len()).unwrap_or(i64::MAX)
}
