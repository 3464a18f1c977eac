//! The size of the generated database.

use crate::common::size;

/// Numbers that `fill.sql` takes.
pub struct Scale {
    pub tasks: i64,
    pub campaigns: i64,
    /// Conversations of each campaign.
    pub conversations: i64,
}

const FILL: &str = include_str!("fill.sql");

impl Scale {
    /// A tenth of the tasks are in the first campaign, and its conversations share them: each has 5,000 messages.
    pub fn of_run() -> Self {
        let full = Self { tasks: 1_000_000, campaigns: 250, conversations: 40 };
        size::of(full, Self { tasks: 2_000, campaigns: 5, conversations: 4 })
    }

    /// Returns the statements that fill a migrated database.
    pub fn statements(&self) -> Vec<String> {
        let text = FILL
            .replace(":tasks", &self.tasks.to_string())
            .replace(":campaigns", &self.campaigns.to_string())
            .replace(":conversations", &self.conversations.to_string());
        text.split(";\n")
            .map(str::trim)
            .filter(|part| !part.is_empty())
            .map(str::to_owned)
            .collect()
    }
}
