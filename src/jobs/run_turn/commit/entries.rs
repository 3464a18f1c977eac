//! The entries that a turn adds to the transcript when it ends.

use super::{fate::Fate, turn::Turn};
use crate::{
    domain::{ids, messages},
    jobs::{measure::measure_message, run_turn::notices},
    providers::Outcome,
    transcript::Role,
};

/// Builds the entries: the rounds, then the answer, or the part of it that had arrived if the turn was stopped.
pub fn entries(turn: &Turn<'_>, fate: &Fate) -> Vec<messages::New> {
    let mut new = turn.called.rounds.said.clone();
    new.extend(final_entries(turn, fate));
    new
}

fn final_entries(turn: &Turn<'_>, fate: &Fate) -> Vec<messages::New> {
    let id = ids::new_at(turn.services.clock.now());
    match (fate, &turn.called.result) {
        (fate, Ok(outcome)) if fate.is_answered() => answer(turn, outcome),
        (
            Fate::Cancelled
            | Fate::GivenBack
            | Fate::Again { interrupted: true, .. }
            | Fate::WaitsForBudget { interrupted: true, .. }
            | Fate::Failed { interrupted: true, .. },
            _,
        ) if !turn.called.arrived.trim().is_empty() => {
            let arrived = turn.called.arrived.clone();
            let partial = notices::message(id, Role::Assistant, arrived);
            vec![messages::New { partial: true, ..partial }]
        }
        _ => Vec::new(),
    }
}

/// Builds the answer with all messages before it, if the provider reports them.
fn answer(turn: &Turn<'_>, outcome: &Outcome) -> Vec<messages::New> {
    let now = turn.services.clock.now();
    let said = match &outcome.conversation {
        Some(continued) => continued.messages.as_slice(),
        None => std::slice::from_ref(&outcome.message),
    };
    said.iter().map(|message| measure_message(ids::new_at(now), message.clone())).collect()
}
