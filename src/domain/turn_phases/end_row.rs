//! Rows of the JSON parameters of the statement that ends a turn.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use super::end::{ShownPosts, TurnEnd};
use crate::domain::{
    Amount,
    amount::Refusal,
    json_rows,
    sessions::{self, Reason},
    tasks, turns, usage,
};

/// The turn, its session and its task. `None` leaves a column of the session unchanged.
#[derive(Debug, Serialize)]
pub(super) struct EndRow<'a> {
    pub(super) session_id: Uuid,
    pub(super) number: i32,
    pub(super) lease: i64,
    pub(super) task_id: Uuid,
    pub(super) campaign_id: Uuid,
    #[serde(serialize_with = "json_rows::timestamptz")]
    pub(super) now: DateTime<Utc>,
    pub(super) state: turns::State,
    pub(super) error: Option<&'a str>,
    pub(super) flags: &'a [String],
    pub(super) history_check: Option<turns::HistoryCheck>,
    pub(super) is_prompt_rejected: bool,
    pub(super) session_state: sessions::State,
    pub(super) n_messages: i64,
    /// Tokens of all its calls.
    pub(super) tokens_used: i64,
    /// Tokens of the model's window that the last call occupied.
    pub(super) context_tokens: Option<i64>,
    pub(super) board_cursor: Option<i64>,
    #[serde(serialize_with = "json_rows::optional_timestamptz")]
    pub(super) expires_at: Option<DateTime<Utc>>,
    pub(super) calibration: Option<&'a Value>,
    pub(super) checkpoint: Option<&'a Value>,
    pub(super) rebuild_because: Option<Reason>,
    /// True if the provider's conversation continues at `head`, or is lost if `head` is None.
    pub(super) moves_head: bool,
    pub(super) head: Option<Uuid>,
    /// The generation that `head` belongs to.
    pub(super) generation: Option<i32>,
    pub(super) meter: Option<&'a Value>,
    pub(super) task_state: tasks::State,
    pub(super) task_result: Option<&'a str>,
    pub(super) task_result_json: Option<&'a Value>,
    pub(super) task_error: Option<&'a str>,
    pub(super) task_refusal: Option<&'a Refusal>,
    /// Set if the next turn of the task corrects the answer.
    pub(super) task_fault: Option<&'a str>,
}

/// The transcript entry of the posts that were shown.
#[derive(Debug, Serialize)]
pub(super) struct BoardEntryRow<'a> {
    seq: i64,
    id: Uuid,
    text: &'a str,
    weight: i64,
    #[serde(serialize_with = "json_rows::bytea")]
    digest: &'a [u8; 32],
    posts: &'a [i64],
}

impl<'a> EndRow<'a> {
    pub(super) fn of(
        ending: &TurnEnd<'_>,
        state: turns::State,
        session_state: sessions::State,
        task: tasks::End<'a>,
    ) -> Self {
        let TurnEnd { turn, now, .. } = *ending;
        let used: Amount = ending.calls.iter().map(usage::Call::amount).sum();
        let end = task.columns();
        Self {
            session_id: turn.session_id,
            number: turn.turn,
            lease: turn.lease,
            task_id: turn.task_id,
            campaign_id: turn.campaign_id,
            now,
            state,
            error: None,
            flags: &[],
            history_check: None,
            is_prompt_rejected: false,
            session_state,
            n_messages: i64::try_from(ending.messages.len()).unwrap_or(i64::MAX),
            tokens_used: used.tokens,
            context_tokens: None,
            board_cursor: None,
            expires_at: None,
            calibration: None,
            checkpoint: None,
            rebuild_because: None,
            moves_head: false,
            head: None,
            generation: None,
            meter: None,
            task_state: end.state,
            task_result: end.result,
            task_result_json: end.result_json,
            task_error: end.error,
            task_refusal: end.refusal,
            task_fault: end.fault,
        }
    }
}

impl<'a> BoardEntryRow<'a> {
    pub(super) fn of(shown: ShownPosts<'a>) -> Self {
        let ShownPosts { posts, entry, seq } = shown;
        Self {
            seq,
            id: entry.id,
            text: &entry.message.text,
            weight: entry.weight,
            digest: &entry.digest,
            posts,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{Record, StartedTurn},
        *,
    };
    use crate::domain::{feed, json_rows::columns, manifests, messages};

    const SQL: &str = include_str!("end.sql");

    #[test]
    fn update_columns_match_turn_rows() {
        let turn = StartedTurn {
            session_id: Uuid::nil(),
            campaign_id: Uuid::nil(),
            task_id: Uuid::nil(),
            turn: 1,
            lease: 1,
            reserved: Amount::ZERO,
            ephemeral: false,
        };
        let (record, now) = (Record::default(), DateTime::UNIX_EPOCH);
        let ending = TurnEnd { turn: &turn, calls: &[], messages: &[], record, now };
        let (done, idle) = (turns::State::Done, sessions::State::Idle);
        let row = EndRow::of(&ending, done, idle, tasks::End::Queued);
        columns::assert_are_fields_of(&row, SQL, "jsonb_to_record($1)");
    }

    #[test]
    fn insert_columns_match_list_rows() {
        let (seq, id, text, weight) = (1, Uuid::nil(), "", 0);
        let entry = BoardEntryRow { seq, id, text, weight, digest: &[0; 32], posts: &[] };
        let message = messages::InsertRow::example();
        columns::assert_are_fields_of(&message, SQL, "jsonb_to_recordset($2)");
        columns::assert_are_fields_of(&entry, SQL, "jsonb_to_recordset($3)");
        columns::assert_are_fields_of(&usage::Call::example(), SQL, "jsonb_to_recordset($4)");
        columns::assert_are_fields_of(&manifests::New::example(), SQL, "jsonb_to_recordset($5)");
        columns::assert_are_fields_of(&feed::InsertRow::example(), SQL, "jsonb_to_recordset($6)");
    }
}
