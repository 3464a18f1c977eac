//! Conversations: finding, rebuilding or creating the session of a task.
//!
//! [`decide()`] is the rule, without side effects. [`resolve`] reads the session, decides, and carries the decision out in the caller's
//! transaction. [`fork()`] opens a second conversation that begins as one was after a turn.
//!
//! Race: two workers resolve the same conversation. The first one locks the row of the open session. If there is none, the unique index
//! lets one insert through, and the other run stops as overtaken.

mod carry_out;
mod decide;
mod expiry;
mod fork;
mod memory;
mod reset_agents;
mod session_detail;
mod uncompact;

pub use self::{
    carry_out::{ResolvedSession, find_current, open_successor, resolve},
    decide::{Decision, Inherit, SessionRequest, decide, inherit},
    expiry::Inheritance,
    fork::{ForkError, ForkRequest, fork},
    reset_agents::{Reset, ResetError, reset_agents},
    session_detail::{Detail, detail},
    uncompact::uncompact,
};
pub use super::sessions::NewSession;
