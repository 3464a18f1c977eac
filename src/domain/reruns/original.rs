//! The call of a turn that reruns are compared with.

use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use uuid::Uuid;

use super::Error;
use crate::{
    domain::{
        contexts, manifests, messages, sessions,
        turns::{self, Turn},
        usage::{self, LedgerCall, Purpose},
    },
    transcript::{Message, ToolCall},
};

/// A call of a turn as it was made in the turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct OriginalCall {
    pub session_id: Uuid,
    pub turn: i32,
    /// Number of the call in its turn, from 1.
    pub call: i32,
    pub provider: String,
    pub model: String,
    /// The text of its answer. Null: it has none, or the messages were removed.
    pub answer: Option<String>,
    pub tool_calls: Vec<ToolCall>,
    /// True if tokens, cost and time are those of the whole turn, because the calls of the provider cannot be told apart.
    pub is_whole_turn: bool,
    pub input_tokens: Option<i64>,
    pub output_tokens: Option<i64>,
    pub cost_micros: i64,
    /// True if the cost is 0 only because no price was set for the model.
    #[serde(default)]
    pub is_unpriced: bool,
    pub took_ms: Option<i32>,
}

/// Finds a call of a turn.
pub async fn find_original(
    conn: &mut PgConnection,
    (session_id, number): (Uuid, i32),
    call: i32,
) -> Result<OriginalCall, Error> {
    let session = sessions::get(&mut *conn, session_id).await?;
    let turn = turns::find(&mut *conn, session_id, number)
        .await?
        .ok_or(turns::Error::Unknown { session_id, number })?;
    let ledger = usage::of_turn(&mut *conn, session.campaign_id, session_id, number).await?;
    let ledger: Vec<_> = ledger.into_iter().filter(|row| row.purpose == Purpose::Turn).collect();
    let calls = manifests::stored_of_turn(&mut *conn, session_id, number).await?.len();
    let calls = i32::try_from(calls).unwrap_or(i32::MAX);
    // The first call has no context before the end of the turn.
    if call < 1 || call > calls.max(1) {
        return Err(contexts::Error::UnknownCall { session_id, turn: number, call, calls }.into());
    }
    let mut answers = messages::list_answers(conn, session_id, number).await?;
    let at = usize::try_from(call - 1).unwrap_or(0);
    let known = OriginalCall {
        session_id,
        turn: number,
        call,
        provider: session.provider,
        model: session.model,
        answer: None,
        tool_calls: Vec::new(),
        is_whole_turn: false,
        input_tokens: None,
        output_tokens: None,
        cost_micros: 0,
        is_unpriced: false,
        took_ms: None,
    };
    // A provider with tools of its own makes several calls in one.
    match ledger.get(at) {
        Some(row) if ledger.len() == answers.len() => {
            Ok(known.of_call(row).with_answer(answers.swap_remove(at)))
        }
        _ => {
            let has_unpriced = ledger.iter().any(LedgerCall::is_unpriced);
            let known = known.of_turn(&turn, has_unpriced);
            Ok(answers.pop().map_or(known.clone(), |answer| known.with_answer(answer)))
        }
    }
}

impl OriginalCall {
    fn of_call(self, row: &LedgerCall) -> Self {
        let cached = [row.cache_read_tokens, row.cache_creation_tokens];
        Self {
            model: row.model.clone(),
            input_tokens: row.input_tokens.map(|n| n + cached.iter().flatten().sum::<i64>()),
            output_tokens: row.output_tokens,
            cost_micros: row.cost_micros,
            is_unpriced: row.is_unpriced(),
            took_ms: row.total_ms,
            ..self
        }
    }

    fn of_turn(self, turn: &Turn, has_unpriced: bool) -> Self {
        let took = turn.ended_at.map(|ended_at| ended_at - turn.started_at);
        let cached = turn.cache_read_tokens + turn.cache_creation_tokens;
        Self {
            is_whole_turn: true,
            input_tokens: Some(turn.input_tokens + cached),
            output_tokens: Some(turn.output_tokens),
            cost_micros: turn.cost_micros,
            is_unpriced: has_unpriced && turn.cost_micros == 0,
            took_ms: took.and_then(|took| i32::try_from(took.num_milliseconds()).ok()),
            ..self
        }
    }

    fn with_answer(self, answer: Message) -> Self {
        Self { answer: Some(answer.text), tool_calls: answer.tool_calls, ..self }
    }
}
