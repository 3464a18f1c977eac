//! Charges of turns that are done.

use sqlx::PgExecutor;
use uuid::Uuid;

use crate::domain::StatementError;

/// The sums of the ledger over the calls of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TurnCharge {
    pub session_id: Uuid,
    pub number: i32,
    pub calls: i32,
    /// With cached tokens.
    pub input_tokens: i64,
    pub cache_read_tokens: i64,
    pub output_tokens: i64,
    pub cost_micros: i64,
}

/// Lists the last turns of these sessions whose input was counted: the sessions in their order, each from its newest turn on.
pub async fn charges(
    executor: impl PgExecutor<'_>,
    session_ids: &[Uuid],
    limit: i64,
) -> Result<Vec<TurnCharge>, StatementError> {
    sqlx::query_as!(
        TurnCharge,
        r#"select t.session_id, t.number, t.calls, t.input_tokens + t.cache_read_tokens + t.cache_creation_tokens as "input_tokens!",
                  t.cache_read_tokens, t.output_tokens, t.cost_micros
             from unnest($1::uuid[]) with ordinality as s (id, place)
            cross join lateral (
                  select * from dalsegno.turns as t
                   where t.session_id = s.id and t.state = 'done' and t.calls > 0
                     and t.input_tokens + t.cache_read_tokens + t.cache_creation_tokens > 0
                   order by t.number desc limit $2) as t
            order by s.place, t.number desc limit $2"#,
        session_ids,
        limit,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list the charges of earlier turns"))
}
