//! The progress of a running turn: its output so far, and events of the feed.
//!
//! Race: a run may write after another one has ended its turn, for example a worker that was frozen for longer than its lease. By then the
//! campaign may be erased. So both parts are written only if the turn runs under the lease of the run.

use chrono::{DateTime, Utc};
use sqlx::{PgExecutor, types::Json};

use super::StartedTurn;
use crate::domain::{StatementError, feed, messages::New};

/// Stores the output of a turn in place of the stored one, and adds events to the feed. Returns false and writes nothing if the lease is
/// lost or the turn has ended.
pub async fn store_progress(
    executor: impl PgExecutor<'_>,
    turn: &StartedTurn,
    output: Option<&New>,
    events: &[feed::New],
    now: DateTime<Utc>,
) -> Result<bool, StatementError> {
    sqlx::query_file_scalar!(
        "src/domain/turn_phases/progress.sql",
        turn.session_id,
        turn.turn,
        turn.lease,
        now,
        output.map(|new| new.weight) as Option<i64>,
        output.map(|new| new.digest.as_slice()) as Option<&[u8]>,
        output.map(|new| new.message.text.as_str()) as Option<&str>,
        Json(feed::InsertRow::all(events)) as _,
    )
    .fetch_one(executor)
    .await
    .map_err(StatementError::to("store the progress of a turn"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::json_rows::columns;

    #[test]
    fn insert_columns_match_event_rows() {
        let (row, sql) = (feed::InsertRow::example(), include_str!("progress.sql"));
        columns::assert_are_fields_of(&row, sql, "jsonb_to_recordset($8)");
    }
}
