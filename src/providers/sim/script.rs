//! Which faults a call meets: those of the configuration, and those that its prompt asks for.
//!
//! A direction in a prompt counts the calls of its own turn, so "once" fails the first attempt and lets the next one
//! through. The counts are this process's: a turn that another worker takes over meets its directions anew.

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
    /// Whether prompts are listened to.
    directives: bool,
    /// Calls so far, by turn and direction.
    n_calls: Mutex<HashMap<(String, String), u32>>,
}

/// Counts that are kept. A process that meets more turns with directions than that is a test of something else.
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
        // What is to be summarised is full of directions that were meant for others.
        if self.directives && request.purpose == Purpose::Turn {
            faults.extend(self.faults_of_prompt(request));
        }
        faults
    }

    fn faults_of_prompt(&self, request: &Request) -> Vec<Fault> {
        // Older directions have had their effect; they are history.
        let prompt = prompt(&request.messages).map(|at| &request.messages[at]);
        let mut faults = Vec::new();
        let own = prompt.map(|prompt| board::own_words(last_task(&prompt.text), &request.system));
        for text in own.iter().flat_map(|own| directives(own)) {
            let Ok(direction) = plain(text).parse::<Direction>() else {
                tracing::warn!(directive = text, "no direction for the simulated model");
                continue;
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

/// Where the prompt stands: the last message with a task in it, and where none has any, the last of the user.
pub(super) fn prompt(messages: &[Arc<Message>]) -> Option<usize> {
    let of_user = |message: &Arc<Message>| message.role == Role::User;
    let has_task = |message: &Arc<Message>| of_user(message) && message.text.contains("<task ");
    messages.iter().rposition(has_task).or_else(|| messages.iter().rposition(of_user))
}

/// Foreign text is escaped in a prompt.
pub(super) fn plain(text: &str) -> String {
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}

/// A task that nobody answered stands in the same message as the next one, and its directions have had their effect too.
fn last_task(text: &str) -> &str {
    text.rfind("<task ").map_or(text, |at| &text[at..])
}

/// What stands between `[[sim:` and `]]`.
fn directives(text: &str) -> impl Iterator<Item = &str> {
    text.split("[[sim:").skip(1).filter_map(|after| Some(after.split_once("]]")?.0.trim()))
}
