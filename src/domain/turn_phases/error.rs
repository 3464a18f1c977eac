//! Errors of the two transactions of a turn.

use crate::domain::{StatementError, campaigns, sessions, tasks};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Session(#[from] sessions::Error),
    #[error(transparent)]
    Task(#[from] tasks::Error),
    #[error(transparent)]
    Budget(#[from] campaigns::ReserveError),
    #[error(transparent)]
    Database(#[from] StatementError),
}
