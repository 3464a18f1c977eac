//! The ledger lines of a turn, and the manifests of its calls.

use crate::{
    domain::{manifests, usage},
    jobs::{
        Services,
        run_turn::{
            begin::open_turn::OpenTurn,
            call::{
                ledger::{lines, lines_of_rounds},
                report::CallReport,
                rounds::record::ModelCall,
            },
            commit::{contexts::ManifestRecord, fate::Fate},
            load::assignment::Assignment,
        },
    },
    providers::{Class, Error, Outcome},
};

/// Maps to the ledger's outcome. `None` for a call that was not made or not accepted. A call that was put off after it
/// had used tokens is billed.
pub fn outcome(fate: &Fate, result: &Result<Outcome, Error>) -> Option<usage::Outcome> {
    match (fate, result) {
        (fate, _) if fate.is_answered() => Some(usage::Outcome::Done),
        (_, Err(error)) if error.is_unasked => None,
        (Fate::PutOff { .. }, Err(error)) if error.usage.is_none() => None,
        (_, Err(error)) if error.class == Class::Cancelled => Some(usage::Outcome::Interrupted),
        _ => Some(usage::Outcome::Failed),
    }
}

/// Builds the lines of all calls of a turn, in order.
pub fn all_lines<'a>(
    services: &'a Services,
    assignment: &'a Assignment<'_>,
    opened: &OpenTurn,
    called: &'a CallReport,
    fate: &Fate,
) -> Vec<usage::Call<'a>> {
    let mut all = lines_of_rounds(assignment, opened, &called.rounds);
    if let Some(outcome) = outcome(fate, &called.result) {
        all.extend(lines(services, assignment, opened, called, outcome));
    }
    all
}

pub fn manifest<'a>(
    opened: &OpenTurn,
    called: &CallReport,
    record: &'a ManifestRecord,
) -> manifests::New<'a> {
    let counted = match &called.result {
        Ok(outcome) => outcome.prompt_tokens(),
        Err(error) => error.usage.as_ref().and_then(|usage| usage.prompt()),
    };
    manifests::New {
        session_id: opened.begun.session_id,
        turn: opened.begun.turn,
        call: place(called.rounds.calls.len()),
        manifest: &record.manifest,
        sha256: *record.sha256.as_bytes(),
        estimated_tokens: i64::try_from(opened.estimated_tokens).unwrap_or(i64::MAX),
        real_tokens: counted.and_then(|n| i64::try_from(n).ok()),
    }
}

/// Builds the row of the manifest of a call before the last one.
pub fn manifest_of_round<'a>(
    opened: &OpenTurn,
    (at, asked): (usize, &ModelCall),
    record: &'a ManifestRecord,
) -> manifests::New<'a> {
    manifests::New {
        session_id: opened.begun.session_id,
        turn: opened.begun.turn,
        call: place(at),
        manifest: &record.manifest,
        sha256: *record.sha256.as_bytes(),
        estimated_tokens: i64::try_from(asked.estimated_tokens).unwrap_or(i64::MAX),
        real_tokens: asked.usage.prompt().and_then(|n| i64::try_from(n).ok()),
    }
}

fn place(call: usize) -> i16 {
    i16::try_from(call).unwrap_or(i16::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::providers::{Scope, Usage};

    #[test]
    fn a_postponed_call_is_billed_if_it_used_tokens() {
        let after = Duration::from_secs(1);
        let fate = Fate::PutOff { why: "busy".to_owned(), after };
        let busy = || Error::new("test", Class::Snooze { after, scope: Scope::Credential }, "busy");
        assert_eq!(outcome(&fate, &Err(busy())), None);
        let used = busy().with_usage(Some(Usage { input: Some(9), ..Usage::default() }));
        assert_eq!(outcome(&fate, &Err(used)), Some(usage::Outcome::Failed));
    }

    #[test]
    fn a_call_that_was_not_made_has_no_ledger_line() {
        let why = "no program".to_owned();
        let fate = Fate::Failed { why, interrupted: false, rejected: false, refusal: None };
        let failed = || Error::new("test", Class::Fail, "no program");
        assert_eq!(outcome(&fate, &Err(failed().before_call())), None);
        assert_eq!(outcome(&fate, &Err(failed())), Some(usage::Outcome::Failed));
    }
}
