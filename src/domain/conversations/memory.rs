//! The memory that a new session takes over from another: summary, messages, place in the work.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::domain::{
    compactions, facts,
    messages::{self, MaxWeight},
    nodes,
    sessions::{Error, SessionRow},
};

/// The part of a conversation that a new session takes over.
#[derive(Debug, Clone, Copy)]
pub(super) struct InheritedMemory<'a> {
    /// The compaction to begin with, from [`compactions::find_inheritable`]; 0: none.
    pub generation: i32,
    /// The last turn, and the last place of its messages.
    pub up_to_turn: i32,
    pub up_to_seq: i64,
    /// Maximum weight of the messages after the summary.
    pub max_weight: MaxWeight,
    /// Leaves out tool calls and their results.
    pub text_only: bool,
    /// Leaves out these turns, whose prompts the provider has rejected.
    pub without_turns: &'a [i32],
}

impl<'a> InheritedMemory<'a> {
    /// Returns the whole memory of a session, with this compaction in front of it.
    pub fn of_successor(from: &'a SessionRow, generation: i32, max_weight: MaxWeight) -> Self {
        let (up_to_turn, up_to_seq) = (i32::MAX, i64::MAX);
        let without_turns = &from.rejected_turns;
        Self { generation, up_to_turn, up_to_seq, max_weight, text_only: false, without_turns }
    }
}

/// Copies the memory of `from` to the session `to`, which was opened for it.
pub(super) async fn inherit(
    conn: &mut PgConnection,
    from: &SessionRow,
    to: Uuid,
    part: InheritedMemory<'_>,
    now: DateTime<Utc>,
) -> Result<messages::InheritResult, Error> {
    let takes_summary = part.generation > 0;
    let after_seq = match takes_summary {
        true => compactions::inherit(&mut *conn, from.id, to, part.generation, now).await?,
        false => 0,
    };
    let limits = messages::InheritLimits {
        after_seq,
        up_to_turn: part.up_to_turn,
        max_weight: part.max_weight,
        text_only: part.text_only,
        without_turns: part.without_turns,
    };
    let inherited = messages::inherit(&mut *conn, from.id, to, limits).await?;
    facts::inherit_showings(&mut *conn, from.id, to).await?;
    inherit_node(conn, (from.id, part.up_to_seq), to, takes_summary).await?;
    Ok(inherited)
}

/// Places the new session at the node where the other one was at a place of its transcript. The node's instructions are sent again, unless
/// they came along as a message or in front of the summary.
async fn inherit_node(
    conn: &mut PgConnection,
    (from, at_seq): (Uuid, i64),
    to: Uuid,
    takes_summary: bool,
) -> Result<(), Error> {
    let Some(stay) = nodes::stay_at(&mut *conn, from, at_seq).await? else { return Ok(()) };
    let mut has_entry = match stay.entry_id {
        Some(entry_id) => messages::contains(&mut *conn, to, entry_id).await?,
        None => false,
    };
    if !has_entry && takes_summary {
        has_entry = compactions::is_of_node_since(&mut *conn, to, stay.first_seq).await?;
    }
    Ok(nodes::inherit(conn, (from, stay.ordinal), to, has_entry).await?)
}
