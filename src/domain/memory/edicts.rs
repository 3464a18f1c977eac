//! Edicts as agents are shown them, in the system part of every call.
//!
//! A turn reads them together with its task (`domain/turn_phases/load.sql`), in the order of their first publication. A new version of
//! one therefore does not move the others. The first ones that fit the limit together are shown in full, the others by name.

use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

/// A valid edict.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ValidEdict {
    pub id: Uuid,
    pub name: String,
    pub author: String,
    /// Trust level: `operator`, `agent` or `imported`.
    pub trust: String,
    /// The text, or None if the edict does not fit.
    pub body: Option<String>,
}

/// Reads edicts from the JSON of the statement. Null means none.
pub fn parse_standing(read: Option<Value>) -> Result<Vec<ValidEdict>, serde_json::Error> {
    read.map_or(Ok(Vec::new()), serde_json::from_value)
}
