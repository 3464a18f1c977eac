//! Lookup of the turn that a token was made for.

use secrecy::SecretString;
use serde_json::json;

use super::{Tools, Turn};
use crate::{
    domain::{
        StatementError,
        audit::{self, Action, Actor},
        posts, tasks, turn_tokens, turns,
    },
    queue,
};

/// Error that prevented the lookup of a token.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    #[error(transparent)]
    Database(#[from] StatementError),
    #[error(transparent)]
    Queue(#[from] queue::Error),
}

/// Returns the turn that a token was made for, if that turn still runs. The use of a token whose turn has ended is written to the audit
/// log, once a minute.
pub async fn turn_of(tools: &Tools, token: &SecretString) -> Result<Option<Turn>, TokenError> {
    let pool = &tools.pool;
    let Some(bearer) = turn_tokens::find(pool, token).await? else { return Ok(None) };
    let Some(turn) = turns::find(pool, bearer.session_id, bearer.turn).await? else {
        return Ok(None);
    };
    let addressee = tasks::addressee(pool, turn.task_id).await?;
    let runs = turn.state == turns::State::Running
        && queue::is_run_by(pool, turn.job_id, turn.lease).await?;
    let catalogue = tools.settings.agents.current();
    let Some(tasks::Addressee { campaign_id, agent, instance }) = addressee else {
        return Ok(None);
    };
    if let (true, Some(agent)) = (runs, catalogue.agent_of_running_turn(&agent)) {
        return Ok(Some(Turn {
            campaign_id,
            agent: agent.clone(),
            instance,
            session_id: turn.session_id,
            task_id: turn.task_id,
            turn: turn.number,
            job_id: turn.job_id,
            lease: turn.lease,
        }));
    }
    let now = tools.settings.clock.now();
    if !tools.settings.denied.should_record((turn.session_id, turn.number), now) {
        return Ok(None);
    }
    let actor = Actor::agent(&posts::reader(&agent, &instance));
    let by = json!({ "task_id": turn.task_id, "session_id": turn.session_id, "turn": turn.number });
    let data = json!({ "campaign_id": campaign_id, "by": by });
    audit::write(pool, &actor, Action::ToolDeny, "token", data, now).await?;
    Ok(None)
}
