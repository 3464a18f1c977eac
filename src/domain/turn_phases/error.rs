//! Errors of the two transactions of a turn.

use crate::domain::{StatementError, budgets, sessions, tasks};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Session(#[from] sessions::Error),
    #[error(transparent)]
    Task(#[from] tasks::Error),
    #[error(transparent)]
    Budget(#[from] budgets::ReserveError),
    #[error(transparent)]
    Database(#[from] StatementError),
}
