//! Tasks that wait for others, hand work out, and take it up again.

pub mod cascade;
mod crashes;
mod in_sql;
mod many;
mod races;
mod told;
mod waits;

use dalsegno::domain::tasks;
use sqlx::PgConnection;
use uuid::Uuid;

/// Does once what a worker does from time to time.
pub async fn end_due_waits(conn: &mut PgConnection) {
    for task in tasks::due_waits(conn, Uuid::nil(), 100).await.unwrap().due {
        tasks::end_wait(conn, task).await.unwrap();
    }
}
