//! The input of the commit phase.

use crate::{
    jobs::{
        Services,
        run_turn::{
            begin::open_turn::OpenTurn, call::report::CallReport,
            commit::structured_result::StructuredResult, load::assignment::Assignment,
        },
    },
    queue::Run,
};

/// A turn between its call and its end.
pub struct Turn<'a> {
    pub run: &'a Run,
    pub services: &'a Services,
    pub assignment: &'a Assignment<'a>,
    pub opened: &'a OpenTurn,
    pub called: &'a CallReport,
    pub structured: &'a StructuredResult,
}
