//! Turns whose provider takes no calls for now. They wait longer and longer, together with all others of the model, and not for
//! ever.
//!
//! A wait uses up no attempt. Its reason says since when, how often, until when and why: `job explain` and `task explain`
//! print it.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use super::{
    Error, Refused, assignment::Assignment, call::Called, failover::OUR_OWN, settle::Fate,
};
use crate::{
    causes::causes,
    domain::{
        busy_models::{self, Config, RefusedCall, moment},
        text,
    },
    jobs::{Services, busy},
    providers::{self, Class, Scope},
    queue::Run,
};

/// Refuses a turn while its model is busy. Once the wait is over, it lets one turn at a time try.
pub(super) async fn admit(
    run: &Run,
    services: &Services,
    assignment: &Assignment<'_>,
) -> Result<(), Error> {
    let Some(busy) = &assignment.busy else { return Ok(()) };
    let (config, now) = (&services.busy, services.clock.now());
    if busy_models::try_again(run.pool(), config, &busy.provider, &busy.model, now).await? {
        return Ok(());
    }
    // Another turn tries at this moment.
    let after = if busy.until > now { busy.wait(now) } else { config.first_wait() };
    Err(Error::Refused(Refused::busy(busy.describe(), after, busy.refusals)))
}

/// How long a turn waits whose call was refused, or its failure once it has waited long enough.
pub(super) async fn back_off(
    run: &Run,
    services: &Services,
    assignment: &Assignment<'_>,
    called: &Called,
    fate: Fate,
) -> Fate {
    let (Fate::PutOff { why, after }, Err(error)) = (&fate, &called.result) else { return fate };
    let Class::Snooze { scope, .. } = error.class else { return fate };
    if OUR_OWN.contains(&error.code) {
        return fate;
    }
    let (config, route, now) = (&services.busy, &assignment.route, services.clock.now());
    busy::count(&route.provider_name);
    let since = assignment.busy_since.unwrap_or(now);
    if config.is_over(since, now) {
        let (why, interrupted) = (too_long(why, since), error.has_acted);
        return Fate::Failed { why, interrupted, rejected: false };
    }
    let (why, after) = match scope {
        // The login rests; other logins may go on.
        Scope::Credential => (why.clone(), *after),
        Scope::Host => {
            let call = RefusedCall {
                provider: &route.provider_name,
                model: &route.model,
                called_at: called.called_at,
                at_least: *after,
                why: &text::storable(why.clone()),
            };
            match busy_models::refused(run.pool(), config, call, now).await {
                Ok(busy) => (busy.describe(), busy.wait(now)),
                Err(failed) => {
                    tracing::warn!(
                        error = causes(&failed),
                        "a refusal was not noted for the other turns of the model"
                    );
                    (why.clone(), (*after).max(config.first_wait()))
                }
            }
        }
    };
    Fate::PutOff { why: with_end(config, &why, since), after: until_end(config, after, since, now) }
}

/// Whether the fate waits for a provider, so that the wait counts.
pub(super) fn is_wait(fate: &Fate, error: Option<&providers::Error>) -> bool {
    let is_busy = error.is_some_and(|error| {
        matches!(error.class, Class::Snooze { .. }) && !OUR_OWN.contains(&error.code)
    });
    matches!(fate, Fate::PutOff { .. }) && is_busy
}

pub(super) fn too_long(why: &str, since: DateTime<Utc>) -> String {
    let since = moment(since);
    format!(
        "the task has waited for its provider since {since}, longer than providers.busy_max_secs allows: {why}"
    )
}

pub(super) fn with_end(config: &Config, why: &str, since: DateTime<Utc>) -> String {
    match config.deadline(since) {
        Some(deadline) => {
            let (since, deadline) = (moment(since), moment(deadline));
            format!("{why}; the task waits since {since} and fails at {deadline} if that lasts")
        }
        None => why.to_owned(),
    }
}

/// Not past the end, at which the task fails.
pub(super) fn until_end(
    config: &Config,
    after: Duration,
    since: DateTime<Utc>,
    now: DateTime<Utc>,
) -> Duration {
    let left = config.deadline(since).map(|deadline| deadline - now);
    left.and_then(|left| left.max(TimeDelta::zero()).to_std().ok())
        .map_or(after, |left| left.min(after))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::run_turn::budget::BUDGET;

    #[test]
    fn a_budget_that_is_set_aside_elsewhere_is_no_busy_provider() {
        let after = Duration::from_secs(5);
        let fate = Fate::PutOff { why: "it waits".to_owned(), after };
        let error = |code| {
            providers::Error::new(code, Class::Snooze { after, scope: Scope::Host }, "it waits")
        };
        assert!(is_wait(&fate, Some(&error("ollama.busy"))));
        assert!(!is_wait(&fate, Some(&error(BUDGET))));
        assert!(!is_wait(&Fate::GivenBack, Some(&error("ollama.busy"))));
    }
}
