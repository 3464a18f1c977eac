//! Adds a task in the caller's own transaction.

use sqlx::{PgConnection, Postgres, QueryBuilder, postgres::PgDatabaseError, types::Json};
use uuid::Uuid;

use super::{Mode, NewTask, OnFailure, TaskLink};

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
    /// The function has no argument for this field of the task.
    #[error("cannot add a task in SQL with `{0}`: leave it out, or add the task over HTTP")]
    Field(&'static str),
    #[error("cannot add a task")]
    Database(#[source] sqlx::Error),
}

/// Adds a task and its job: both exist if and only if the caller's transaction commits.
///
/// Calls the SQL function `dalsegno.add_task`, whose comment in the database is its contract. The function does not
/// read agents' files: a task for an unknown agent is accepted, and fails with an explanation. It takes files of other tasks of
/// the campaign ([`Attachment::File`](super::Attachment::File)), and refuses contents. It has no node and no parameters, and waits for tasks
/// by their ids ([`TaskLink::Task`]).
pub async fn enqueue(
    conn: &mut PgConnection,
    campaign_id: Uuid,
    new: &NewTask<'_>,
) -> Result<EnqueueResult, EnqueueError> {
    check_fields(new)?;
    let depends_on = predecessors(new)?;
    // Not one of sqlx's checked queries: those would need the caller's database at build time.
    let mut query = QueryBuilder::<Postgres>::new(
        "select task_id, created from dalsegno.add_task(campaign_id => ",
    );
    query.push_bind(campaign_id);
    query.push(", agent => ").push_bind(new.agent);
    query.push(", prompt => ").push_bind(new.prompt);
    query.push(", instance => ").push_bind(new.instance);
    query.push(", session_mode => ").push_bind(session_mode(new.session.unwrap_or_default()));
    query.push(", budget_micros => ").push_bind(new.budget.micros);
    query.push(", budget_tokens => ").push_bind(new.budget.tokens);
    query.push(", idempotency_key => ").push_bind(new.idempotency_key);
    query.push(", priority => ").push_bind(new.priority.unwrap_or(100));
    query.push(", run_at => ").push_bind(new.run_at);
    // Only if they are given, so that the statement also suits older databases, which lack these arguments.
    if !depends_on.is_empty() {
        query.push(", depends_on => ").push_bind(depends_on);
        query.push(", on_failure => ").push_bind(on_failure(new.on_failure));
    }
    if !new.tags.is_empty() {
        query.push(", tags => ").push_bind(new.tags);
    }
    if let Some(metadata) = new.metadata {
        query.push(", metadata => ").push_bind(metadata);
    }
    if let Some(names) = new.flow_templates {
        query.push(", flow_templates => ").push_bind(names);
    }
    if let Some(schema) = new.result_schema {
        query.push(", result_schema => ").push_bind(schema);
    }
    if let Some(secs) = new.within_secs {
        query.push(", within_secs => ").push_bind(secs);
    }
    if !new.attachments.is_empty() {
        query.push(", attachments => ").push_bind(Json(new.attachments));
    }
    let query = query.push(")").build_query_as();
    let (task_id, created) = query.fetch_one(conn).await.map_err(refused)?;
    Ok(EnqueueResult { task_id, created })
}

/// Refuses fields for which the function has no argument.
fn check_fields(new: &NewTask<'_>) -> Result<(), EnqueueError> {
    if new.node.is_some() {
        return Err(EnqueueError::Field("node"));
    }
    if new.parameters.is_some() {
        return Err(EnqueueError::Field("parameters"));
    }
    Ok(())
}

/// Returns the ids of the tasks to wait for.
fn predecessors(new: &NewTask<'_>) -> Result<Vec<Uuid>, EnqueueError> {
    let id = |link: &TaskLink<'_>| match link {
        TaskLink::Task(id) => Ok(*id),
        TaskLink::Key(_) => Err(EnqueueError::Field("TaskLink::Key")),
        TaskLink::Item(_) => Err(EnqueueError::Field("TaskLink::Item")),
    };
    new.depends_on.iter().map(id).collect()
}

fn on_failure(reaction: OnFailure) -> &'static str {
    match reaction {
        OnFailure::Run => "run",
        OnFailure::Cancel => "cancel",
    }
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
