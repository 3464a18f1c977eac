//! Tasks of schedules: the job that adds one.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::New;
use crate::{
    domain::{
        agents::SessionMode as Mode,
        agents::{Agent, MAIN},
    },
    queue::{Job, Policy},
};

/// The task that is added each time. The agent is looked up at that time, because its file may have changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AddTask {
    pub campaign_id: Uuid,
    /// Name of the agent's file. `curator_2` and `curator/2` mean instance 2 of `curator`.
    #[schema(pattern = "^[a-z0-9][a-z0-9_-]{0,63}(/[a-z0-9][a-z0-9_-]{0,63})?$")]
    pub agent: String,
    #[serde(default = "main")]
    #[schema(pattern = "^[a-z0-9][a-z0-9_-]{0,63}$")]
    pub instance: String,
    #[schema(min_length = 1)]
    pub prompt: String,
    /// Session mode: `continue` the conversation, begin `fresh`, or `none` for a session of its own. The default comes from the agent's
    /// file.
    #[serde(default)]
    pub session: Option<Mode>,
}

impl Job for AddTask {
    const KIND: &'static str = "add_task";

    fn policy() -> Policy {
        Policy { queue: "upkeep", ..Policy::default() }
    }
}

impl AddTask {
    /// Builds the task, for an agent of this name.
    pub fn to_new_task<'a>(&'a self, agent: &'a Agent) -> New<'a> {
        New {
            instance: &self.instance,
            session_mode: self.session,
            // Needs no key, because its job ends in the transaction that adds the task.
            idempotency_key: None,
            ..New::for_agent(self.campaign_id, agent, &self.prompt)
        }
    }
}

pub(super) fn main() -> String {
    MAIN.to_owned()
}
