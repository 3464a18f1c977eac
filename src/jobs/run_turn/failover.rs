//! When the agent's other provider takes a conversation over, and when it gives it back.
//!
//! Only failures of the provider count: not what a person has to mend, not what was stopped by somebody, and not what this
//! host could not do. A conversation that moves is rebuilt from its own ledger, as after any change of the provider.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::json;
use sqlx::PgConnection;

use super::{Error, Refused, assignment::Assignment, budget, settle::Fate};
use crate::{
    domain::{
        agents,
        failovers::{self, Change, Of, Rules, Side, Standing},
        feed,
        tasks::Task,
        text,
    },
    jobs::Services,
    providers::{self, Class, Outcome},
    queue::Run,
};

/// Of an agent that has a fallback.
#[derive(Debug, Clone, Copy)]
pub(super) struct Failover {
    rules: Rules,
    standing: Option<Standing>,
    pub(super) side: Side,
}

/// Failures of this host, and what is no failure of anybody.
pub(super) const OUR_OWN: [&str; 6] = [
    "transcript.not_read",
    "workspace",
    "claude.folder",
    "claude.no_space",
    "claude.not_persisted",
    budget::BUDGET,
];

impl Failover {
    pub(super) fn of(
        config: &agents::Config,
        standing: Option<Standing>,
        now: DateTime<Utc>,
    ) -> Self {
        let rest = i64::try_from(config.fallback_secs).ok().and_then(TimeDelta::try_seconds);
        let rules =
            Rules { after: config.fallback_after, rest: rest.unwrap_or(TimeDelta::days(365)) };
        Self { rules, standing, side: rules.side(standing, now) }
    }

    fn change(
        &self,
        fate: &Fate,
        result: &Result<Outcome, providers::Error>,
        now: DateTime<Utc>,
    ) -> Option<Change> {
        match (fate, result) {
            (Fate::Done, Ok(_)) => Some(self.rules.answered(self.standing, self.side)),
            (
                Fate::Again { interrupted: false, rebuild: None, .. }
                | Fate::PutOff { .. }
                | Fate::Failed { interrupted: false, .. },
                Err(error),
            ) if !OUR_OWN.contains(&error.code) => {
                let is_long = match error.class {
                    Class::Retry { .. } => false,
                    Class::Snooze { after, .. } => self.is_long(after),
                    Class::Rebuild { .. } | Class::Reject | Class::Fail | Class::Cancelled => {
                        return None;
                    }
                };
                Some(self.rules.failed(self.standing, self.side, is_long, now))
            }
            _ => None,
        }
    }

    fn is_long(&self, pause: Duration) -> bool {
        TimeDelta::from_std(pause).is_ok_and(|pause| pause >= self.rules.rest)
    }
}

/// What is known of a task's conversation. Asks nothing where its agent has no fallback.
pub(super) async fn standing(
    conn: &mut PgConnection,
    services: &Services,
    task: &Task,
) -> Result<Option<Standing>, Error> {
    let catalogue = services.library.current();
    match catalogue.agent(&task.agent) {
        Ok(agent) if agent.fallback.is_some() => Ok(failovers::find(conn, of(task)).await?),
        _ => Ok(None),
    }
}

/// A turn whose conversation moves is tried again at once: the other provider need not wait for the one that failed. Nor
/// does the task end with it, as long as the other one has not been asked.
pub(super) fn hasten(
    assignment: &Assignment<'_>,
    fate: Fate,
    result: &Result<Outcome, providers::Error>,
    now: DateTime<Utc>,
) -> Fate {
    let Some(failover) = &assignment.failover else { return fate };
    let moves = failover.change(&fate, result, now).is_some_and(|change| change.moved_to.is_some());
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

/// Within the turn's last transaction.
pub(super) async fn note(
    conn: &mut PgConnection,
    assignment: &Assignment<'_>,
    fate: &Fate,
    result: &Result<Outcome, providers::Error>,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    let Some(failover) = &assignment.failover else { return Ok(()) };
    let Some(change) = failover.change(fate, result, now) else { return Ok(()) };
    let why = result.as_ref().err().map(ToString::to_string);
    write(conn, assignment, failover, change, why, now).await
}

/// A turn that cannot begin, because its provider takes no call for long, or has refused as many in a row as move a
/// conversation.
pub(super) async fn take_over(
    run: &Run,
    services: &Services,
    assignment: &Assignment<'_>,
    refused: Refused,
) -> Result<Refused, Error> {
    let (Some(failover), Some(pause), Some(busy)) =
        (&assignment.failover, refused.again_after, refused.busy)
    else {
        return Ok(refused);
    };
    let is_long = failover.is_long(pause) || busy.refusals >= failover.rules.after;
    if failover.side == Side::Fallback || !is_long {
        return Ok(refused);
    }
    let now = services.clock.now();
    let change = failover.rules.failed(failover.standing, failover.side, true, now);
    let mut tx = run.pool().begin().await.map_err(Error::undone)?;
    let why = Some(refused.why.clone());
    write(&mut tx, assignment, failover, change, why, now).await?;
    tx.commit().await.map_err(Error::undone)?;
    // The other provider is not the one that is waited for.
    Ok(Refused { again_after: Some(Duration::ZERO), busy: None, ..refused })
}

async fn write(
    conn: &mut PgConnection,
    assignment: &Assignment<'_>,
    failover: &Failover,
    change: Change,
    why: Option<String>,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    let task = &assignment.task;
    match change.standing {
        Some(standing) if Some(standing) != failover.standing => {
            failovers::put(&mut *conn, of(task), standing, now).await?;
        }
        None if failover.standing.is_some() => failovers::forget(&mut *conn, of(task)).await?,
        _ => {}
    }
    if let Some(side) = change.moved_to {
        let data = json!({
            "to": side,
            "from_provider": assignment.route.provider_name,
            "because": why.map(text::storable),
            "tried_again_after_secs": (side == Side::Fallback).then(|| failover.rules.rest.num_seconds()),
        });
        feed::append(conn, &[task.event(feed::Kind::ConversationMoved, data)], now).await?;
    }
    Ok(())
}

fn of(task: &Task) -> Of<'_> {
    Of { campaign_id: task.campaign_id, agent: &task.agent, instance: &task.instance }
}
