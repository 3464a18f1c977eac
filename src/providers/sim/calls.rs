//! Tool calls of the simulation, one round after the other, as its prompt directs.
//!
//! The conversation tells which round is next: it has the calls since the prompt. So any worker that sends the conversation again continues
//! from there.

use std::sync::Arc;

use super::{
    fault::{self, Fault},
    script,
};
use crate::{
    providers::Request,
    transcript::{Message, Role, ToolCall},
};

/// Returns the calls of the next round. Empty if the directions are used up, or if no tools are offered.
pub(super) fn wanted(request: &Request, faults: &[Fault]) -> Vec<ToolCall> {
    if request.tools.is_empty() {
        return Vec::new();
    }
    let rounds = rounds(faults);
    let n_before = asked(&request.messages).count();
    let now = rounds.get(n_before).into_iter().flatten().enumerate();
    now.map(|(at, call)| ToolCall {
        id: format!("{}-{n_before}-{at}", request.turn),
        name: call.name.clone(),
        arguments: call.arguments.clone(),
        thinking: None,
    })
    .collect()
}

/// Returns the names of the tools that were called since the prompt.
pub(super) fn used(messages: &[Arc<Message>]) -> Vec<&str> {
    asked(messages).flat_map(|asked| &asked.tool_calls).map(|call| call.name.as_str()).collect()
}

fn asked(messages: &[Arc<Message>]) -> impl Iterator<Item = &Message> {
    let after = script::prompt(messages).map_or(0, |at| at + 1);
    let answers = messages[after..].iter().map(Arc::as_ref);
    answers.filter(|it| it.role == Role::Assistant && !it.tool_calls.is_empty())
}

fn rounds(faults: &[Fault]) -> Vec<Vec<&fault::Call>> {
    let mut rounds: Vec<Vec<&fault::Call>> = Vec::new();
    for fault in faults {
        let Fault::Call(call) = fault else { continue };
        match rounds.last_mut().filter(|_| call.is_joined) {
            Some(last) => last.push(call),
            None => rounds.extend((0..call.n_times).map(|_| vec![call])),
        }
    }
    rounds
}
