//! The session that a task of an agent goes on in.

use serde::{Deserialize, Serialize};

/// The session that a task asks for.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, sqlx::Type, utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
#[sqlx(type_name = "text", rename_all = "snake_case")]
#[schema(as = SessionMode)]
pub enum SessionMode {
    /// Goes on where the agent stopped.
    #[default]
    Continue,
    /// Begins without a memory; later tasks go on from here.
    ///
    /// A second attempt goes on in the session that the first one began, so that it does not forget what that one did.
    /// Once another task has spoken in it, the second attempt begins anew instead: what came after it is not its past.
    /// Later tasks then go on from the newer session; the talk in between stays where it was said.
    Fresh,
    /// A session of its own, which no later task continues.
    None,
}

impl SessionMode {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Continue => "continue",
            Self::Fresh => "fresh",
            Self::None => "none",
        }
    }
}
