//! The pages of flows: their list, the graph of one of them with its critical path, and the form that starts one.

mod control;
mod explain;
mod graph;
mod list;
mod one;
mod start;

use maud::Markup;

pub(super) use self::{
    list::list,
    one::show,
    start::{estimate, show as start},
};
use super::parts::Tone;
use crate::domain::flows::{Flow, State};

pub(super) fn state(flow: &Flow) -> Markup {
    let (tone, word) = state_words(flow.state);
    tone.state(word, Some(&format!("{} of {}", flow.done, flow.tasks)))
}

fn state_words(state: State) -> (Tone, &'static str) {
    match state {
        State::Running => (Tone::Running, "running"),
        State::Paused => (Tone::Paused, "paused"),
        State::Done => (Tone::Done, "done"),
        State::Failed => (Tone::Failed, "failed"),
        State::Cancelled => (Tone::Cancelled, "cancelled"),
    }
}
