//! Callers of the tools: turns and operators.

use std::{borrow::Cow, sync::Arc};

use serde_json::{Value, json};
use uuid::Uuid;

use crate::domain::{
    agents::{Agent, MAIN},
    audit::Actor,
    posts::{self, Viewer},
};

#[derive(Debug, Clone)]
pub enum Caller {
    Turn(Turn),
    Operator(Operator),
}

/// A running turn.
#[derive(Debug, Clone)]
pub struct Turn {
    pub campaign_id: Uuid,
    /// The agent as its file is now, so that its current grants count.
    pub agent: Arc<Agent>,
    pub instance: String,
    pub session_id: Uuid,
    pub task_id: Uuid,
    pub turn: i32,
    pub job_id: i64,
    pub lease: i64,
}

/// A person, or another system, with a key or at the command line.
#[derive(Debug, Clone)]
pub struct Operator {
    /// Campaign that was chosen outside of the tools' arguments.
    pub campaign_id: Uuid,
    pub actor: Actor,
    /// True for a key that is bound to campaigns: data that belongs to no campaign is out of its reach.
    pub is_bound: bool,
}

/// Role of a caller. It selects the schema of each tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    Agent,
    Lead,
    Operator,
}

impl Caller {
    pub fn role(&self) -> Role {
        match self {
            Self::Turn(turn) if turn.is_lead() => Role::Lead,
            Self::Turn(_) => Role::Agent,
            Self::Operator(_) => Role::Operator,
        }
    }

    pub fn campaign_id(&self) -> Uuid {
        match self {
            Self::Turn(turn) => turn.campaign_id,
            Self::Operator(operator) => operator.campaign_id,
        }
    }

    /// Returns the caller as the audit log names it.
    pub(super) fn actor(&self) -> Actor {
        match self {
            Self::Turn(turn) => Actor::agent(&turn.reader()),
            Self::Operator(operator) => operator.actor.clone(),
        }
    }

    /// Returns the name under which the call adds rows.
    pub(super) fn label(&self) -> String {
        match self {
            Self::Turn(turn) => turn.reader().into_owned(),
            Self::Operator(operator) => operator.actor.label(),
        }
    }

    /// Returns the task, session and turn of the call for the audit log.
    pub(super) fn origin(&self) -> Option<Value> {
        match self {
            Self::Turn(turn) => Some(
                json!({ "task_id": turn.task_id, "session_id": turn.session_id, "turn": turn.turn }),
            ),
            Self::Operator(_) => None,
        }
    }

    /// Returns true if the caller's reach is limited to campaigns.
    pub(super) fn is_bound(&self) -> bool {
        matches!(self, Self::Operator(operator) if operator.is_bound)
    }

    /// Returns true if the caller may see and name what belongs to others.
    pub(super) fn sees_all(&self) -> bool {
        self.role() != Role::Agent
    }
}

impl Turn {
    pub fn is_lead(&self) -> bool {
        is_lead(&self.agent, &self.instance)
    }

    /// Returns the name of the agent instance on the board.
    pub fn reader(&self) -> Cow<'_, str> {
        posts::reader(&self.agent.name, &self.instance)
    }

    /// Returns the turn's view of the board. `name` is [`Self::reader`].
    pub(super) fn viewer<'a>(&self, name: &'a str) -> Viewer<'a> {
        match self.is_lead() {
            true => Viewer::All,
            false => Viewer::Reader(name),
        }
    }
}

/// Returns true for the main instance of the lead. Its other instances are ordinary agents.
pub(super) fn is_lead(agent: &Agent, instance: &str) -> bool {
    agent.lead && instance == MAIN
}

impl Role {
    pub const ALL: [Self; 3] = [Self::Agent, Self::Lead, Self::Operator];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Lead => "lead",
            Self::Operator => "operator",
        }
    }
}
