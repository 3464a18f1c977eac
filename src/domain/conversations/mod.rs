//! Conversations: the session in which a task goes on, continued, rebuilt or begun.
//!
//! [`decide()`] is the rule, and only that; [`resolve`] looks up, decides and carries out in the caller's transaction.
//!
//! Race: two workers resolve the same conversation. The open session's row is locked by whoever finds it first; where
//! there is none, the unique index lets one insert through and the other run stops as overtaken.

mod carry_out;
mod decide;
mod expiry;
mod reset_agents;
mod session_detail;
mod uncompact;

pub use self::{
    carry_out::{Resolved, resolve, succeed},
    decide::{Decision, Inherit, Wanted, decide, inherit},
    expiry::Inheritance,
    reset_agents::{Reset, ResetError, reset_agents},
    session_detail::{Detail, detail},
    uncompact::uncompact,
};
pub use super::sessions::Opening;
