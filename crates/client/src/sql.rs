//! Adds a task in the caller's own transaction.

use sqlx::{PgConnection, postgres::PgDatabaseError};
use uuid::Uuid;

use super::{Mode, NewTask};

/// Not one of sqlx's checked queries: those would need the caller's database at build time.
const ADD_TASK: &str = "select task_id, created
   from dalsegno.add_task(campaign_id => $1, agent => $2, prompt => $3, instance => $4, session_mode => $5,
        budget_micros => $6, budget_tokens => $7, idempotency_key => $8, priority => $9, run_at => $10)";

/// A statement of its own, so that the others work on databases without this argument.
const ADD_TASK_WITH_SCHEMA: &str = "select task_id, created
   from dalsegno.add_task(campaign_id => $1, agent => $2, prompt => $3, instance => $4, session_mode => $5,
        budget_micros => $6, budget_tokens => $7, idempotency_key => $8, priority => $9, run_at => $10, result_schema => $11)";

/// The task that a call created or found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EnqueueResult {
    pub task_id: Uuid,
    /// False if an earlier call with this idempotency key created it.
    pub created: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum EnqueueError {
    /// The function refused. The transaction has failed with it, as with every error of Postgres.
    #[error("{message}. {hint}")]
    Refused {
        /// DS400, DS404, DS409 or DS413, as the comment of the function explains.
        code: String,
        message: String,
        hint: String,
    },
    /// Nothing was added, and the transaction can go on.
    #[error(
        "a task with attachments cannot be added in SQL: add it over HTTP, with `Client::add_task`"
    )]
    Attachments,
    #[error("cannot add a task")]
    Database(#[source] sqlx::Error),
}

/// Adds a task and its job: both exist if and only if the caller's transaction commits.
///
/// Calls the SQL function `dalsegno.add_task`, whose comment in the database is its contract. The function does not
/// read agents' files: a task for an unknown agent is accepted, and fails with an explanation.
pub async fn enqueue(
    conn: &mut PgConnection,
    campaign_id: Uuid,
    new: &NewTask<'_>,
) -> Result<EnqueueResult, EnqueueError> {
    if !new.attachments.is_empty() {
        return Err(EnqueueError::Attachments);
    }
    let statement = if new.result_schema.is_some() { ADD_TASK_WITH_SCHEMA } else { ADD_TASK };
    let query = sqlx::query_as(statement)
        .bind(campaign_id)
        .bind(new.agent)
        .bind(new.prompt)
        .bind(new.instance)
        .bind(session_mode(new.session.unwrap_or_default()))
        .bind(new.budget.micros)
        .bind(new.budget.tokens)
        .bind(new.idempotency_key)
        .bind(new.priority.unwrap_or(100))
        .bind(new.run_at);
    let query = match new.result_schema {
        Some(schema) => query.bind(schema),
        None => query,
    };
    let (task_id, created) = query.fetch_one(conn).await.map_err(refused)?;
    Ok(EnqueueResult { task_id, created })
}

fn session_mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Continue => "continue",
        Mode::Fresh => "fresh",
        Mode::None => "none",
    }
}

fn refused(source: sqlx::Error) -> EnqueueError {
    let error = source.as_database_error();
    let error = error.and_then(|error| error.try_downcast_ref::<PgDatabaseError>());
    match error.filter(|error| error.code().starts_with("DS4")) {
        Some(error) => EnqueueError::Refused {
            code: error.code().to_owned(),
            message: error.message().to_owned(),
            hint: error.hint().unwrap_or_default().to_owned(),
        },
        None => EnqueueError::Database(source),
    }
}
