//! The answer of a turn as its result schema has it, and what follows if it does not match.

use serde_json::Value;

use super::fate::Fate;
use crate::{
    domain::result_schemas,
    jobs::{
        Services,
        run_turn::{call::report::CallReport, load::assignment::Assignment},
    },
    queue::{Run, Stop},
};

/// Flag of a turn whose answer does not match.
pub const MISMATCH: &str = "result_mismatch";

#[derive(Debug, Clone, PartialEq)]
pub enum StructuredResult {
    /// The task has no schema, or the turn has no answer.
    None,
    Matching(Value),
    Mismatched {
        fault: String,
    },
}

impl StructuredResult {
    pub fn of(assignment: &Assignment<'_>, called: &CallReport) -> Self {
        let (Some(schema), Ok(outcome)) = (&assignment.result_schema, &called.result) else {
            return Self::None;
        };
        match result_schemas::read_answer(schema, &outcome.message.text) {
            Ok(value) => Self::Matching(value),
            Err(fault) => Self::Mismatched { fault },
        }
    }

    pub fn value(&self) -> Option<&Value> {
        match self {
            Self::Matching(value) => Some(value),
            Self::None | Self::Mismatched { .. } => None,
        }
    }

    /// Replaces the fate of an answer that does not match: a correction, as long as some are left.
    pub fn apply(
        &self,
        fate: Fate,
        run: &Run,
        services: &Services,
        assignment: &Assignment<'_>,
    ) -> Fate {
        let (Fate::Done, Self::Mismatched { fault }) = (&fate, self) else { return fate };
        if run.stop_reason() == Some(Stop::Cancelled) {
            return Fate::Cancelled;
        }
        let n_made = assignment.correction.as_ref().map_or(0, |correction| correction.number);
        decide(fault, n_made, services.tasks.max_corrections)
    }
}

fn decide(fault: &str, n_made: i16, max_corrections: u8) -> Fate {
    if n_made < i16::from(max_corrections) {
        return Fate::Correction { fault: fault.to_owned() };
    }
    let corrections = match n_made {
        0 => "no correction was asked for".to_owned(),
        1 => "1 correction was asked for".to_owned(),
        n => format!("{n} corrections were asked for"),
    };
    Fate::Mismatch {
        why: format!(
            "{fault} ({corrections}, see tasks.max_corrections); the result of the task is its last answer: make prompt and schema clearer, or use a larger model"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn corrections_are_limited() {
        let fault = || "it is not JSON".to_owned();
        assert_eq!(decide(&fault(), 0, 2), Fate::Correction { fault: fault() });
        assert_eq!(decide(&fault(), 1, 2), Fate::Correction { fault: fault() });
        for (n_made, most, words) in
            [(2, 2, "2 corrections"), (1, 1, "1 correction was"), (0, 0, "no correction")]
        {
            let Fate::Mismatch { why } = decide(&fault(), n_made, most) else { panic!("{n_made}") };
            assert!(why.starts_with("it is not JSON (") && why.contains(words), "{why}");
        }
    }
}
