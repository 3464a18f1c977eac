//! The view of a session, read from rows for `context`.

use std::collections::HashSet;

use sqlx::PgConnection;
use uuid::Uuid;

use super::Error;
use crate::{
    context::{
        Entry,
        compaction::{Compaction, View},
    },
    domain::{
        compactions,
        messages::{self, StoredMessage},
        sessions::SessionRow,
    },
    transcript::Role,
};

/// The view of one generation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadedView {
    session_id: Uuid,
    generation: u32,
    /// The current compaction, and the one that it was made from.
    compactions: Vec<Compaction>,
    entries: Vec<Entry>,
    /// Turns whose messages are left out, because the provider has rejected the prompt of their task.
    without_turns: Vec<i32>,
    /// Last place that was read. Entries after it are not stored yet.
    known_to_seq: i64,
}

impl LoadedView {
    /// Reads the session's view, without folded messages.
    pub async fn read(conn: &mut PgConnection, session: &SessionRow) -> Result<Self, Error> {
        let mut loaded = Self::at_generation(&mut *conn, session, session.generation).await?;
        loaded.catch_up(conn, session.last_seq).await?;
        Ok(loaded)
    }

    /// Reads the session's view. Of a view that is `known` from before, only new messages are read, if it is still part of the session.
    pub async fn read_after(
        known: Option<Self>,
        conn: &mut PgConnection,
        session: &SessionRow,
    ) -> Result<Self, Error> {
        if let Some(mut known) = known
            && known.without_turns == session.rejected_turns
            && known.catch_up(&mut *conn, session.last_seq).await?
        {
            return Ok(known);
        }
        Self::read(conn, session).await
    }

    /// Reads the view for a summariser: messages that only a reference replaces are read again.
    pub async fn read_unsummarised(
        conn: &mut PgConnection,
        session: &SessionRow,
    ) -> Result<Self, Error> {
        let generation =
            compactions::find_inheritable(&mut *conn, session.id, session.generation).await?;
        let mut loaded = Self::at_generation(&mut *conn, session, generation).await?;
        loaded.catch_up(conn, session.last_seq).await?;
        Ok(loaded)
    }

    /// Reads the compactions of the view, without later messages.
    async fn at_generation(
        conn: &mut PgConnection,
        session: &SessionRow,
        generation: i32,
    ) -> Result<Self, Error> {
        let session_id = session.id;
        let mut compactions = Vec::new();
        if generation > 0 {
            let shown = compactions::read(&mut *conn, session_id, generation).await?;
            let parent = i32::try_from(shown.parent).unwrap_or(0);
            compactions.push(shown);
            if parent > 0 {
                compactions.push(compactions::read(&mut *conn, session_id, parent).await?);
            }
        }
        Ok(Self {
            session_id,
            generation: unsigned(generation),
            known_to_seq: compactions.first().map_or(0, |shown| shown.to_seq),
            compactions,
            entries: Vec::new(),
            without_turns: session.rejected_turns.clone(),
        })
    }

    /// Reads new messages, up to `last_seq` of the session's row. Returns false if the known ones are not those of the transcript.
    ///
    /// A transcript is append-only, so known messages stay valid while the database keeps them. It loses them in a rollback, in a
    /// failover to a standby that had not received them, and when it is restored. So the last one is read again.
    async fn catch_up(&mut self, conn: &mut PgConnection, last_seq: i64) -> Result<bool, Error> {
        let last_known = self.entries.last().map(|entry| (entry.seq, entry.id));
        if last_seq < self.known_to_seq {
            return Ok(false);
        }
        if last_known.is_none() && last_seq == self.known_to_seq {
            return Ok(true);
        }
        let after_seq = last_known.map_or(self.known_to_seq, |(seq, _)| seq - 1);
        let after = messages::Span::after(after_seq);
        let mut stored = messages::list(&mut *conn, self.session_id, after).await?.into_iter();
        if let Some(last_known) = last_known
            && stored.next().is_none_or(|first| (first.seq, first.id) != last_known)
        {
            return Ok(false);
        }
        // Later messages were added since the row was read, and may be incomplete.
        let new = stored.filter(|stored| (self.known_to_seq + 1..=last_seq).contains(&stored.seq));
        let sent = new.filter(|stored| !self.without_turns.contains(&stored.turn));
        let sent: Vec<StoredMessage> = sent.collect();
        self.entries.extend(messages::into_entries(conn, sent).await?);
        self.known_to_seq = last_seq;
        Ok(true)
    }

    /// Lists the tasks of all prompts that are not folded.
    pub fn prompt_tasks(&self) -> Vec<Uuid> {
        let prompts = self.entries.iter().filter(|entry| entry.message.role == Role::User);
        prompts.map(|entry| entry.id).collect()
    }

    /// Marks prompts whose tasks were added by agents.
    pub fn mark_as_by_agents(&mut self, task_ids: &HashSet<Uuid>) {
        let entries = self.entries.iter_mut().filter(|entry| task_ids.contains(&entry.id));
        entries.for_each(Entry::mark_as_by_agent);
    }

    /// Adds an entry that is about to be stored.
    pub fn add(&mut self, entry: Entry) {
        self.entries.push(entry);
    }

    /// Removes the entries that are not stored yet.
    pub fn without_unstored(mut self) -> Self {
        let n_stored = self.entries.partition_point(|entry| entry.seq <= self.known_to_seq);
        self.entries.truncate(n_stored);
        self
    }

    /// Returns the session and the generation.
    pub fn of(&self) -> (Uuid, i32) {
        (self.session_id, i32::try_from(self.generation).unwrap_or(i32::MAX))
    }

    /// Estimates its size in memory.
    pub fn bytes(&self) -> usize {
        let summaries = self.compactions.iter().map(|compaction| compaction.summary.len());
        self.entries.iter().map(Entry::bytes).sum::<usize>() + summaries.sum::<usize>()
    }

    pub fn view(&self) -> Result<View<'_>, Error> {
        let session_id = self.session_id;
        View::of(&self.entries, &self.compactions, self.generation)
            .map_err(|source| Error::View { session_id, source })
    }
}

fn unsigned(number: i32) -> u32 {
    u32::try_from(number).unwrap_or(0)
}
