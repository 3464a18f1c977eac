//! Inheriting a predecessor's transcript.

use serde::Serialize;
use sqlx::PgExecutor;
use uuid::Uuid;

use crate::domain::StatementError;

/// Limits of the inherited part.
#[derive(Debug, Clone, Copy)]
pub struct InheritLimits<'a> {
    /// Messages up to this place are left out, because a summary stands for them.
    pub after_seq: i64,
    /// Messages of later turns are left out.
    pub up_to_turn: i32,
    pub max_weight: MaxWeight,
    /// Leaves out tool calls and their results.
    pub text_only: bool,
    /// Turns left out because the provider has rejected the prompts of their tasks.
    pub without_turns: &'a [i32],
}

/// Limits of the weight that is inherited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MaxWeight {
    /// All turns are inherited up to this weight.
    pub whole: i64,
    /// Of heavier transcripts, the newest whole turns within this weight are inherited.
    pub newest: i64,
}

/// The inherited and the omitted part of a transcript.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InheritResult {
    pub messages: i64,
    pub left_out: Option<LeftOut>,
}

/// Older turns that were too heavy to be taken over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    pub messages: i64,
    pub first_turn: i32,
    pub last_turn: i32,
    /// The place of the last one. In the successor it is free and lies before everything inherited.
    #[serde(skip)]
    pub last_seq: i64,
}

/// Returns the last place of the messages up to a turn.
pub async fn last_seq_of_turn(
    executor: impl PgExecutor<'_>,
    session_id: Uuid,
    turn: i32,
) -> Result<i64, StatementError> {
    sqlx::query_scalar!(
        r#"select coalesce(max(seq), 0) as "seq!" from dalsegno.messages where session_id = $1 and turn <= $2"#,
        session_id,
        turn,
    )
    .fetch_one(executor)
    .await
    .map_err(StatementError::to("find the end of a turn in a transcript"))
}

impl MaxWeight {
    pub const UNLIMITED: Self = Self::of_newest(i64::MAX);

    /// Returns the limit under which only the newest turns are inherited.
    pub const fn of_newest(newest: i64) -> Self {
        Self { whole: 0, newest }
    }
}

/// Copies the recent turns of `from` to `to`, at the same places.
///
/// Copies whole turns only, because providers reject a tool call without its result.
pub async fn inherit(
    executor: impl PgExecutor<'_>,
    from: Uuid,
    to: Uuid,
    part: InheritLimits<'_>,
) -> Result<InheritResult, StatementError> {
    let row = sqlx::query!(
        r#"with shown as (
             select turn, sum(weight)::bigint as weight, count(*) as n, max(seq) as last_seq from dalsegno.messages
              where session_id = $1 and seq > $3 and turn <= $7 and turn <> all($6)
                and (not $5 or role in ('user', 'notice') or (role = 'assistant' and tool_calls is null))
              group by turn
         ), summed as (
             select turn, n, last_seq, sum(weight) over ()::bigint <= $8 or sum(weight) over (order by turn desc)::bigint <= $4 as is_kept from shown
         ), taken as (
             insert into dalsegno.messages
                    (session_id, seq, turn, created_at, id, role, text, weight, digest, partial, tool_calls, tool_call_id, tool_name, posts)
             select $2, m.seq, m.turn, m.created_at, m.id, m.role, m.text, m.weight, m.digest, m.partial,
                    m.tool_calls, m.tool_call_id, m.tool_name, m.posts
               from dalsegno.messages as m join summed as s on s.turn = m.turn and s.is_kept
              where m.session_id = $1 and m.seq > $3
                and (not $5 or m.role in ('user', 'notice') or (m.role = 'assistant' and m.tool_calls is null))
             returning 1
         )
         select (select count(*) from taken) as "messages!", coalesce(sum(n), 0)::bigint as "left_out!",
                min(turn) as first_turn, max(turn) as last_turn, max(last_seq) as last_seq
           from summed where not is_kept"#,
        from,
        to,
        part.after_seq,
        part.max_weight.newest,
        part.text_only,
        part.without_turns,
        part.up_to_turn,
        part.max_weight.whole,
    )
    .fetch_one(executor)
    .await
    .map_err(StatementError::to("copy a transcript to the next session"))?;
    let left_out = match (row.first_turn, row.last_turn, row.last_seq) {
        (Some(first_turn), Some(last_turn), Some(last_seq)) => {
            Some(LeftOut { messages: row.left_out, first_turn, last_turn, last_seq })
        }
        _ => None,
    };
    Ok(InheritResult { messages: row.messages, left_out })
}
