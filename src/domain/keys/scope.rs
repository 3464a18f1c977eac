//! Scopes of keys.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Looks at everything but keys and the audit log.
    Read,
    /// Adds tasks, and sees those that keys of the same name have added.
    Enqueue,
    /// Changes what is there: cancels, pauses, resets, retries.
    Operate,
    /// Everything, keys and the audit log too.
    Admin,
    /// Uses the tools that are offered to models.
    Mcp,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown scope `{0}`: use read, enqueue, operate, admin or mcp")]
pub struct UnknownScope(String);

impl Scope {
    pub const ALL: [Self; 5] = [Self::Read, Self::Enqueue, Self::Operate, Self::Admin, Self::Mcp];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Enqueue => "enqueue",
            Self::Operate => "operate",
            Self::Admin => "admin",
            Self::Mcp => "mcp",
        }
    }

    /// Returns true if this scope includes `other`.
    pub fn implies(self, other: Self) -> bool {
        match self {
            Self::Admin => true,
            Self::Operate => matches!(other, Self::Operate | Self::Enqueue | Self::Read),
            // A system that only adds tasks need not see those of others.
            Self::Read | Self::Enqueue | Self::Mcp => self == other,
        }
    }
}

impl FromStr for Scope {
    type Err = UnknownScope;

    fn from_str(text: &str) -> Result<Self, UnknownScope> {
        let found = Self::ALL.into_iter().find(|scope| scope.as_str() == text);
        found.ok_or_else(|| UnknownScope(text.to_owned()))
    }
}
