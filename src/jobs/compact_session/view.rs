//! The rows of a session as `context` reads them.

use sqlx::PgConnection;
use uuid::Uuid;

use super::Error;
use crate::{
    context::{
        Digest, Entry, Weight,
        compaction::{Compaction, View},
    },
    domain::{
        compactions,
        messages::{self, Stored},
    },
};

/// What a generation shows, read from the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    session_id: Uuid,
    generation: u32,
    /// The one that is shown, and the one that it was made from.
    compactions: Vec<Compaction>,
    entries: Vec<Entry>,
}

impl Loaded {
    /// Reads what `generation` shows, and nothing of what it folds.
    pub async fn read(
        conn: &mut PgConnection,
        session_id: Uuid,
        generation: i32,
    ) -> Result<Self, Error> {
        let mut compactions = Vec::new();
        if generation > 0 {
            let shown = compaction(&mut *conn, session_id, generation).await?;
            let parent = i32::try_from(shown.parent).unwrap_or(0);
            compactions.push(shown);
            if parent > 0 {
                compactions.push(compaction(&mut *conn, session_id, parent).await?);
            }
        }
        let after = compactions.first().map_or(0, |shown| shown.to_seq);
        let stored = messages::list(conn, session_id, messages::Span::after(after)).await?;
        Ok(Self {
            session_id,
            generation: unsigned(generation),
            compactions,
            entries: stored.into_iter().map(entry).collect(),
        })
    }

    /// Adds what is about to be stored.
    pub fn add(&mut self, entry: Entry) {
        self.entries.push(entry);
    }

    pub fn view(&self) -> Result<View<'_>, Error> {
        let session_id = self.session_id;
        View::of(&self.entries, &self.compactions, self.generation)
            .map_err(|source| Error::View { session_id, source })
    }
}

/// Its weight and digest were measured when it was written.
fn entry(stored: Stored) -> Entry {
    Entry {
        id: stored.id,
        seq: stored.seq,
        message: stored.message,
        weight: Weight::from_millitokens(u64::try_from(stored.weight).unwrap_or(0)),
        digest: Digest::from_bytes(stored.digest),
    }
}

async fn compaction(
    conn: &mut PgConnection,
    session_id: Uuid,
    generation: i32,
) -> Result<Compaction, Error> {
    let unknown = || compactions::Error::Unknown { session_id, generation };
    let row = compactions::get(conn, session_id, generation).await?.ok_or_else(unknown)?;
    let pins = serde_json::from_value(row.pins).map_err(|source| Error::Stored {
        session_id,
        what: "the pins",
        source,
    })?;
    Ok(Compaction {
        generation: unsigned(row.generation),
        parent: unsigned(row.parent),
        from_seq: row.from_seq,
        to_seq: row.to_seq,
        summary: row.summary.ok_or_else(unknown)?,
        pins,
        tokens_before: u64::try_from(row.tokens_before).unwrap_or(0),
        tokens_after: row.tokens_after.and_then(|tokens| u64::try_from(tokens).ok()).unwrap_or(0),
    })
}

fn unsigned(number: i32) -> u32 {
    u32::try_from(number).unwrap_or(0)
}
