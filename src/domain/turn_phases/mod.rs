//! The statements of a turn's phases: load, begin, progress, reserve, commit.
//!
//! A turn writes its changes in two transactions, its begin and its end. Each is one statement over the rows of several nouns, with a few
//! more in rare cases, independent of the length of the conversation. The caller owns both transactions, and ends the job in the second
//! one.
//!
//! Races: a worker that was declared lost ends its turn late. Begin and end name the lease on the session's row. The next run has put a
//! larger one there, so the late one finds no row ([`super::sessions::Error::Overtaken`]).

mod begin;
mod end;
mod end_row;
mod error;
mod load;
mod progress;
mod reserve;
mod unseen;

pub use self::{
    begin::{Begin, StartedTurn, begin, session_before},
    end::{
        AnsweredTurn, BoardProgress, Failure, ProviderState, Record, ShownPosts, TurnEnd, cancel,
        commit, fail, interrupt,
    },
    error::Error,
    load::{AboutUser, BlackboardVersion, Correction, LoadParams, TurnInput, load_task_of_job},
    progress::store_progress,
    reserve::reserve_more,
    unseen::{OmissionReason, UnseenPosts, UnseenQuery, find_unseen_posts},
};
