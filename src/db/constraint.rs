//! Constraint names become words for the person who ran into them: here, and nowhere else.
//!
//! `tests/it/migrations.rs` holds this list against the constraints of the schema: a CHECK, UNIQUE or FOREIGN
//! KEY that a user's input can violate and that has no words here fails the build.

/// A mistake in somebody's input, found by the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserMistake {
    pub constraint: &'static str,
    pub message: &'static str,
}

/// Constraints that only our own code can violate; a violation is a bug, not a mistake of the user.
pub const INTERNAL: &[&str] = &["installation_is_one_row", "installation_singleton_is_true"];

/// Constraints that input can violate, with what to tell whoever sent it.
pub const WORDS: &[UserMistake] = &[];

/// What the user did wrong, if the error is about that.
pub fn user_mistake(error: &sqlx::Error) -> Option<&'static UserMistake> {
    let constraint = error.as_database_error()?.constraint()?;
    WORDS.iter().find(|mistake| mistake.constraint == constraint)
}
