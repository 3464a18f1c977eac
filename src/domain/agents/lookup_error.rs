//! Errors for names of agents and nodes that are unknown, or whose files have problems.

use crate::domain::class::{Class, Classify, Kind};

/// Errors of looking up an agent or a node by its name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LookupError {
    #[error("there is no {} `{name}`: {advice}", noun.as_str())]
    Unknown {
        noun: FileKind,
        name: String,
        /// The closest name, or all existing names.
        advice: String,
    },
    #[error(
        "{} `{name}` is refused until its file is fixed: {problem}; `dalsegno agent check` lists every problem",
        noun.as_str()
    )]
    Broken { noun: FileKind, name: String, problem: String },
}

impl LookupError {
    pub const UNKNOWN_AGENT: Class = Class::of(Kind::NotFound, "unknown_agent");
    pub const BROKEN_AGENT: Class = Class::of(Kind::Conflict, "broken_agent");
    pub const UNKNOWN_NODE: Class = Class::of(Kind::NotFound, "unknown_node");
    pub const BROKEN_NODE: Class = Class::of(Kind::Conflict, "broken_node");

    pub fn noun(&self) -> FileKind {
        match self {
            Self::Unknown { noun, .. } | Self::Broken { noun, .. } => *noun,
        }
    }
}

impl Classify for LookupError {
    fn class(&self) -> Class {
        use FileKind::{Agent, Node};
        match self {
            Self::Unknown { noun: Agent, .. } => Self::UNKNOWN_AGENT,
            Self::Unknown { noun: Node, .. } => Self::UNKNOWN_NODE,
            Self::Broken { noun: Agent, .. } => Self::BROKEN_AGENT,
            Self::Broken { noun: Node, .. } => Self::BROKEN_NODE,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    Agent,
    Node,
}

impl FileKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Node => "node",
        }
    }
}
