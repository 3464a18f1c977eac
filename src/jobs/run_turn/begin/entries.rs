//! The entries that a turn adds to the transcript before its call.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;

use crate::{
    context::{Calibration, Weight},
    domain::{conversations::ResolvedSession, ids, messages},
    jobs::run_turn::{
        begin::{
            arrival::{self, NodeArrival},
            board::{self, Board},
            results,
        },
        error::Error,
        load::assignment::Assignment,
        notices,
    },
};

pub struct NewEntries<'a> {
    pub words: TurnEntries,
    /// The arrival whose entry is among them.
    pub arrival: Option<NodeArrival<'a>>,
}

/// Entries that stay the same throughout the turn.
#[derive(Serialize, Deserialize)]
pub struct TurnEntries {
    /// In order; the prompt is the last one.
    pub new: Vec<messages::New>,
    /// True if an earlier attempt has stored the prompt, and storing it again would repeat it.
    pub is_prompt_stored: bool,
    /// Results that the task has waited for. They are in `new` unless an earlier attempt has stored them.
    pub results: Option<messages::New>,
    /// Posts that the turn shows; its commit stores them.
    pub board: Option<Board>,
}

impl<'a> NewEntries<'a> {
    /// Builds the entries: the prompt, and before it the notices, the node's instructions and the results. A notice
    /// tells of an interrupted turn, or of a prompt that is further up.
    ///
    /// `was_refused`: the provider has refused a call of this run as too long.
    pub async fn before_call(
        conn: &mut PgConnection,
        resolved: &ResolvedSession,
        assignment: &'a Assignment<'_>,
        calibration: &Calibration,
        was_refused: bool,
        now: DateTime<Utc>,
    ) -> Result<Self, Error> {
        let (task, prompt, session) = (&assignment.task, &assignment.prompt, &resolved.session);
        let asked_by = assignment.asked_by.as_deref();
        let joined = results::read(&mut *conn, assignment, session.id).await?;
        let mut new = Vec::with_capacity(1);
        if resolved.was_interrupted() {
            let is_rejected = session.rejected_turns.contains(&session.turn_count);
            let left = match is_rejected {
                true => None,
                false => Some(
                    messages::read_turn_output(&mut *conn, session.id, session.turn_count).await?,
                ),
            };
            new.push(notices::interruption_notice(ids::new_at(now), left));
        }
        // A run that has called before has the latest turn itself.
        let is_latest = was_refused || task.turn.is_none_or(|turn| turn == session.turn_count);
        if !is_latest
            && messages::others_asked_since(&mut *conn, session.id, prompt.entry_id).await?
        {
            new.push(notices::repeated_prompt_notice(ids::new_at(now), &prompt.text, asked_by));
        }
        let arrival = arrival::find_arrival(&mut *conn, assignment, session, now).await?;
        new.extend(arrival.as_ref().map(NodeArrival::entry));
        let untold = joined.as_ref().filter(|joined| !joined.is_stored);
        new.extend(untold.map(|joined| joined.entry.clone()));
        new.push(notices::prompt(prompt, asked_by));
        // A repeated prompt of a task is skipped when it is stored. A correction brings no news, so that nothing but the answer is new.
        let (is_prompt_stored, board) = match prompt.is_correction {
            true => (messages::contains(&mut *conn, session.id, prompt.entry_id).await?, None),
            false => {
                let board = board::load_board(&mut *conn, assignment, session, calibration, now);
                (false, board.await?)
            }
        };
        let results = joined.map(|joined| joined.entry);
        let words = TurnEntries { new, is_prompt_stored, results, board };
        Ok(Self { words, arrival })
    }
}

impl TurnEntries {
    /// Returns the entries that the begin of the turn stores.
    pub fn to_store(&self) -> &[messages::New] {
        if self.is_prompt_stored { self.notices() } else { &self.new }
    }

    /// Returns the entries before the prompt, which is sent as the task.
    pub fn notices(&self) -> &[messages::New] {
        match self.new.as_slice() {
            [notices @ .., _prompt] => notices,
            [] => &[],
        }
    }

    /// Returns the weight of the results and posts before the prompt.
    pub fn upcoming(&self) -> Weight {
        let results = self.results.as_ref().map(|told| Weight::of_message(&told.message));
        let posts = self.board.as_ref().map(|board| board.weight);
        results.into_iter().chain(posts).sum()
    }
}
