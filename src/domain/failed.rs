//! A statement that failed, with what it was for.

use crate::db::constraint::{UserMistake, user_mistake};

/// The database did not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[error("asking the database to {action}")]
pub struct Failed {
    pub action: &'static str,
    #[source]
    pub source: sqlx::Error,
}

impl Failed {
    /// `.map_err(Failed::to("store a task"))`.
    pub(super) fn to(action: &'static str) -> impl FnOnce(sqlx::Error) -> Self {
        move |source| Self { action, source }
    }

    /// What the sender of the input did wrong, if that is why.
    pub fn mistake(&self) -> Option<&'static UserMistake> {
        user_mistake(&self.source)
    }
}
