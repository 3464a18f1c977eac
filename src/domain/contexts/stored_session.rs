//! The rows of a session that its contexts are assembled from.

use std::collections::HashMap;

use sqlx::PgConnection;
use uuid::Uuid;

use super::Error;
use crate::{
    context::{
        Digest, Entry, Manifest,
        compaction::Compaction,
        manifest::Kind,
        replay::{self, AgentTexts, ReplayedCall, Rows},
        xml::FenceSeed,
    },
    domain::{StatementError, compactions, context_texts, messages, sessions::SessionRow},
};

pub struct StoredSession {
    session_id: Uuid,
    seed: FenceSeed,
    generation: Option<i32>,
    /// The summary of that generation; `None` if it was removed, too.
    compaction: Option<Compaction>,
    /// Messages after that compaction, with their turns.
    messages: Vec<(i32, Entry)>,
    /// Turns whose messages are not among `entries`.
    without_turns: Vec<i32>,
    entries: Vec<Entry>,
}

impl StoredSession {
    /// Reads what a call of a turn was assembled from.
    pub async fn up_to_turn(
        conn: &mut PgConnection,
        session: &SessionRow,
        manifest: &Manifest,
        turn: i32,
    ) -> Result<Self, Error> {
        let seed = session.fence_seed.as_slice().try_into();
        let seed = seed.map_err(|_| Error::FenceSeed(session.id))?;
        let generation = manifest.generation();
        let compaction = match generation {
            Some(generation) => read_compaction(&mut *conn, session.id, generation).await?,
            None => None,
        };
        let after_seq = compaction.as_ref().map_or(0, |compaction| compaction.to_seq);
        let stored = messages::list_up_to_turn(&mut *conn, session.id, after_seq, turn).await?;
        let turns: Vec<i32> = stored.iter().map(|message| message.turn).collect();
        let entries = messages::into_entries(conn, stored).await?;
        let mut rows = Self {
            session_id: session.id,
            generation,
            seed: FenceSeed::from_bytes(seed),
            compaction,
            messages: turns.into_iter().zip(entries).collect(),
            without_turns: Vec::new(),
            entries: Vec::new(),
        };
        rows.leave_out(&manifest.without_turns);
        Ok(rows)
    }

    /// Returns true if a call was assembled from these rows, too.
    pub fn is_of(&self, manifest: &Manifest) -> bool {
        manifest.generation() == self.generation
    }

    /// Assembles a call again, with the texts of `agent` in place of its own agent's. Returns it with the text of each part for people.
    pub async fn assemble(
        &mut self,
        conn: &mut PgConnection,
        manifest: &Manifest,
        texts: &HashMap<Digest, String>,
        turn: i32,
        agent: Option<&AgentTexts<'_>>,
    ) -> Result<(Result<ReplayedCall, replay::Error>, Vec<Option<String>>), StatementError> {
        if self.without_turns != manifest.without_turns {
            self.leave_out(&manifest.without_turns);
        }
        let own = self.own(conn, manifest).await?;
        let of_turn = self.messages.iter().filter(|(of, _)| *of == turn);
        let of_turn: Vec<Uuid> = of_turn.map(|(_, entry)| entry.id).collect();
        let rows = Rows {
            seed: &self.seed,
            texts,
            compaction: self.compaction.as_ref(),
            entries: &self.entries,
            own: &own,
            of_turn: &of_turn,
        };
        let mut replayed = replay::replay(manifest, &rows);
        if let (Some(agent), Ok(call)) = (agent, &mut replayed) {
            match replay::system_with_agent(manifest, &rows, agent) {
                Ok(system) => call.system = system,
                Err(error) => replayed = Err(error),
            }
        }
        Ok((replayed, replay::part_texts(manifest, &rows)))
    }

    /// Finds the prompt and the results. Those that an earlier attempt has stored may be folded, or of a turn that is left out.
    async fn own(
        &self,
        conn: &mut PgConnection,
        manifest: &Manifest,
    ) -> Result<Vec<Entry>, StatementError> {
        let ids = replay::own_entries(manifest);
        let is_own = |entry: &&Entry| ids.contains(&entry.id);
        let known = self.messages.iter().map(|(_, entry)| entry).filter(is_own);
        let known: Vec<Entry> = known.cloned().collect();
        if known.len() == ids.len() {
            return Ok(known);
        }
        let stored = messages::list_by_ids(&mut *conn, self.session_id, &ids).await?;
        messages::into_entries(conn, stored).await
    }

    fn leave_out(&mut self, turns: &[i32]) {
        let sent = self.messages.iter().filter(|(turn, _)| !turns.contains(turn));
        self.entries = sent.map(|(_, entry)| entry.clone()).collect();
        self.without_turns = turns.to_vec();
    }
}

/// Reads the stored texts of a manifest, and those that they name.
pub async fn texts_of(
    conn: &mut PgConnection,
    manifest: &Manifest,
) -> Result<HashMap<Digest, String>, StatementError> {
    let parts = manifest.parts.iter().filter_map(|part| part.sha256);
    let envelope = manifest.request.map(|request| request.envelope);
    let digests: Vec<Digest> = parts.chain(envelope).collect();
    let mut texts = context_texts::find(&mut *conn, &digests).await?;
    let rounds = manifest.parts.iter().find(|part| part.kind == Kind::Rounds);
    let list = rounds.and_then(|part| texts.get(&part.sha256?));
    let said: Option<Vec<Digest>> = list.and_then(|list| serde_json::from_str(list).ok());
    if let Some(said) = said {
        texts.extend(context_texts::find(conn, &said).await?);
    }
    Ok(texts)
}

/// Reads a compaction; `None` if it was removed.
async fn read_compaction(
    conn: &mut PgConnection,
    session_id: Uuid,
    generation: i32,
) -> Result<Option<Compaction>, Error> {
    match compactions::read(conn, session_id, generation).await {
        Ok(compaction) => Ok(Some(compaction)),
        Err(compactions::Error::Unknown { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
