//! Tools through which models and people use the service: one definition of each, for all callers and protocols.
//!
//! ```text
//! name ──▶ offered to this caller? ──▶ arguments fit? ──▶ the tool ──▶ a page of its answer
//!          no: a line in the audit     schema · size      reads, or one short transaction:
//!          log, and nothing else       no NUL             the change · its audit line · the lease
//! ```
//!
//! Invariants:
//! - The caller is never an argument. A [`Caller`] is made from the run that calls, from the token of a turn or from a key. No tool takes
//!   the name of its caller or a campaign. Where the lead or an operator may name another agent, only their schemas have the argument. Only
//!   tools of operators take a session, which must be one of their campaign.
//! - A tool that is not list_offered cannot be called: [`list_offered`] and [`call`] ask the same function.
//! - A change and its line in the audit log are one transaction. Its last statement checks that the run still has its job. A run that has
//!   lost its job changes nothing.
//! - A change that an earlier attempt of the same task has made is not repeated ([`crate::domain::tool_calls`]).
//! - No statement runs longer than its call may. So a call that timed out soon ends in Postgres, too.
//! - Only a few calls of one turn run at the same time.
//! - [`call`] never fails. The model is told what went wrong and what to do next. Texts of the database and of internal faults go to the
//!   log instead.
//!
//! Text that other people and agents have written is returned as JSON strings, so it cannot pass for a field.

mod agent_problems;
mod archive;
mod arguments;
mod blackboard;
mod board;
mod caller;
mod catalogue;
mod change;
mod concurrency;
mod contexts;
mod denials;
mod edicts;
mod facts;
mod flows;
mod journals;
mod limits;
mod memory;
mod metrics;
mod pages;
mod permissions;
mod question_embeddings;
mod recall;
mod records;
mod refusal;
mod rule_problems;
mod settings;
mod status;
mod table;
mod task_limits;
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

pub use self::{
    agent_problems::agent_problems,
    caller::{Caller, Operator, Role, Turn},
    limits::LIMITS,
    metrics::{METRICS, describe},
    permissions::{SERVER, are_granted},
    question_embeddings::Meanings,
    settings::{Sections, Settings, Tools},
    table::{Line, markdown, table},
    token::{TokenError, turn_of},
};
use self::{arguments::Cursor, pages::ToolAnswer, refusal::Refusal, tool::Call};
use crate::{
    domain::{agents::Agent, audit},
    transcript::ToolSpec,
};

/// Divisor of the longest wait: a call waits for its place for at most this part. It may wait for tasks afterwards, within the same
/// request.
const IN_LINE_DIVISOR: u32 = 4;

/// Answer to the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub text: String,
    pub is_error: bool,
}

/// Returns the tools that a caller may use, as its model is told of them.
pub fn list_offered(caller: &Caller) -> Vec<Arc<ToolSpec>> {
    let role = caller.role();
    catalogue::all()
        .filter(|tool| tool.is_offered_to(caller))
        .map(|tool| catalogue::spec(tool, role))
        .collect()
}

/// Returns the tools for an agent whose turn has not begun yet.
pub fn list_offered_to_agent(agent: &Agent, instance: &str) -> Vec<Arc<ToolSpec>> {
    let role = if caller::is_lead(agent, instance) { Role::Lead } else { Role::Agent };
    let offered = catalogue::all().filter(|tool| tool.is_offered_to_agent(agent, role));
    offered.map(|tool| catalogue::spec(tool, role)).collect()
}

/// Calls a tool.
pub async fn call(tools: &Tools, caller: &Caller, name: &str, arguments: Value) -> Answer {
    call_for(tools, caller, name, arguments, pages::PAGE_CHARS).await
}

/// Calls a tool for a model that is shown at most `page_chars` characters at once, besides the note about the rest.
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
    // Taken before the check of the tool: a denial writes to the audit log, and that takes a connection, too.
    let _place = place(&tools.settings, caller).await?;
    let Some(tool) = catalogue::find(name).filter(|tool| tool.is_offered_to(caller)) else {
        deny(tools, caller, name).await?;
        let offered = list_offered(caller).iter().map(|spec| spec.name.clone()).collect();
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
            // Further pages show the same part of the list.
            let began = said.began.or_else(|| cursor.place.clone());
            pages::page(ToolAnswer { began, ..said }, tool.name, &cursor, page_chars)
        }
        false => Ok(pages::first_page(said, page_chars)),
    }
}

/// Waits for a place among the calls of a turn. Operators need none.
async fn place(
    settings: &Settings,
    caller: &Caller,
) -> Result<Option<OwnedSemaphorePermit>, Refusal> {
    let Caller::Turn(turn) = caller else { return Ok(None) };
    let longest = settings.longest_wait / IN_LINE_DIVISOR;
    settings.at_once.acquire_permit((turn.session_id, turn.turn), longest).await.map(Some)
}

/// Writes to the audit log that the caller has called a tool that it may not use.
async fn deny(tools: &Tools, caller: &Caller, name: &str) -> Result<(), Refusal> {
    // Names that a model makes up do not enter the log.
    let subject = catalogue::find(name).map_or("unknown", |tool| tool.name);
    let data = json!({ "campaign_id": caller.campaign_id(), "by": caller.origin() });
    let now = tools.settings.clock.now();
    let action = audit::Action::ToolDeny;
    audit::write(&tools.pool, &caller.actor(), action, subject, data, now).await?;
    Ok(())
}
