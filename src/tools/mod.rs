//! The tools that models and people reach the service by: one definition of each, whoever calls it and whichever way.
//!
//! ```text
//! name ──▶ offered to this caller? ──▶ arguments fit? ──▶ the tool ──▶ a page of its answer
//!          no: a line in the audit     schema · size      reads, or one short transaction:
//!          log, and nothing else       no NUL             the change · its audit line · the lease
//! ```
//!
//! Invariants:
//! - Who calls is never an argument. A [`Caller`] is made from the run that calls, from the token of a turn or from a key; no
//!   tool takes the name of its caller, a campaign or a session. Where the lead may name another agent, only the lead's
//!   schema has the argument.
//! - What is not offered cannot be called: [`offered`] and [`call`] ask the same function.
//! - A change is one transaction with its line in the audit log, and its last statement is whether the run still has its job. A run
//!   that has lost it changes nothing.
//! - A change that an earlier attempt of the same task has made is not made again ([`crate::domain::tool_calls`]).
//! - A call whose time is over is over in Postgres, too, soon after: no statement of it runs longer than the call may. And no more than a few
//!   calls of one turn run at once.
//! - [`call`] never fails: what goes wrong is said to the model, in words that tell it what to do next. What the database or a
//!   fault of ours says is in the log instead.
//!
//! What other people and agents have written comes back as strings of JSON, in which nothing can pass for a field beside them.

mod archive;
mod arguments;
mod at_once;
mod blackboard;
mod board;
mod caller;
mod catalogue;
mod change;
mod denied;
mod edicts;
mod flows;
mod journals;
mod leave;
mod meaning;
mod memory;
mod metrics;
mod pages;
mod recall;
mod records;
mod refusal;
mod room;
mod settings;
mod status;
mod table;
mod tasks;
mod token;
mod tool;
#[cfg(feature = "test-fakes")]
mod trial;
mod wait;

use std::{panic::AssertUnwindSafe, sync::Arc};

use futures_util::FutureExt as _;
use serde_json::{Value, json};
use tokio::sync::OwnedSemaphorePermit;

use self::{arguments::Cursor, pages::Said, refusal::Refusal, tool::Call};
pub use self::{
    caller::{Caller, Operator, Role, Turn},
    leave::{SERVER, are_granted},
    meaning::Meanings,
    metrics::describe,
    settings::{Sections, Settings, Tools},
    table::{Line, markdown, table},
    token::{TokenError, turn_of},
};
use crate::{
    domain::{agents::Agent, audit},
    transcript::ToolSpec,
};

/// A call that waits for a place may wait for others afterwards, all of it within one request.
const IN_LINE_DIVISOR: u32 = 4;

/// What a model is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub text: String,
    pub is_error: bool,
}

/// What a caller may use, as its model is told of it.
pub fn offered(caller: &Caller) -> Vec<Arc<ToolSpec>> {
    let role = caller.role();
    catalogue::all()
        .filter(|tool| tool.is_offered_to(caller))
        .map(|tool| catalogue::spec(tool, role))
        .collect()
}

/// The same for an agent whose turn has not begun yet.
pub fn offered_to_agent(agent: &Agent, instance: &str) -> Vec<Arc<ToolSpec>> {
    let role = if caller::is_lead(agent, instance) { Role::Lead } else { Role::Agent };
    let offered = catalogue::all().filter(|tool| tool.is_offered_to_agent(agent, role));
    offered.map(|tool| catalogue::spec(tool, role)).collect()
}

/// Calls a tool.
pub async fn call(tools: &Tools, caller: &Caller, name: &str, arguments: Value) -> Answer {
    call_for(tools, caller, name, arguments, pages::PAGE_CHARS).await
}

/// The same for a model that is shown no more than so many characters at once, and what is said about the rest.
pub async fn call_for(
    tools: &Tools,
    caller: &Caller,
    name: &str,
    arguments: Value,
    page_chars: usize,
) -> Answer {
    let page_chars = page_chars.min(pages::PAGE_CHARS);
    let answered = Box::pin(answer(tools, caller, name, arguments, page_chars)).await;
    metrics::count(name, &answered);
    match answered {
        Ok(text) => Answer { text, is_error: false },
        Err(refusal) => {
            refusal.log(name);
            Answer { text: refusal.to_string(), is_error: true }
        }
    }
}

async fn answer(
    tools: &Tools,
    caller: &Caller,
    name: &str,
    arguments: Value,
    page_chars: usize,
) -> Result<String, Refusal> {
    // First of all: what is denied is written down, and that takes a connection, too.
    let _place = place(&tools.settings, caller).await?;
    let Some(tool) = catalogue::named(name).filter(|tool| tool.is_offered_to(caller)) else {
        deny(tools, caller, name).await?;
        let offered = offered(caller).iter().map(|spec| spec.name.clone()).collect();
        return Err(Refusal::NotOffered { tool: arguments::short(name), offered });
    };
    let (arguments, cursor) = arguments::check(tool, arguments)?;
    let goes_on = cursor != Cursor::default();
    let call = Call { tools, caller, tool, arguments, place: cursor.place.clone(), goes_on };
    let running = AssertUnwindSafe((tool.run)(call)).catch_unwind();
    let said = match tokio::time::timeout(tool.timeout, running).await {
        Ok(Ok(said)) => said?,
        Ok(Err(_panic)) => return Err(Refusal::Panicked),
        Err(_elapsed) => return Err(Refusal::TookTooLong { secs: tool.timeout.as_secs() }),
    };
    match tool.in_pages {
        true => {
            // Further pages are of the same part of the list.
            let began = said.began.or_else(|| cursor.place.clone());
            pages::page(Said { began, ..said }, tool.name, &cursor, page_chars)
        }
        false => Ok(pages::beginning(said, page_chars)),
    }
}

/// Among the calls of a turn.
async fn place(
    settings: &Settings,
    caller: &Caller,
) -> Result<Option<OwnedSemaphorePermit>, Refusal> {
    let Caller::Turn(turn) = caller else { return Ok(None) };
    let longest = settings.longest_wait / IN_LINE_DIVISOR;
    settings.at_once.enter((turn.session_id, turn.turn), longest).await.map(Some)
}

/// Writes down that somebody called what is not theirs.
async fn deny(tools: &Tools, caller: &Caller, name: &str) -> Result<(), Refusal> {
    // What a model makes up is no name of ours.
    let subject = catalogue::named(name).map_or("unknown", |tool| tool.name);
    let data = json!({ "campaign_id": caller.campaign_id(), "by": caller.origin() });
    let now = tools.settings.clock.now();
    let action = audit::Action::ToolDeny;
    audit::write(&tools.pool, &caller.actor(), action, subject, data, now).await?;
    Ok(())
}
