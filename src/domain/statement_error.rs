//! A database statement that failed, with its purpose.

use crate::db::constraint::{UserMistake, user_mistake};

/// A failed statement, with the action that it was made for.
#[derive(Debug, thiserror::Error)]
#[error("the database could not {action}")]
pub struct StatementError {
    pub action: &'static str,
    #[source]
    pub source: sqlx::Error,
}

impl StatementError {
    /// `.map_err(Failed::to("store a task"))`.
    pub(super) fn to(action: &'static str) -> impl FnOnce(sqlx::Error) -> Self {
        move |source| Self { action, source }
    }

    /// Returns the mistake in the caller's input, if that is the cause.
    pub fn mistake(&self) -> Option<&'static UserMistake> {
        user_mistake(&self.source)
    }
}
