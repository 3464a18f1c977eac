//! Failover after a call: its failure may move the conversation to another entry of the chain, and its answer ends the rest of an entry.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use sqlx::PgConnection;

use crate::{
    domain::{
        failovers::{self, FailoverState, Rules},
        text,
    },
    jobs::run_turn::{
        commit::fate::Fate,
        error::Error,
        load::{
            assignment::Assignment,
            chain::{Chain, of},
        },
    },
    providers::{self, Class, Outcome},
};

/// Returns the failures of the chain after the call. `None`: the call says nothing about its entry.
fn state_after(
    chain: &Chain,
    fate: &Fate,
    result: &Result<Outcome, providers::Error>,
    now: DateTime<Utc>,
) -> Option<FailoverState> {
    let (entry, mut state) = (chain.chosen(), chain.state.clone());
    match (fate, result) {
        (fate, Ok(_)) if fate.is_answered() => {
            Rules::record_answer(&mut state, &entry.name, now);
        }
        (
            Fate::Again { interrupted: false, rebuild: None, .. }
            | Fate::PutOff { .. }
            | Fate::Failed { interrupted: false, .. },
            Err(error),
        ) if !error.origin.is_unrelated_to_provider() => {
            let pause = match error.class {
                Class::Retry { .. } => None,
                Class::Snooze { after, .. } => TimeDelta::from_std(after).ok(),
                Class::Rebuild { .. } | Class::Reject | Class::Fail | Class::Cancelled => {
                    return None;
                }
            };
            let because = text::make_storable(error.to_string());
            let entry = (entry.name.as_str(), &entry.conditions);
            chain.rules.record_failure(&mut state, entry, because, pause, now);
        }
        _ => return None,
    }
    Some(state)
}

/// Removes the wait of a turn whose conversation moves to a usable entry. Otherwise the wait names the entry that is usable first. The task
/// does not fail before each entry was tried.
pub fn skip_wait(
    assignment: &Assignment<'_>,
    fate: Fate,
    result: &Result<Outcome, providers::Error>,
    now: DateTime<Utc>,
) -> Fate {
    let Some(chain) = &assignment.chain else { return fate };
    let Some(state) = state_after(chain, &fate, result, now) else { return fate };
    let next = failovers::choose(&chain.candidates, &state, &[], now);
    let moves = next.at != chain.choice.at && !next.is_last_resort;
    let name = &chain.candidates[next.at].name;
    let is_untried = state.record(name).is_none();
    match fate {
        Fate::PutOff { why, .. } if moves => Fate::PutOff { why, after: Duration::ZERO },
        Fate::Again { why, rebuild, interrupted, .. } if moves => {
            Fate::Again { why, after: Some(Duration::ZERO), rebuild, interrupted }
        }
        Fate::Failed { why, .. } if moves && is_untried => {
            Fate::PutOff { why, after: Duration::ZERO }
        }
        Fate::PutOff { why, after } if next.is_last_resort => {
            let others = failovers::describe_last_resort(name, &next.skipped);
            Fate::PutOff { why: format!("{why}; {others}"), after }
        }
        fate => fate,
    }
}

/// Stores the failures. Called within transaction B.
pub async fn store_state(
    conn: &mut PgConnection,
    assignment: &Assignment<'_>,
    fate: &Fate,
    result: &Result<Outcome, providers::Error>,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    let Some(chain) = &assignment.chain else { return Ok(()) };
    let Some(state) = state_after(chain, fate, result, now) else { return Ok(()) };
    if state == chain.state {
        return Ok(());
    }
    let key = of(&assignment.task);
    match state.records.is_empty() {
        true => failovers::delete(conn, key).await?,
        false => failovers::put(conn, key, &state, now).await?,
    }
    Ok(())
}
