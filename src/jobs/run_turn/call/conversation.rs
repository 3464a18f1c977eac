//! The call of a provider that keeps the conversation itself: the conversation for the request, and the call within the
//! budget.

use sqlx::{PgConnection, PgExecutor};
use uuid::Uuid;

use crate::{
    domain::{
        Amount, budgets, campaigns,
        sessions::SessionRow,
        tasks::{self, Task},
        transcripts,
    },
    jobs::{
        Services,
        run_turn::{
            begin::{
                open_turn::OpenTurn,
                provider_session::{ProviderBinding, received_to_seq},
            },
            call::{
                budget::Watch,
                grants::{build_grants, grants_of_file},
                progress::Progress,
                provider_call,
                report::CallReport,
            },
            error::database_error,
            load::assignment::Assignment,
        },
    },
    providers::{self, Conversation, Origin, Request, TranscriptFile},
    queue::Run,
};

/// Builds the conversation for the provider. It reads local files, so no transaction is open.
pub async fn build_conversation(
    run: &Run,
    services: &Services,
    assignment: &Assignment<'_>,
    opened: &mut OpenTurn,
) -> Result<Option<Conversation>, providers::Error> {
    let Some(bound) = &opened.bound else { return Ok(None) };
    let session = &opened.session;
    let head = session.head.filter(|_| received_to_seq(session).is_some());
    let transcript = match head {
        Some(_) => files(run.pool(), session.id).await?,
        None => Vec::new(),
    };
    let left = {
        let mut conn = run.pool().acquire().await.map_err(connection_error)?;
        // Read again, because a summary for this turn was charged to the task.
        let task = tasks::get(&mut *conn, assignment.task.id).await.map_err(task_error)?;
        left_micros(&mut conn, assignment, &task, opened.begun.reserved).await?
    };
    let mut conversation = Conversation {
        external_id: bound.external_id,
        head: head.filter(|_| !transcript.is_empty()),
        transcript,
        unheard: opened.unheard.take(),
        meter: session
            .meter
            .clone()
            .and_then(|m| serde_json::from_value(m).ok())
            .unwrap_or_default(),
        credential: Some(bound.credential.clone()),
        grants: build_grants(run, services, assignment, &opened.begun, left).await?,
        is_warm: assignment.agent.warm,
        is_temporary: opened.begun.ephemeral,
    };
    let lacks = assignment.route.provider.lacks_transcript(&conversation).await;
    if lacks? {
        fetch(run, session.id, &mut conversation).await?;
    }
    Ok(Some(conversation))
}

/// Builds the conversation as far as it determines the input of the provider, without a secret.
pub async fn outline_conversation(
    conn: &mut PgConnection,
    services: &Services,
    assignment: &Assignment<'_>,
    (session, bound): (&SessionRow, ProviderBinding),
    unheard: Option<String>,
) -> Result<Conversation, providers::Error> {
    let head = session.head.filter(|_| received_to_seq(session).is_some());
    let transcript = match head {
        Some(_) => files(&mut *conn, session.id).await?,
        None => Vec::new(),
    };
    let left = left_micros(conn, assignment, &assignment.task, Amount::ZERO).await?;
    Ok(Conversation {
        external_id: bound.external_id,
        head: head.filter(|_| !transcript.is_empty()),
        transcript,
        unheard,
        credential: Some(bound.credential),
        grants: grants_of_file(services, assignment, left)?,
        is_temporary: session.ephemeral,
        ..Conversation::default()
    })
}

/// Makes the call within the budget.
pub async fn call(
    run: &Run,
    services: &Services,
    assignment: &Assignment<'_>,
    opened: &mut OpenTurn,
    request: Request,
) -> CallReport {
    let so_far = request.conversation.as_ref().map(|it| it.meter.clone()).unwrap_or_default();
    let mut budget = Watch::of(run, services, assignment, opened.begun, so_far);
    let called = call_again(run, services, assignment, opened, request, &mut budget).await;
    budget.end(opened, called).await
}

/// Makes the call. If files of the conversation were lost since they were checked, it calls again with the stored
/// bytes.
async fn call_again(
    run: &Run,
    services: &Services,
    assignment: &Assignment<'_>,
    opened: &OpenTurn,
    request: Request,
    budget: &mut Watch<'_>,
) -> CallReport {
    let has_no_bytes = |conversation: &Conversation| {
        conversation.head.is_some()
            && conversation.transcript.iter().all(|file| file.bytes.is_none())
    };
    let again = request.conversation.as_ref().is_some_and(has_no_bytes).then(|| request.clone());
    let mut progress = Progress::new(run.pool(), services, opened.begun);
    let called =
        provider_call::call(run, services, assignment, request, &mut progress, Some(&mut *budget))
            .await;
    let is_lost = called.result.as_ref().is_err_and(|error| error.origin == Origin::LostFiles);
    let (true, Some(mut request)) = (is_lost, again) else {
        progress.end().await;
        return called;
    };
    if let Some(conversation) = &mut request.conversation
        && let Err(error) = fetch(run, opened.session.id, conversation).await
    {
        return CallReport::before_call(error, called.called_at);
    }
    let called =
        provider_call::call(run, services, assignment, request, &mut progress, Some(budget)).await;
    progress.end().await;
    called
}

async fn fetch(
    run: &Run,
    session_id: Uuid,
    conversation: &mut Conversation,
) -> Result<(), providers::Error> {
    for file in &mut conversation.transcript {
        let bytes = transcripts::bytes(run.pool(), session_id, &file.name).await;
        file.bytes = Some(bytes.map_err(transcript_error)?);
    }
    Ok(())
}

async fn files(
    executor: impl PgExecutor<'_>,
    session_id: Uuid,
) -> Result<Vec<TranscriptFile>, providers::Error> {
    let stored = transcripts::files(executor, session_id).await.map_err(transcript_error)?;
    let file = |file: transcripts::File| {
        Some(TranscriptFile {
            name: file.name,
            n_bytes: u64::try_from(file.n_bytes).ok()?,
            sha256: file.sha256.try_into().ok()?,
            bytes: None,
        })
    };
    Ok(stored.into_iter().filter_map(file).collect())
}

fn connection_error(error: sqlx::Error) -> providers::Error {
    transcript_error(crate::domain::StatementError {
        action: "read the budgets of a turn",
        source: error,
    })
}

fn task_error(error: tasks::Error) -> providers::Error {
    database_error("transcript.not_read", error)
}

fn transcript_error(error: crate::domain::StatementError) -> providers::Error {
    database_error("transcript.not_read", error)
}

/// Returns the least money that is left in a budget of the turn. Reservations of other turns are subtracted.
async fn left_micros(
    conn: &mut PgConnection,
    assignment: &Assignment<'_>,
    task: &Task,
    reserved: Amount,
) -> Result<Option<i64>, providers::Error> {
    let own = task.budget_micros.map(|budget| budget.saturating_sub(task.spent_micros));
    if !assignment.is_limited {
        return Ok(own);
    }
    let budget = campaigns::budget(&mut *conn, task.campaign_id).await.map_err(transcript_error)?;
    let shared = budget.and_then(|budget| {
        let limit = budget.limit.micros?;
        let of_others = budget.reserved.micros.saturating_sub(reserved.micros);
        Some(limit.saturating_sub(budget.spent.micros).saturating_sub(of_others))
    });
    let others = match assignment.budgets.is_empty() {
        true => None,
        false => budgets::left_micros(&mut *conn, &assignment.budgets, reserved)
            .await
            .map_err(transcript_error)?,
    };
    Ok([own, shared, others].into_iter().flatten().min())
}
