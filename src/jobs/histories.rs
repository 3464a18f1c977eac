//! Conversations that this process has lately continued, so that a turn reads what is new in them.
//!
//! What is kept was read from the database and cannot become wrong: a transcript is only ever added to, and what a
//! generation folds is settled when it is made. A session that shows another generation is another entry here. What others
//! have added meanwhile is read by [`Loaded::catch_up`], up to the place that the session's row names.
//!
//! Invariant: what is kept takes no more memory than was configured, and the process never more than one conversation
//! beyond that for each turn that runs.

use std::{
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
};

use hashlink::LruCache;
use uuid::Uuid;

use super::compact_session::Loaded;

pub(super) struct Histories {
    max_bytes: usize,
    kept: Mutex<Kept>,
}

struct Kept {
    /// By session and generation.
    views: LruCache<(Uuid, i32), Loaded>,
    bytes: usize,
}

impl Histories {
    pub(super) fn new(max_mb: u32) -> Self {
        let kept = Kept { views: LruCache::new_unbounded(), bytes: 0 };
        Self { max_bytes: max_mb as usize * 1024 * 1024, kept: Mutex::new(kept) }
    }

    /// Takes it out: the turns of a conversation follow each other, so nobody else needs it now, and one that comes to
    /// nothing leaves nothing.
    pub(super) fn take(&self, session_id: Uuid, generation: i32) -> Option<Loaded> {
        let mut kept = self.kept();
        let known = kept.views.remove(&(session_id, generation))?;
        kept.bytes -= known.bytes();
        Some(known)
    }

    pub(super) fn keep(&self, loaded: Loaded) {
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

    /// Nothing that was said in these sessions is remembered any more.
    pub(super) fn forget(&self, sessions: &[Uuid]) {
        let mut kept = self.kept();
        let known: Vec<_> =
            kept.views.iter().map(|(of, _)| *of).filter(|(id, _)| sessions.contains(id)).collect();
        for of in known {
            if let Some(view) = kept.views.remove(&of) {
                kept.bytes -= view.bytes();
            }
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Histories {
    /// Nothing of what was said.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Histories").field("max_bytes", &self.max_bytes).finish_non_exhaustive()
    }
}
