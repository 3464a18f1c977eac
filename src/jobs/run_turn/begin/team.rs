//! What the lead is told of its colleagues: who there is, as part of what it is, and what each of them does, anew in each call.
//! Nobody else pays for it.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use sqlx::PgExecutor;

use crate::{
    context::parts::{Colleague, Status},
    domain::statuses,
    jobs::run_turn::{error::Error, load::assignment::Assignment},
};

/// A colleague at this moment.
pub struct Presence {
    name: String,
    state: statuses::State,
}

/// What each agent does now, if this turn is the lead's.
pub async fn look(
    executor: impl PgExecutor<'_>,
    assignment: &Assignment<'_>,
    now: DateTime<Utc>,
) -> Result<Vec<Presence>, Error> {
    let Assignment { task, agent, catalogue, .. } = assignment;
    if !agent.leads(&task.instance) {
        return Ok(Vec::new());
    }
    let statuses = statuses::of_campaign(executor, task.campaign_id, catalogue, now);
    let statuses = statuses.await.map_err(Error::undone)?;
    Ok(statuses
        .iter()
        .map(|status| Presence { name: status.name(catalogue), state: status.state })
        .collect())
}

pub fn roster<'a>(assignment: &'a Assignment<'_>) -> Vec<Colleague<'a>> {
    let Assignment { task, agent, catalogue, .. } = assignment;
    let is_lead = agent.leads(&task.instance);
    let all = catalogue.agents().map(Arc::as_ref).filter(|_| is_lead);
    all.map(|colleague| Colleague { name: &colleague.name, description: &colleague.description })
        .collect()
}

pub fn statuses(seen: &[Presence]) -> Vec<Status<'_>> {
    seen.iter().map(|seen| Status { agent: &seen.name, state: seen.state.as_str() }).collect()
}
