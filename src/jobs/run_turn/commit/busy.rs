//! The backoff of a turn whose call the provider has refused.

use crate::{
    causes::causes,
    domain::{
        busy_models::{self, RefusedCall},
        text,
    },
    jobs::{
        Services, busy,
        run_turn::{
            call::report::CallReport,
            commit::fate::Fate,
            gate::busy::{describe_exceeded_wait, limit_wait, with_end},
            load::assignment::Assignment,
        },
    },
    providers::{self, Class, Scope},
    queue::Run,
};

/// Sets the wait of a turn whose call was refused, or fails it if it has waited too long.
pub async fn back_off(
    run: &Run,
    services: &Services,
    assignment: &Assignment<'_>,
    called: &CallReport,
    fate: Fate,
) -> Fate {
    let (Fate::PutOff { why, after }, Err(error)) = (&fate, &called.result) else { return fate };
    let Class::Snooze { scope, .. } = error.class else { return fate };
    if error.origin.is_unrelated_to_provider() {
        return fate;
    }
    let (config, route, now) = (&services.busy, &assignment.route, services.clock.now());
    busy::count(&route.provider_name);
    let since = assignment.busy_since.unwrap_or(now);
    if config.is_over(since, now) {
        let (why, interrupted) = (describe_exceeded_wait(why, since), error.has_acted);
        return Fate::Failed { why, interrupted, rejected: false, refusal: None };
    }
    let (why, after) = match scope {
        // The credential is paused; calls with other credentials may go on.
        Scope::Credential => (why.clone(), *after),
        // Other workers may reach the server: the task waits alone, and any worker tries it again.
        Scope::Worker => (why.clone(), (*after).max(config.own_wait(since, now))),
        Scope::Host => {
            let call = RefusedCall {
                provider: &route.provider_name,
                model: &route.model,
                called_at: called.called_at,
                at_least: *after,
                why: &text::make_storable(why.clone()),
            };
            match busy_models::record_refusal(run.pool(), config, call, now).await {
                Ok(busy) => (busy.describe(), busy.wait(now)),
                Err(failed) => {
                    tracing::warn!(
                        error = causes(&failed),
                        "cannot record the refusal of a provider for other turns of the model"
                    );
                    (why.clone(), (*after).max(config.first_wait()))
                }
            }
        }
    };
    Fate::PutOff {
        why: with_end(config, &why, since),
        after: limit_wait(config, after, since, now),
    }
}

/// Returns true if the fate is a wait for a provider, which counts towards the limit.
pub fn is_provider_wait(fate: &Fate, error: Option<&providers::Error>) -> bool {
    let is_busy = error.is_some_and(|error| {
        matches!(error.class, Class::Snooze { .. }) && !error.origin.is_unrelated_to_provider()
    });
    matches!(fate, Fate::PutOff { .. }) && is_busy
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::providers::Origin;

    #[test]
    fn a_budget_reserved_by_other_turns_is_not_a_busy_provider() {
        let after = Duration::from_secs(5);
        let fate = Fate::PutOff { why: "it waits".to_owned(), after };
        let class = Class::Snooze { after, scope: Scope::Host };
        let error = |origin| providers::Error::new("test", class, "it waits").of(origin);
        assert!(is_provider_wait(&fate, Some(&error(Origin::Provider))));
        assert!(!is_provider_wait(&fate, Some(&error(Origin::Budget))));
        assert!(!is_provider_wait(&Fate::GivenBack, Some(&error(Origin::Provider))));
    }
}
