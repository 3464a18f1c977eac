//! The CLI's own transcript: a cache, on this host, of what the caller has committed.
//!
//! Before a call the files are made equal to what the caller holds, byte by byte: longer ones are what a killed turn left
//! behind and are cut, missing and different ones are written anew, files that the caller does not know go. After a
//! call, what the files grew by goes back to the caller. Only one call of a session may do this at a time, which the
//! caller's lease sees to.

mod files;
mod grown;
mod lines;
mod place;
mod restore;
mod synthesise;

pub(super) use self::{
    files::write_private,
    grown::{grown, is_persisted},
    lines::{has_message, repaired},
    place::{is_of_session, main_name, project_dir},
    restore::{Local, is_missing, restore},
    synthesise::synthesise,
};
