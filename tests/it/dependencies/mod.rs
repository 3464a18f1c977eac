//! Tasks with dependencies, children and continuations.

pub mod cascade;
mod crashes;
mod in_sql;
mod races;
mod results;
mod scale;
mod waits;

use dalsegno::domain::tasks;
use sqlx::PgConnection;
use uuid::Uuid;

/// Runs one step of a worker's maintenance: ends the waits that are due.
pub async fn end_due_waits(conn: &mut PgConnection) {
    for task in tasks::find_lost_signals(conn, Uuid::nil(), 100).await.unwrap().due {
        tasks::end_wait(conn, task).await.unwrap();
    }
}
