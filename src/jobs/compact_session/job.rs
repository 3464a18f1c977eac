//! Handler of compactions.

use std::sync::Arc;

use serde_json::json;

use super::{
    Cause, CompactSession, Error, Folder, apply, prepare,
    setup::{self, FixedWeight},
};
use crate::{
    causes::causes,
    context::Weight,
    domain::{compactions, feed, sessions},
    jobs::{
        route::Route,
        services::{Services, no_agent},
    },
    queue::{End, HandlerResult, JobError, Run},
};

/// Divisor of the room: this part is reserved for the coming turn, whose weight is unknown yet.
const UPCOMING_DIVISOR: u64 = 10;

/// Compacts a session ahead of time, or because a person asked for it. No turn waits for it.
pub async fn run(job: CompactSession, run: Run, services: Arc<Services>) -> HandlerResult {
    let session = match sessions::read_live(run.pool(), job.session_id).await {
        // The session has expired and was removed.
        Err(sessions::Error::Unknown(_)) => return Ok(End::Done),
        session => session.map_err(JobError::retry)?,
    };
    // Checked first, because the agent and the provider of a closed session may be gone, too.
    if is_over(&job, &session) {
        return Ok(End::Done);
    }
    let catalogue = services.library.current();
    let agent = catalogue.agent(&session.agent).map_err(no_agent)?;
    let (provider, model) = (session.provider.as_str(), session.model.as_str());
    let route = Route::of(&services, agent, provider, model, run.cancel()).await;
    let route = route.map_err(JobError::fail)?;
    let room = route.window_tokens.saturating_sub(route.reserve_tokens) / UPCOMING_DIVISOR;
    let skills = catalogue.skills_of(agent);
    let around = FixedWeight {
        system: Weight::of_text(&agent.prompt)
            + skills.iter().map(|skill| Weight::of_text(&skill.text)).sum(),
        upcoming: services.calibrations.of(provider, model).weight_within(room),
    };
    let window = setup::summariser_window(agent, &route, run.cancel()).await;
    let cost = |model: &str, tokens| services.cost(&route.provider_name, model, tokens);
    let whose = (&**agent, &*catalogue);
    let folder = setup::build_folder(&run, &services, whose, &route, around, window, &cost);
    compact(&folder, &job, &run).await
}

/// Prepares a compaction. If a person asked for it, also applies it, in the commit that ends the job.
pub async fn compact(folder: &Folder<'_>, job: &CompactSession, run: &Run) -> HandlerResult {
    let shown = sessions::read_live(folder.pool, job.session_id).await.map_err(Error::from)?;
    if is_over(job, &shown) {
        return Ok(End::Done);
    }
    if shown.generation != job.generation {
        tracing::info!(session.id = %job.session_id, "another compaction was stored first");
        return Ok(End::Done);
    }
    match (prepare(folder, job.session_id, job.cause).await, job.cause) {
        (Ok(_), Cause::Manual) => show(folder, job, run).await,
        (Ok(_), _) => Ok(End::Done),
        (Err(error), Cause::Manual) if is_final(&error) => answer(folder, job, run, &error).await,
        (Err(error), Cause::Auto) if may_wait(&error) => {
            tracing::info!(session.id = %job.session_id, error = causes(&error), "could not prepare a summary");
            Ok(End::Done)
        }
        (Err(error), _) => Err(error.into()),
    }
}

/// Returns true if the session was closed and no person waits for the result. Its successor has a context of its own.
pub fn is_over(job: &CompactSession, session: &sessions::SessionRow) -> bool {
    let is_over = session.state == sessions::State::Closed && job.cause != Cause::Manual;
    if is_over {
        tracing::info!(session.id = %job.session_id, "the session was closed before it was compacted");
    }
    is_over
}

async fn show(folder: &Folder<'_>, job: &CompactSession, run: &Run) -> HandlerResult {
    let mut tx = folder.pool.begin().await.map_err(JobError::retry)?;
    apply(&mut tx, folder.clock, job.session_id).await?;
    Ok(run.commit(tx).await?)
}

/// Tells the person who asked that the conversation was not compacted, and why. The job is done.
async fn answer(
    folder: &Folder<'_>,
    job: &CompactSession,
    run: &Run,
    why: &Error,
) -> HandlerResult {
    let session = sessions::read_live(folder.pool, job.session_id).await.map_err(Error::from)?;
    let event = feed::New {
        campaign_id: Some(session.campaign_id),
        task_id: None,
        session_id: Some(session.id),
        kind: feed::Kind::CompactionNotNeeded,
        data: json!({ "cause": job.cause, "because": because(why), "job_id": run.job_id() }),
    };
    let mut tx = folder.pool.begin().await.map_err(JobError::retry)?;
    feed::append(&mut *tx, &[event], folder.clock.now()).await.map_err(JobError::retry)?;
    Ok(run.commit(tx).await?)
}

fn because(why: &Error) -> String {
    match why {
        Error::Plan { source, .. } => source.to_string(),
        why => why.to_string(),
    }
}

/// Returns true for errors that a retry would repeat.
fn is_final(error: &Error) -> bool {
    matches!(
        error,
        Error::Plan { .. }
            // Closed while the summary was made.
            | Error::Session(sessions::Error::Closed(_))
            | Error::Compaction(compactions::Error::Session(sessions::Error::Closed(_)))
    )
}

/// Returns true for errors that need no dead job: no turn waits for a summary that is made ahead, and the turn that
/// needs it reports the error.
fn may_wait(error: &Error) -> bool {
    matches!(error, Error::BreakerOpen { .. } | Error::InProgress(_)) || is_final(error)
}
