//! The message about the end of a task, as webhooks send it.

use sqlx::PgExecutor;
use uuid::Uuid;

use super::{Error, State};
use crate::domain::StatementError;

/// Returns the state of a task that has ended, and the body of its message. The triggers of webhooks make the same body.
pub async fn end_message(
    executor: impl PgExecutor<'_>,
    id: Uuid,
) -> Result<(State, String), Error> {
    let row = sqlx::query!(
        r#"select t.state as "state: State", t.ended_at is not null as "has_ended!", dalsegno.webhook_body(t) as "body!"
             from dalsegno.tasks as t where t.id = $1"#,
        id,
    )
    .fetch_optional(executor)
    .await
    .map_err(StatementError::to("read the message about a task"))?
    .ok_or(Error::Unknown(id))?;
    match row.has_ended {
        true => Ok((row.state, row.body)),
        false => Err(Error::Open { id, state: row.state }),
    }
}
