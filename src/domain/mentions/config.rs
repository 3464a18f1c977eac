//! The section `[mentions]`.

use serde::Deserialize;

use crate::settings::Checks;

/// Limits that keep the agents of a campaign from calling each other forever.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Maximum number of agent answers in a row that call further agents. An answer behind this many calls no agents.
    pub max_depth: u16,
    /// Maximum number of agents that one post calls.
    pub max_fan_out: u16,
    /// Maximum number of tasks that one post of a person leads to, over all answers that call agents.
    pub max_tasks: u32,
    /// Number of times that an agent may post the same text within `repeat_window_secs` and still call agents with it.
    pub max_repeats: u16,
    pub repeat_window_secs: u32,
}

/// Highest allowed `max_fan_out`; below the number of names to which a post can be addressed.
pub(super) const MAX_NAMES: u16 = 190;

impl Config {
    pub fn check(&self, checks: &mut Checks<'_>) {
        checks.at_least("mentions.max_fan_out", self.max_fan_out.into(), 1);
        checks.at_least("mentions.max_tasks", self.max_tasks.into(), 1);
        checks.at_least("mentions.max_repeats", self.max_repeats.into(), 1);
        if self.max_fan_out > MAX_NAMES {
            let message =
                format!("is {}, but a post can have at most {MAX_NAMES} names", self.max_fan_out);
            checks.fail("mentions.max_fan_out", message, format!("at most {MAX_NAMES}"));
        }
    }
}
