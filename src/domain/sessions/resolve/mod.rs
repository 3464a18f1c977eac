//! Finding the session of a task: continue it, rebuild it, or begin one.
//!
//! [`decide()`] is the rule, and only that; [`resolve`] looks up, decides and carries out in the caller's transaction.
//!
//! Race: two workers resolve the same conversation. The open session's row is locked by whoever finds it first; where
//! there is none, the unique index lets one insert through and the other run stops as overtaken.

mod carry_out;
mod decide;
mod expiry;

pub use self::{
    carry_out::{Resolved, resolve, succeed},
    decide::{Decision, Inherit, Mode, Wanted, decide, inherit},
    expiry::Inheritance,
};
pub use super::open::Opening;
