//! What a session shows, in the shape that the context works on.

use sqlx::PgConnection;
use uuid::Uuid;

use crate::{
    context::{
        Digest, Entry, Weight,
        compaction::{Compaction, View},
    },
    domain::{Failed, compactions, messages, sessions::Live},
    transcript::Message,
};

/// The summary that is shown, and everything after it.
#[derive(Debug)]
pub(super) struct Conversation {
    pub(super) compaction: Option<Compaction>,
    pub(super) tail: Vec<Entry>,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error(
        "session {session} shows compaction {generation}, which is not stored; show another one with `dalsegno session uncompact`"
    )]
    NoCompaction { session: Uuid, generation: i32 },
    #[error("compaction {generation} of session {session} cannot be read")]
    Unreadable {
        session: Uuid,
        generation: i32,
        #[source]
        source: serde_json::Error,
    },
    #[error(transparent)]
    Database(#[from] Failed),
}

impl Conversation {
    pub(super) async fn load(conn: &mut PgConnection, session: &Live) -> Result<Self, Error> {
        let compaction = match session.generation {
            0 => None,
            generation => Some(shown(&mut *conn, session.id, generation).await?),
        };
        let folded_to = compaction.as_ref().map_or(0, |compaction| compaction.to_seq);
        let stored = messages::list(conn, session.id, messages::Span::after(folded_to)).await?;
        Ok(Self { compaction, tail: stored.into_iter().map(entry).collect() })
    }

    pub(super) fn view(&self) -> View<'_> {
        View { compaction: self.compaction.as_ref(), tail: &self.tail }
    }

    /// Whether there is anything beside the prompt that an earlier attempt of this task has stored.
    pub(super) fn has_history(&self, task: Uuid) -> bool {
        self.compaction.is_some() || self.tail.iter().any(|entry| entry.id != task)
    }
}

/// A message as it is stored: made storable first, then measured.
pub(super) fn measured(id: Uuid, message: Message) -> messages::New {
    let entry = Entry::new(id, 0, messages::storable(message));
    messages::New {
        id,
        weight: i64::try_from(entry.weight.millitokens()).unwrap_or(i64::MAX),
        digest: *entry.digest.as_bytes(),
        message: entry.message,
        partial: false,
    }
}

/// A message that is about to be stored, as it will be read.
pub(super) fn coming(new: &messages::New, seq: i64) -> Entry {
    Entry {
        id: new.id,
        seq,
        message: new.message.clone(),
        weight: weight(new.weight),
        digest: Digest::from_bytes(new.digest),
    }
}

async fn shown(
    conn: &mut PgConnection,
    session: Uuid,
    generation: i32,
) -> Result<Compaction, Error> {
    let stored = compactions::get(conn, session, generation).await?;
    let stored = stored.ok_or(Error::NoCompaction { session, generation })?;
    let pins = serde_json::from_value(stored.pins).map_err(|source| Error::Unreadable {
        session,
        generation,
        source,
    })?;
    Ok(Compaction {
        generation: u32::try_from(stored.generation).unwrap_or_default(),
        parent: u32::try_from(stored.parent).unwrap_or_default(),
        from_seq: stored.from_seq,
        to_seq: stored.to_seq,
        summary: stored.summary.unwrap_or_default(),
        pins,
        tokens_before: u64::try_from(stored.tokens_before).unwrap_or_default(),
        tokens_after: stored.tokens_after.and_then(|n| u64::try_from(n).ok()).unwrap_or_default(),
    })
}

fn entry(stored: messages::Stored) -> Entry {
    Entry {
        id: stored.id,
        seq: stored.seq,
        message: stored.message,
        weight: weight(stored.weight),
        digest: Digest::from_bytes(stored.digest),
    }
}

fn weight(millitokens: i64) -> Weight {
    Weight::from_millitokens(u64::try_from(millitokens).unwrap_or_default())
}
