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
    /// A second attempt continues the session that the first one began, so that it remembers what that one did. If another task has used
    /// that session since, the second attempt begins a new one, without those later messages. Later tasks then continue the newer session;
    /// the messages in between stay in the older one.
    Fresh,
    /// A session of its own, which no later task continues.
    None,
}

impl SessionMode {
    /// The modes with their names in files.
    pub(in crate::domain) const CHOICES: [(&'static str, Self); 3] =
        [("continue", Self::Continue), ("fresh", Self::Fresh), ("none", Self::None)];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Continue => "continue",
            Self::Fresh => "fresh",
            Self::None => "none",
        }
    }
}
