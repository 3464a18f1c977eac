//! The statements of a turn's phases: load, begin, reserve, commit.
//!
//! Everything that a turn changes is written in two transactions, its begin and its end. Each is one statement that touches
//! the rows of several nouns, and a few more where something is unusual, independent of the length of the conversation. Both
//! are the caller's, who ends the job in the second one.
//!
//! Races: a worker that was declared lost ends its turn late. Begin and end name the lease on the session's row; the run
//! that came after it has put a larger one there, and the late one finds no row ([`super::sessions::Error::Overtaken`]).

mod begin;
mod end;
mod end_row;
mod error;
mod reserve;
mod unseen;
mod wanted;

pub use self::{
    begin::{Begin, Begun, begin, session_before},
    end::{Continued, Done, Ending, Failure, Record, Seen, Shown, cancel, commit, fail, interrupt},
    error::Error,
    reserve::reserve_more,
    unseen::{Look, Unseen, Unshown, unseen},
    wanted::{AboutUser, Beside, Wanted, Written, wanted},
};
