//! The CLI's own transcript: a cache, on this host, of the files that the caller has committed.
//!
//! Before a call the files are made equal to the caller's, byte by byte. Longer files were left by a killed turn and are cut. Missing and
//! different files are written again. Files that the caller does not know are removed. After a call, the growth of the files goes back to
//! the caller. Only one call of a session may do this at a time, which the caller's lease ensures.

mod chain;
mod files;
mod growth;
mod lines;
mod paths;
mod restore;
mod synthesise;

pub(super) use self::{
    chain::chain_to_answer,
    files::write_private,
    growth::{find_growth, is_persisted},
    lines::{has_message, repair},
    paths::{is_of_session, main_name, project_dir},
    restore::{LocalState, needs_bytes, restore},
    synthesise::{synthesise, synthesised_messages},
};
