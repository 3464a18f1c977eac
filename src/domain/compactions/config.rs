//! The section `[compaction]`.

use serde::Deserialize;

use crate::settings::Checks;

/// More would leave too little for summaries and recent turns.
const KEEP_PROMPTS_MAX_PERCENT: u64 = 50;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Percent of the window up to which texts that people wrote stay word for word in a compaction. 0: they are summarised like the rest.
    pub keep_prompts_percent: u64,
}

impl Config {
    pub fn check(&self, checks: &mut Checks<'_>) {
        let percent = self.keep_prompts_percent;
        if percent > KEEP_PROMPTS_MAX_PERCENT {
            let message = format!("is {percent}, but must be from 0 to {KEEP_PROMPTS_MAX_PERCENT}");
            checks.fail("compaction.keep_prompts_percent", message, "20");
        }
    }
}
