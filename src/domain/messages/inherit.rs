//! What a successor takes over of its predecessor's transcript.

use sqlx::PgExecutor;
use uuid::Uuid;

use crate::domain::Failed;

/// How much may be taken over.
#[derive(Debug, Clone, Copy)]
pub struct Inherited {
    /// What a summary stands for is not taken over.
    pub after_seq: i64,
    /// Whole turns from the end, as many as stay within this weight.
    pub max_weight: i64,
    /// Leaves out tool calls and their results.
    pub text_only: bool,
}

/// Copies the recent turns of `from` to `to`, with their places, and says how many messages that were.
///
/// Whole turns, because a tool call without its result poisons a conversation.
pub async fn inherit(
    executor: impl PgExecutor<'_>,
    from: Uuid,
    to: Uuid,
    part: Inherited,
) -> Result<u64, Failed> {
    sqlx::query!(
        "with shown as (
             select turn, sum(weight)::bigint as weight from dalsegno.messages
              where session_id = $1 and seq > $3
                and (not $5 or role in ('user', 'notice') or (role = 'assistant' and tool_calls is null))
              group by turn
         ), kept as (
             select t.turn from (select turn, sum(weight) over (order by turn desc)::bigint as total from shown) as t
              where t.total <= $4
         )
         insert into dalsegno.messages
                (session_id, seq, turn, created_at, id, role, text, weight, digest, partial, tool_calls, tool_call_id, tool_name)
         select $2, m.seq, m.turn, m.created_at, m.id, m.role, m.text, m.weight, m.digest, m.partial,
                m.tool_calls, m.tool_call_id, m.tool_name
           from dalsegno.messages as m join kept as k on k.turn = m.turn
          where m.session_id = $1 and m.seq > $3
            and (not $5 or m.role in ('user', 'notice') or (m.role = 'assistant' and m.tool_calls is null))",
        from,
        to,
        part.after_seq,
        part.max_weight,
        part.text_only,
    )
    .execute(executor)
    .await
    .map(|done| done.rows_affected())
    .map_err(Failed::to("hand a transcript on to the next session"))
}
