//! Charges of the rate limits of a turn.

use crate::{
    jobs::{
        rate_limits::CallUse,
        run_turn::{
            begin::open_turn::OpenTurn, call::report::CallReport, load::assignment::Assignment,
        },
    },
    providers::{Class, Origin, Scope},
};

/// Charges what the calls of a turn have used, in place of what was expected, and learns from what the provider tells about its limits.
pub fn charge(opened: &mut OpenTurn, assignment: &Assignment<'_>, called: &CallReport) {
    let permit = &mut opened.permit;
    let n_calls = called.n_calls();
    if n_calls > 0 {
        let counts_cached = assignment.route.provider.limits_count_cached_tokens();
        permit.charge(CallUse { n_calls, usage: called.usage(), counts_cached });
    }
    if let Some(told) = &called.told_limits {
        permit.learn(told);
    }
    if let Err(error) = &called.result
        && let Class::Snooze { after, scope: Scope::Host } = error.class
        && error.origin == Origin::Provider
        && !error.is_unasked
    {
        permit.pause(after);
    }
}
