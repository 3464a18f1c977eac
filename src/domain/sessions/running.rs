//! Sessions with a running turn. Begin and end of a turn are written in `domain/turn_phases`.

use sqlx::PgExecutor;
use uuid::Uuid;

use super::Error;
use crate::domain::StatementError;

/// The provider's id of a conversation that it keeps, and the credential that it runs on. Stored before the first call.
#[derive(Debug, Clone, Copy)]
pub struct ProviderSession<'a> {
    pub external_session_id: &'a str,
    pub credential: &'a str,
}

/// Takes a session from a lost run, whose turn left `n_messages`. The caller holds its row and a larger lease. Returns an error if no
/// turn is running.
pub(crate) async fn take_from_lost_run(
    executor: impl PgExecutor<'_>,
    id: Uuid,
    n_messages: i64,
) -> Result<(), Error> {
    let abandoned = sqlx::query!(
        "update dalsegno.sessions set state = 'interrupted', running_turn = null, last_seq = last_seq + $2
          where id = $1 and running_turn is not null",
        id,
        n_messages,
    )
    .execute(executor)
    .await
    .map_err(StatementError::to("take over the session of a lost run"))?;
    if abandoned.rows_affected() == 1 { Ok(()) } else { Err(Error::Overtaken(id)) }
}

/// Gives the running turn of a session to the run of a larger lease. Returns false if the session has no such turn, or a later run has it.
pub(in crate::domain) async fn take_lease(
    executor: impl PgExecutor<'_>,
    id: Uuid,
    turn: i32,
    lease: i64,
) -> Result<bool, StatementError> {
    sqlx::query!(
        "update dalsegno.sessions set lease = $3 where id = $1 and running_turn = $2 and (lease is null or lease <= $3)",
        id,
        turn,
        lease,
    )
    .execute(executor)
    .await
    .map(|hit| hit.rows_affected() == 1)
    .map_err(StatementError::to("take over the session of a batch"))
}
