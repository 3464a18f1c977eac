//! What agents are told of the edicts, in the system part of every call.
//!
//! A turn reads them with its task (`domain/turns/wanted.sql`), in the order in which they were first published, so that a new version
//! of one does not move the others. The first ones that have room together are told; of the others the names are.

use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

/// An edict that holds.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Standing {
    pub id: Uuid,
    pub name: String,
    pub author: String,
    /// Whether a person vouches for it.
    pub trust: String,
    /// `None`: there is no room for it.
    pub body: Option<String>,
}

/// As the statement gives them; null: there are none.
pub fn standing(read: Option<Value>) -> Result<Vec<Standing>, serde_json::Error> {
    read.map_or(Ok(Vec::new()), serde_json::from_value)
}
