//! Sums of the ledger by day. The migration that creates `dalsegno.ledger_days` describes how rows come into them.

use std::time::Duration;

use chrono::NaiveDate;
use sqlx::{PgConnection, PgExecutor, PgPool};
use tokio::time::Instant;

use super::Question;
use crate::domain::{
    StatementError,
    transaction::{begin, commit},
    usage,
};

/// Ids of the ledger that one transaction adds up: some tenths of a second.
const BATCH: i64 = 50_000;
/// Time after which further rows wait for the next call.
const WORK: Duration = Duration::from_secs(3);

/// The days whose sums a report uses.
#[derive(Debug, Clone, Copy)]
pub(super) struct WholeDays {
    /// The last row of the ledger that is in the sums.
    pub(super) up_to: i64,
    pub(super) first: NaiveDate,
    /// The day after the last one.
    pub(super) end: NaiveDate,
}

/// Progress of adding up the ledger.
struct Progress {
    time_zone: String,
    up_to: i64,
    next_up_to: Option<i64>,
    is_settled: bool,
}

/// Adds settled rows of the ledger to the sums of their days, for a bounded time, and notes which rows come next. Does nothing while another
/// process does it.
pub async fn add_up_days(pool: &PgPool, time_zone: &str) -> Result<(), StatementError> {
    let began = Instant::now();
    while began.elapsed() < WORK {
        let mut transaction = begin(pool).await?;
        let Some(progress) = lock(&mut transaction).await? else { return Ok(()) };
        if progress.time_zone != time_zone {
            start_again(&mut transaction, time_zone).await?;
            commit(transaction).await?;
            continue;
        }
        let Progress { up_to, next_up_to, is_settled, .. } = progress;
        match next_up_to {
            Some(next) if is_settled => {
                add_rows(&mut transaction, up_to, next.min(up_to + BATCH)).await?;
                commit(transaction).await?;
            }
            // The transactions that were open then have not ended.
            Some(_) => return Ok(()),
            None => {
                commit(transaction).await?;
                return note_next(pool).await;
            }
        }
    }
    Ok(())
}

/// Returns how far the ledger is added up by days of the time zone of a question, and the days that are whole in its period.
pub(super) async fn whole_days(
    executor: impl PgExecutor<'_>,
    question: &Question<'_>,
) -> Result<WholeDays, StatementError> {
    sqlx::query_as!(
        WholeDays,
        r#"select coalesce((select up_to from dalsegno.ledger_sums where time_zone = $1), 0) as "up_to!",
                  coalesce(($2::timestamptz at time zone $1)::date + (($2 at time zone $1)::time > '00:00')::integer, '0001-01-01') as "first!",
                  coalesce(($3::timestamptz at time zone $1)::date, '9999-12-31') as "end!""#,
        question.time_zone,
        question.since,
        question.until,
    )
    .fetch_one(executor)
    .await
    .map_err(StatementError::to("read how far the ledger is added up"))
}

async fn lock(conn: &mut PgConnection) -> Result<Option<Progress>, StatementError> {
    sqlx::query_as!(
        Progress,
        r#"select time_zone, up_to,
                  case when next_after <= pg_snapshot_xmax(pg_current_snapshot()) then next_up_to end as next_up_to,
                  coalesce(next_after <= pg_snapshot_xmin(pg_current_snapshot()), false) as "is_settled!"
             from dalsegno.ledger_sums for update skip locked"#
    )
    .fetch_optional(conn)
    .await
    .map_err(StatementError::to("lock the sums of the ledger"))
}

/// The days of another time zone are other days.
async fn start_again(conn: &mut PgConnection, time_zone: &str) -> Result<(), StatementError> {
    sqlx::query!(
        "with removed as (delete from dalsegno.ledger_days)
         update dalsegno.ledger_sums set time_zone = $1, up_to = 0, next_up_to = null, next_after = null",
        time_zone,
    )
    .execute(conn)
    .await
    .map(drop)
    .map_err(StatementError::to("remove the sums of the ledger for another time zone"))
}

async fn add_rows(conn: &mut PgConnection, after: i64, up_to: i64) -> Result<(), StatementError> {
    sqlx::query_file!("src/domain/costs/add_days.sql", after, up_to)
        .execute(conn)
        .await
        .map(drop)
        .map_err(StatementError::to("add up the ledger by day"))
}

/// Notes the newest row. Its id is read before the transaction gets its number. A number that this server has not reached was noted on another
/// one, from which the database was restored.
async fn note_next(pool: &PgPool) -> Result<(), StatementError> {
    let mut transaction = begin(pool).await?;
    let newest = usage::newest_id(&mut *transaction).await?;
    sqlx::query!(
        "update dalsegno.ledger_sums set next_up_to = $1, next_after = pg_current_xact_id()
          where up_to < $1 and (next_up_to is null or next_after > pg_snapshot_xmax(pg_current_snapshot()))",
        newest,
    )
    .execute(&mut *transaction)
    .await
    .map_err(StatementError::to("note the newest row of the ledger"))?;
    commit(transaction).await
}
