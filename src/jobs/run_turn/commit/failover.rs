//! Failover after a call: its failure or answer may move the conversation to the other provider.

use std::time::Duration;

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use crate::{
    domain::failovers::Change,
    jobs::run_turn::{
        commit::fate::Fate,
        error::Error,
        gate::failover::write,
        load::{assignment::Assignment, failover::Failover},
    },
    providers::{self, Class, Outcome},
};

/// Returns the change that a fate makes to the conversation's provider.
fn change(
    failover: &Failover,
    fate: &Fate,
    result: &Result<Outcome, providers::Error>,
    now: DateTime<Utc>,
) -> Option<Change> {
    match (fate, result) {
        (fate, Ok(_)) if fate.is_answered() => {
            Some(failover.rules.change_after_answer(failover.standing, failover.side))
        }
        (
            Fate::Again { interrupted: false, rebuild: None, .. }
            | Fate::PutOff { .. }
            | Fate::Failed { interrupted: false, .. },
            Err(error),
        ) if !error.origin.is_unrelated_to_provider() => {
            let is_long = match error.class {
                Class::Retry { .. } => false,
                Class::Snooze { after, .. } => failover.is_long(after),
                Class::Rebuild { .. } | Class::Reject | Class::Fail | Class::Cancelled => {
                    return None;
                }
            };
            Some(failover.rules.change_after_failure(
                failover.standing,
                failover.side,
                is_long,
                now,
            ))
        }
        _ => None,
    }
}

/// Removes the wait of a turn whose conversation moves: the other provider is available. The task does not fail before
/// that provider was tried.
pub fn skip_wait(
    assignment: &Assignment<'_>,
    fate: Fate,
    result: &Result<Outcome, providers::Error>,
    now: DateTime<Utc>,
) -> Fate {
    let Some(failover) = &assignment.failover else { return fate };
    let moves =
        change(failover, &fate, result, now).is_some_and(|change| change.moved_to.is_some());
    let is_first_time = failover.standing.is_none_or(|standing| standing.since.is_none());
    match fate {
        Fate::PutOff { why, .. } if moves => Fate::PutOff { why, after: Duration::ZERO },
        Fate::Again { why, rebuild, interrupted, .. } if moves => {
            Fate::Again { why, after: Some(Duration::ZERO), rebuild, interrupted }
        }
        Fate::Failed { why, .. } if moves && is_first_time => {
            Fate::PutOff { why, after: Duration::ZERO }
        }
        fate => fate,
    }
}

/// Stores the change. Called within transaction B.
pub async fn store_change(
    conn: &mut PgConnection,
    assignment: &Assignment<'_>,
    fate: &Fate,
    result: &Result<Outcome, providers::Error>,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    let Some(failover) = &assignment.failover else { return Ok(()) };
    let Some(change) = change(failover, fate, result, now) else { return Ok(()) };
    let why = result.as_ref().err().map(ToString::to_string);
    write(conn, assignment, failover, change, why, now).await
}
