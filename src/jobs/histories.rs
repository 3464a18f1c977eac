//! Cache of conversations that this process has continued lately, so that a turn reads only new messages.
//!
//! A transcript is append-only, and the range that a generation folds is fixed. Another generation of a session is another
//! entry. [`LoadedView::read_after`] reads messages that other processes have added, up to the last place on the session's
//! row. It drops an entry whose messages the database has lost, for example in a failover.
//!
//! Invariant: the cache takes at most the configured memory, and the process at most one conversation more for each
//! running turn.

use std::{
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
};

use hashlink::LruCache;
use sqlx::PgPool;
use uuid::Uuid;

use super::compact_session::LoadedView;
use crate::domain::{StatementError, sessions};

pub(super) struct Histories {
    max_bytes: usize,
    kept: Mutex<CachedHistory>,
}

struct CachedHistory {
    /// Views by session and generation.
    views: LruCache<(Uuid, i32), LoadedView>,
    bytes: usize,
}

impl Histories {
    pub(super) fn new(max_mb: u32) -> Self {
        let kept = CachedHistory { views: LruCache::new_unbounded(), bytes: 0 };
        Self { max_bytes: max_mb as usize * 1024 * 1024, kept: Mutex::new(kept) }
    }

    /// Removes and returns an entry. The turns of a conversation follow each other, so no other turn needs it now. A
    /// failed turn leaves nothing in the cache.
    pub(super) fn take(&self, session_id: Uuid, generation: i32) -> Option<LoadedView> {
        let mut kept = self.kept();
        let known = kept.views.remove(&(session_id, generation))?;
        kept.bytes -= known.bytes();
        Some(known)
    }

    pub(super) fn store(&self, loaded: LoadedView) {
        let mut kept = self.kept();
        kept.bytes += loaded.bytes();
        if let Some(before) = kept.views.insert(loaded.of(), loaded) {
            kept.bytes -= before.bytes();
        }
        while kept.bytes > self.max_bytes
            && let Some((_, oldest)) = kept.views.remove_lru()
        {
            kept.bytes -= oldest.bytes();
        }
    }

    /// Removes all entries of sessions that the database no longer has. They were erased, or removed by a cleanup. A session that was not
    /// committed yet is only read again.
    pub(super) async fn remove_without_session(&self, pool: &PgPool) -> Result<(), StatementError> {
        let known: Vec<Uuid> = self.kept().views.iter().map(|((id, _), _)| *id).collect();
        if known.is_empty() {
            return Ok(());
        }
        let removed = sessions::filter_without_row(pool, &known).await?;
        self.remove_sessions(&removed);
        Ok(())
    }

    #[cfg(feature = "test-fakes")]
    pub(super) fn n_views(&self) -> usize {
        self.kept().views.len()
    }

    /// Removes all entries of these sessions.
    pub(super) fn remove_sessions(&self, sessions: &[Uuid]) {
        let mut kept = self.kept();
        let known: Vec<_> =
            kept.views.iter().map(|(of, _)| *of).filter(|(id, _)| sessions.contains(id)).collect();
        for of in known {
            if let Some(view) = kept.views.remove(&of) {
                kept.bytes -= view.bytes();
            }
        }
    }

    fn kept(&self) -> MutexGuard<'_, CachedHistory> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Histories {
    /// Leaves out the conversations.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Histories").field("max_bytes", &self.max_bytes).finish_non_exhaustive()
    }
}
