//! The section `[mentions]`.

use serde::Deserialize;

use crate::settings::Checks;

/// What keeps agents from calling each other for ever, in each campaign.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Answers that may call others on the way from a person's post: one in whose past there are more calls nobody.
    pub max_depth: u16,
    /// Agents that one post calls at most.
    pub max_fan_out: u16,
    /// Tasks that one post of a person leads to, over all the answers that call others.
    pub max_tasks: u32,
    /// How often an agent may say the very same text within [`Self::repeat_window_secs`] and still call others with it.
    pub max_repeats: u16,
    pub repeat_window_secs: u32,
}

/// What a post can be addressed to.
const MOST_NAMES: u16 = 190;

impl Config {
    pub fn check(&self, checks: &mut Checks<'_>) {
        checks.at_least("mentions.max_fan_out", self.max_fan_out.into(), 1);
        checks.at_least("mentions.max_tasks", self.max_tasks.into(), 1);
        checks.at_least("mentions.max_repeats", self.max_repeats.into(), 1);
        if self.max_fan_out > MOST_NAMES {
            let message = format!("is {}: a post is not addressed to so many", self.max_fan_out);
            checks.fail("mentions.max_fan_out", message, format!("at most {MOST_NAMES}"));
        }
    }
}
