//! The lead's colleagues: the roster as part of its system prompt, and their statuses with each call. Other agents get
//! neither.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::PgExecutor;

use crate::{
    context::parts::{Colleague, Status},
    domain::statuses,
    jobs::run_turn::{error::Error, load::assignment::Assignment},
};

/// A colleague's current status.
#[derive(Serialize, Deserialize)]
pub struct ColleagueStatus {
    name: String,
    state: statuses::State,
    /// The tool that it is calling.
    tool: Option<String>,
}

/// Reads the statuses of all agents, if this turn is the lead's.
pub async fn read_statuses(
    executor: impl PgExecutor<'_>,
    assignment: &Assignment<'_>,
    now: DateTime<Utc>,
) -> Result<Vec<ColleagueStatus>, Error> {
    let Assignment { task, agent, catalogue, .. } = assignment;
    if !agent.leads(&task.instance) {
        return Ok(Vec::new());
    }
    let statuses = statuses::of_campaign(executor, task.campaign_id, catalogue, now);
    let statuses = statuses.await.map_err(Error::undone)?;
    Ok(statuses
        .into_iter()
        .map(|status| {
            // Before the turn begins, as for a preview, its own task still waits.
            let is_own = (&status.agent, &status.instance) == (&task.agent, &task.instance);
            let state = if is_own { statuses::State::Working } else { status.state };
            ColleagueStatus { name: status.name(catalogue), state, tool: status.tool }
        })
        .collect())
}

pub fn roster<'a>(assignment: &'a Assignment<'_>) -> Vec<Colleague<'a>> {
    let Assignment { task, agent, catalogue, .. } = assignment;
    let is_lead = agent.leads(&task.instance);
    let all = catalogue.agents().map(Arc::as_ref).filter(|_| is_lead);
    all.map(|colleague| Colleague { name: &colleague.name, description: &colleague.description })
        .collect()
}

pub fn statuses(seen: &[ColleagueStatus]) -> Vec<Status<'_>> {
    seen.iter()
        .map(|seen| Status {
            agent: &seen.name,
            state: seen.state.as_str(),
            tool: seen.tool.as_deref(),
        })
        .collect()
}
