//! Begin of a turn: the transaction before the provider is called.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sqlx::{PgConnection, PgExecutor, types::Json};
use uuid::Uuid;

use super::Error;
use crate::domain::{
    Amount, StatementError,
    amount::{Limit, Owner},
    budgets,
    failovers::ChainChoice,
    feed, json_rows,
    messages::{self, New},
    sessions::{self, ProviderSession, SessionRow},
    tasks,
};

#[derive(Debug, Clone)]
pub struct Begin<'a> {
    pub session: &'a SessionRow,
    pub task_id: Uuid,
    pub job_id: i64,
    pub lease: i64,
    /// The number of the job's attempt.
    pub attempt: i16,
    /// The highest possible cost of the turn.
    pub reserve: Amount,
    /// The entry of its agent's chain.
    pub chain: Option<ChainChoice>,
    /// The budgets of its agent, its user and the day.
    pub budgets: &'a [i64],
    /// The provider's conversation, if the provider keeps it.
    pub minted: Option<ProviderSession<'a>>,
    /// The prompt under the id of its task, after notices if there are any. A prompt that an earlier attempt has written is skipped.
    pub messages: &'a [New],
    /// Reserves a place in front of the prompt for the posts that the turn shows. They are written together with its answer.
    pub shows_posts: bool,
    /// Events for the feed.
    pub events: &'a [feed::New],
    pub now: DateTime<Utc>,
}

/// A turn that has begun. Its end needs all of this.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartedTurn {
    pub session_id: Uuid,
    pub campaign_id: Uuid,
    pub task_id: Uuid,
    pub turn: i32,
    pub lease: i64,
    /// The reservation as far as the worker knows it. The row has more after a commit that was not confirmed, and is what the end releases.
    pub reserved: Amount,
    pub ephemeral: bool,
}

/// Returns the session of the previous turn, which may be a predecessor, because successors continue the numbers. `None`: this is the
/// first turn, or that session was removed.
pub async fn session_before(
    executor: impl PgExecutor<'_>,
    begun: &StartedTurn,
) -> Result<Option<Uuid>, StatementError> {
    if begun.turn <= 1 {
        return Ok(None);
    }
    sqlx::query_file_scalar!(
        "src/domain/turn_phases/previous_session.sql",
        begun.session_id,
        begun.turn - 1
    )
    .fetch_optional(executor)
    .await
    .map_err(StatementError::to("find the previous turn"))
}

/// Begins a turn: starts the session, appends the prompt and reserves the budget. After an error the caller must roll back.
pub async fn begin(conn: &mut PgConnection, begin: &Begin<'_>) -> Result<StartedTurn, Error> {
    let Begin { session, task_id, lease, reserve, .. } = *begin;
    let turn = session.turn_count + 1;
    match insert_turn(&mut *conn, begin, turn).await? {
        EnterOutcome::Overtaken => return Err(sessions::Error::Overtaken(session.id).into()),
        EnterOutcome::TaskEnded => return Err(tasks::ended_error(conn, task_id).await.into()),
        EnterOutcome::Started { limit, spent, refusal } => {
            let owner = Owner::Task(task_id);
            limit.check(owner, spent, Amount::ZERO, reserve).map_err(tasks::Error::from)?;
            budgets::check_refusal(refusal, reserve)?;
        }
    }
    Ok(StartedTurn {
        session_id: session.id,
        campaign_id: session.campaign_id,
        task_id,
        turn,
        lease,
        reserved: reserve,
        ephemeral: session.ephemeral,
    })
}

/// The result of the statement.
enum EnterOutcome {
    Overtaken,
    /// The task has ended meanwhile, for example by a cancellation.
    TaskEnded,
    /// The task's own budget and its cost so far.
    Started {
        limit: Limit,
        spent: Amount,
        /// The answer of the first other budget without space.
        refusal: Option<Value>,
    },
}

async fn insert_turn(
    conn: &mut PgConnection,
    begin: &Begin<'_>,
    turn: i32,
) -> Result<EnterOutcome, StatementError> {
    let row = sqlx::query_file!(
        "src/domain/turn_phases/begin.sql",
        Json(begin.row(turn)) as _,
        Json(begin.message_rows()) as _,
        Json(feed::InsertRow::all(begin.events)) as _,
    )
    .fetch_optional(conn)
    .await
    .map_err(StatementError::to("begin a turn"))?;
    Ok(match row {
        None => EnterOutcome::Overtaken,
        Some(row) if !row.started => EnterOutcome::TaskEnded,
        Some(row) => EnterOutcome::Started {
            limit: Limit { micros: row.budget_micros, tokens: row.budget_tokens },
            spent: Amount { micros: row.spent_micros, tokens: row.spent_tokens },
            refusal: row.refusal,
        },
    })
}

/// The row of the statement's JSON parameter.
#[derive(Debug, Serialize)]
struct BeginRow<'a> {
    session_id: Uuid,
    campaign_id: Uuid,
    number: i32,
    lease: i64,
    task_id: Uuid,
    attempt: i16,
    job_id: i64,
    #[serde(serialize_with = "json_rows::timestamptz")]
    now: DateTime<Utc>,
    reserved_micros: i64,
    reserved_tokens: i64,
    budgets: &'a [i64],
    /// Number of places in the transcript: those of the messages and the reserved one.
    n_places: i64,
    external_session_id: Option<&'a str>,
    credential: Option<&'a str>,
    chain: Option<&'a ChainChoice>,
}

impl<'a> Begin<'a> {
    fn row(&self, number: i32) -> BeginRow<'_> {
        let Self {
            session, task_id, attempt, job_id, lease, reserve, budgets, minted, now, ..
        } = *self;
        let n_messages = i64::try_from(self.messages.len()).unwrap_or(i64::MAX);
        BeginRow {
            session_id: session.id,
            campaign_id: session.campaign_id,
            number,
            lease,
            task_id,
            attempt,
            job_id,
            now,
            reserved_micros: reserve.micros,
            reserved_tokens: reserve.tokens,
            budgets,
            n_places: n_messages.saturating_add(self.kept_places()),
            external_session_id: minted.map(|minted| minted.external_session_id),
            credential: minted.map(|minted| minted.credential),
            chain: self.chain.as_ref(),
        }
    }

    fn message_rows(&self) -> Vec<messages::InsertRow<'a>> {
        let mut rows = messages::InsertRow::all(self.messages);
        for prompt in rows.iter_mut().filter(|row| row.is_prompt()) {
            prompt.place += self.kept_places();
        }
        rows
    }

    fn kept_places(&self) -> i64 {
        i64::from(self.shows_posts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::json_rows::columns;

    #[test]
    fn insert_columns_match_begin_rows() {
        let row = BeginRow {
            session_id: Uuid::nil(),
            campaign_id: Uuid::nil(),
            number: 1,
            lease: 1,
            task_id: Uuid::nil(),
            attempt: 1,
            job_id: 1,
            now: DateTime::UNIX_EPOCH,
            reserved_micros: 0,
            reserved_tokens: 0,
            budgets: &[],
            n_places: 1,
            external_session_id: None,
            credential: None,
            chain: None,
        };
        let sql = include_str!("begin.sql");
        columns::assert_are_fields_of(&row, sql, "jsonb_to_record($1)");
        columns::assert_are_fields_of(
            &messages::InsertRow::example(),
            sql,
            "jsonb_to_recordset($2)",
        );
        columns::assert_are_fields_of(&feed::InsertRow::example(), sql, "jsonb_to_recordset($3)");
    }
}
