//! The texts of contexts that this process knows to be stored, so that a turn sends only new ones.

use std::{
    collections::HashSet,
    sync::{Mutex, MutexGuard, PoisonError},
};

use sqlx::PgPool;
use uuid::Uuid;

use crate::{
    context::{Digest, manifest::ContextText},
    domain::{
        StatementError,
        context_texts::{self, StoringCall},
    },
};

#[derive(Debug, Default)]
pub(super) struct StoredTexts(Mutex<HashSet<(Uuid, Digest)>>);

/// About 10 MB. Beyond it all are forgotten, and are stored once more.
const MAX_KNOWN: usize = 1 << 17;

impl StoredTexts {
    /// Stores the texts that the session is not known to use.
    pub(super) async fn store(
        &self,
        pool: &PgPool,
        call: &StoringCall,
        texts: &[ContextText],
    ) -> Result<(), StatementError> {
        let session_id = call.session_id;
        let new: Vec<&ContextText> = {
            let known = self.lock();
            texts.iter().filter(|text| !known.contains(&(session_id, text.sha256))).collect()
        };
        if new.is_empty() {
            return Ok(());
        }
        if context_texts::store(pool, call, &new).await.is_err() {
            // Another session may have removed a text with its last use at the same moment.
            context_texts::store(pool, call, &new).await?;
        }
        let mut known = self.lock();
        if known.len() >= MAX_KNOWN {
            known.clear();
        }
        known.extend(new.into_iter().map(|text| (session_id, text.sha256)));
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<(Uuid, Digest)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
