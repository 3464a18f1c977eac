//! Attachments: files that a task is given with its prompt.

mod error;
mod input;
mod load;
mod store;
mod types;

pub use self::{
    error::{ACCEPTED, Error},
    input::{FileBytes, Limits, NewAttachment, check, digest_text},
    load::load,
    store::{Source, referenced_tasks, store, store_uploads},
};
