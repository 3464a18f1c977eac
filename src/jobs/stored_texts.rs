//! The texts of contexts that this process has stored a short time ago, so that a turn sends only new ones.

use std::{
    collections::HashSet,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use sqlx::PgPool;
use tokio::time::Instant;
use uuid::Uuid;

use crate::{
    context::{Digest, manifest::ContextText},
    domain::{
        StatementError,
        context_texts::{self, StoringCall},
    },
};

#[derive(Debug, Default)]
pub(super) struct StoredTexts(Mutex<KnownTexts>);

/// Texts by session and digest.
#[derive(Debug, Default)]
struct KnownTexts {
    texts: HashSet<(Uuid, Digest)>,
    /// When the first of them was added.
    since: Option<Instant>,
}

/// About 10 MB. Beyond it all are forgotten, and are stored once more.
const MAX_KNOWN: usize = 1 << 17;
/// Time after which all are forgotten. The database may have lost them: it was restored, or the turn had lost its lease. Turns that were sent
/// the same texts meanwhile can be shown again as soon as the texts are stored once more.
const MAX_AGE: Duration = Duration::from_mins(10);

impl StoredTexts {
    /// Stores the texts that the session is not known to use.
    pub(super) async fn store(
        &self,
        pool: &PgPool,
        call: &StoringCall,
        texts: &[ContextText],
    ) -> Result<(), StatementError> {
        let new = self.lock().filter_new(call.session_id, texts);
        if new.is_empty() {
            return Ok(());
        }
        if context_texts::store(pool, call, &new).await.is_err() {
            // Another session may have removed a text with its last use at the same moment.
            context_texts::store(pool, call, &new).await?;
        }
        self.lock().add(call.session_id, &new);
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, KnownTexts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KnownTexts {
    /// Returns the texts that the session is not known to use.
    fn filter_new<'a>(
        &mut self,
        session_id: Uuid,
        texts: &'a [ContextText],
    ) -> Vec<&'a ContextText> {
        if self.since.is_some_and(|since| since.elapsed() >= MAX_AGE) {
            *self = Self::default();
        }
        texts.iter().filter(|text| !self.texts.contains(&(session_id, text.sha256))).collect()
    }

    fn add(&mut self, session_id: Uuid, texts: &[&ContextText]) {
        if self.texts.len() >= MAX_KNOWN {
            *self = Self::default();
        }
        self.since.get_or_insert_with(Instant::now);
        self.texts.extend(texts.iter().map(|text| (session_id, text.sha256)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::manifest::TextKind;

    #[tokio::test(start_paused = true)]
    async fn texts_that_were_stored_long_ago_are_stored_again() {
        let texts = ["one", "two"].map(|text| ContextText::new(TextKind::Envelope, text));
        let (session_id, mut known) = (Uuid::nil(), KnownTexts::default());
        let new = known.filter_new(session_id, &texts);
        known.add(session_id, &new[..1]);
        tokio::time::advance(MAX_AGE / 2).await;
        assert_eq!(known.filter_new(session_id, &texts), [&texts[1]]);
        assert_eq!(known.filter_new(Uuid::max(), &texts).len(), 2, "of another session");
        known.add(session_id, &[&texts[1]]);
        assert_eq!(known.filter_new(session_id, &texts), [&texts[0]; 0]);
        tokio::time::advance(MAX_AGE / 2).await;
        assert_eq!(known.filter_new(session_id, &texts).len(), 2);
    }
}
