//! Faults of a call: those of the configuration, and those that its prompt asks for.
//!
//! A direction in a prompt counts the calls of its own turn. So "once" fails the first attempt and lets the next one through. The counts
//! belong to this process: a turn that another worker takes over meets its directions again.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
};

use super::{
    board,
    config::Config,
    error::Error,
    fault::{Direction, Fault},
};
use crate::{
    providers::{Purpose, Request},
    transcript::{Message, Role},
};

#[derive(Debug)]
pub(super) struct Script {
    for_all: Vec<(Direction, AtomicU32)>,
    /// True if directions in prompts are followed.
    directives: bool,
    /// Calls so far, by turn and direction.
    n_calls: Mutex<HashMap<(String, String), u32>>,
}

/// Maximum number of counts. No test of faults needs more.
const MAX_COUNTS: usize = 4096;

impl Script {
    pub(super) fn new(config: &Config) -> Result<Self, Error> {
        let mut for_all = Vec::new();
        for fault in &config.faults {
            for_all.push((fault.parse()?, AtomicU32::new(0)));
        }
        Ok(Self { for_all, directives: config.directives, n_calls: Mutex::new(HashMap::new()) })
    }

    pub(super) fn faults_of(&self, request: &Request) -> Vec<Fault> {
        let mut faults = Vec::new();
        for (direction, n_calls) in &self.for_all {
            let nth = n_calls.fetch_add(1, Ordering::Relaxed).saturating_add(1);
            faults.extend(direction.holds_at(nth).then(|| direction.fault.clone()));
        }
        // The text to summarise is full of directions for other calls.
        if self.directives && request.purpose == Purpose::Turn {
            faults.extend(self.faults_of_prompt(request));
        }
        faults
    }

    fn faults_of_prompt(&self, request: &Request) -> Vec<Fault> {
        // Older directions have had their effect.
        let prompt = prompt(&request.messages).map(|at| &request.messages[at]);
        let mut faults = Vec::new();
        let own = prompt.map(|prompt| board::own_words(last_task(&prompt.text), &request.system));
        for text in own.iter().flat_map(|own| directives(own)) {
            let direction = match plain(text).parse::<Direction>() {
                Ok(direction) => direction,
                Err(error) => {
                    let reason = error.reason();
                    tracing::warn!(
                        directive = text,
                        reason,
                        "invalid directive for the simulated model, ignored"
                    );
                    continue;
                }
            };
            let nth = match direction.counts() {
                true => self.count(&request.turn, text),
                false => 1,
            };
            faults.extend(direction.holds_at(nth).then_some(direction.fault));
        }
        faults
    }

    fn count(&self, turn: &str, text: &str) -> u32 {
        let mut n_calls = self.n_calls.lock().unwrap_or_else(PoisonError::into_inner);
        if n_calls.len() >= MAX_COUNTS {
            n_calls.clear();
        }
        let nth = n_calls.entry((turn.to_owned(), text.to_owned())).or_default();
        *nth = nth.saturating_add(1);
        *nth
    }
}

/// Returns the place of the prompt: the last message with a task in it, or else the last one of the user.
pub(super) fn prompt(messages: &[Arc<Message>]) -> Option<usize> {
    let of_user = |message: &Arc<Message>| message.role == Role::User;
    let has_task = |message: &Arc<Message>| of_user(message) && message.text.contains("<task ");
    messages.iter().rposition(has_task).or_else(|| messages.iter().rposition(of_user))
}

/// Undoes the escapes of foreign text in a prompt.
pub(super) fn plain(text: &str) -> String {
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}

/// Returns the last task of a message. An unanswered task stands in the same message as the next one, and its directions have had their
/// effect.
fn last_task(text: &str) -> &str {
    text.rfind("<task ").map_or(text, |at| &text[at..])
}

/// Returns the texts between `[[sim:` and `]]`.
fn directives(text: &str) -> impl Iterator<Item = &str> {
    text.split("[[sim:").skip(1).filter_map(|after| Some(after.split_once("]]")?.0.trim()))
}
