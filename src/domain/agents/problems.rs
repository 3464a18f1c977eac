//! The list of problems in the files of agents, skills and nodes.

use std::fmt;

use serde::Serialize;

use crate::domain::{
    class::{Class, Classify, Kind},
    files::{Problem, list_problems},
};

/// Problems in the order of files and lines.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, thiserror::Error)]
pub struct Problems(pub Vec<Problem>);

impl Problems {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Classify for Problems {
    fn class(&self) -> Class {
        Class::of(Kind::Invalid, "bad_agent_files")
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        list_problems(f, "the files of agents, skills and nodes", &self.0)
    }
}
