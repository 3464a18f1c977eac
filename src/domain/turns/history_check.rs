//! The proof that a model saw the history of its conversation.

use serde::{Deserialize, Serialize};

/// The result of comparing the count of a turn's first prompt with the history that belongs to it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, sqlx::Type, utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
#[sqlx(type_name = "text", rename_all = "snake_case")]
pub enum HistoryCheck {
    /// The count is too high for a prompt without the history.
    Seen,
    /// The count is too low for a prompt with the history.
    NotSeen,
    /// The count fits a prompt with the history and one without it, or the provider reports none.
    NotProvable,
    /// Nothing came before the turn.
    NoHistory,
}
