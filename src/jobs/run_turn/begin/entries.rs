//! The entries that a turn adds to the transcript before its call.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use crate::{
    context::{Calibration, Weight},
    domain::{conversations::Resolved, ids, messages},
    jobs::run_turn::{
        begin::{
            arrival::{self, Arrival},
            board::{self, Board},
            results,
        },
        error::Error,
        load::assignment::Assignment,
        notices,
    },
};

pub struct NewEntries<'a> {
    pub words: Words,
    /// Is among them.
    pub arrival: Option<Arrival<'a>>,
}

/// The same for as long as the turn runs.
pub struct Words {
    /// In this order; the prompt is the last one.
    pub new: Vec<messages::New>,
    /// What the task has waited for. Among them unless an earlier attempt has added it.
    pub results: Option<messages::New>,
    /// What it shows of the board, which its commit adds.
    pub board: Option<Board>,
}

impl<'a> NewEntries<'a> {
    /// `was_refused`: this run has called before, and the conversation was too long.
    ///
    /// The prompt, and in front of it the notices of an interrupted turn and of a question that stands further up, what the
    /// task's node asks for, and the results that the task has waited for.
    pub async fn before_call(
        conn: &mut PgConnection,
        resolved: &Resolved,
        assignment: &'a Assignment<'_>,
        calibration: &Calibration,
        was_refused: bool,
        now: DateTime<Utc>,
    ) -> Result<Self, Error> {
        let (task, session) = (&assignment.task, &resolved.session);
        let asked_by = assignment.asked_by.as_deref();
        let joined = results::read(&mut *conn, assignment, session.id).await?;
        let mut new = Vec::with_capacity(1);
        if resolved.interrupted() {
            let is_rejected = session.rejected_turns.contains(&session.turn_count);
            let left = match is_rejected {
                true => None,
                false => {
                    Some(messages::left_by_turn(&mut *conn, session.id, session.turn_count).await?)
                }
            };
            new.push(notices::interrupted(ids::at(now), left));
        }
        // Its own turn is the latest one where this run has called before.
        let is_latest = was_refused || task.turn.is_none_or(|turn| turn == session.turn_count);
        if !is_latest && messages::others_asked_since(&mut *conn, session.id, task.id).await? {
            new.push(notices::again(ids::at(now), &task.prompt, asked_by));
        }
        let arrival = arrival::look(&mut *conn, assignment, session, now).await?;
        new.extend(arrival.as_ref().map(Arrival::entry));
        let untold = joined.as_ref().filter(|joined| !joined.is_stored);
        new.extend(untold.map(|joined| joined.entry.clone()));
        new.push(notices::prompt(task, asked_by));
        let board = board::look(&mut *conn, assignment, session, calibration, now).await?;
        let words = Words { new, results: joined.map(|joined| joined.entry), board };
        Ok(Self { words, arrival })
    }
}

impl Words {
    /// The notices in front of the prompt, which is sent as the task.
    pub fn notices(&self) -> &[messages::New] {
        match self.new.as_slice() {
            [notices @ .., _prompt] => notices,
            [] => &[],
        }
    }

    /// The weight of what the prompt stands behind.
    pub fn upcoming(&self) -> Weight {
        let results = self.results.as_ref().map(|told| Weight::of_message(&told.message));
        let posts = self.board.as_ref().map(|board| board.weight);
        results.into_iter().chain(posts).sum()
    }
}
