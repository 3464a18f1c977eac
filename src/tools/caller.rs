//! Who calls.

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

/// A turn that runs.
#[derive(Debug, Clone)]
pub struct Turn {
    pub campaign_id: Uuid,
    /// As its file is now: what it grants counts.
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
    /// The one that was chosen beside the tools.
    pub campaign_id: Uuid,
    pub actor: Actor,
    /// With a key that is bound to campaigns: what belongs to none of them is out of reach.
    pub is_bound: bool,
}

/// What the schema of a tool goes by.
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

    /// As the audit log names them.
    pub(super) fn actor(&self) -> Actor {
        match self {
            Self::Turn(turn) => Actor::agent(&turn.reader()),
            Self::Operator(operator) => operator.actor.clone(),
        }
    }

    /// Who has added what a call adds.
    pub(super) fn label(&self) -> String {
        match self {
            Self::Turn(turn) => turn.reader().into_owned(),
            Self::Operator(operator) => operator.actor.label(),
        }
    }

    /// Where in a conversation the call comes from, for the audit log.
    pub(super) fn origin(&self) -> Option<Value> {
        match self {
            Self::Turn(turn) => Some(
                json!({ "task_id": turn.task_id, "session_id": turn.session_id, "turn": turn.turn }),
            ),
            Self::Operator(_) => None,
        }
    }

    /// Whether it reaches nothing beyond campaigns.
    pub(super) fn is_bound(&self) -> bool {
        matches!(self, Self::Operator(operator) if operator.is_bound)
    }

    /// Whether it sees and names what is not its own.
    pub(super) fn sees_all(&self) -> bool {
        self.role() != Role::Agent
    }
}

impl Turn {
    pub fn is_lead(&self) -> bool {
        is_lead(&self.agent, &self.instance)
    }

    /// Its name on the board.
    pub fn reader(&self) -> Cow<'_, str> {
        posts::reader(&self.agent.name, &self.instance)
    }

    /// What it sees of the board. `name` is [`Self::reader`].
    pub(super) fn viewer<'a>(&self, name: &'a str) -> Viewer<'a> {
        match self.is_lead() {
            true => Viewer::All,
            false => Viewer::Reader(name),
        }
    }
}

/// Another instance of the lead is one of the others.
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
