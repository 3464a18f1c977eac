//! The blackboard of a campaign: one JSON document that its people and agents write together.
//!
//! Invariants:
//! - Each change makes the next version, and any version can be read again.
//! - Setting the document requires the version that it replaces. Patches are merged (RFC 7396) into the current version, so that patches of
//!   different paths keep each other's changes.
//! - An agent reads and changes only the paths that its file grants, compared key by key.
//!
//! Race: two callers change it at once. Both lock its row, so the second one sees what the first has written. A patch is merged into that.
//! A change that expects an older version is refused with the current one.

mod error;
mod history;
mod merge;
mod size;
mod texts;
mod write;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sqlx::PgExecutor;
use uuid::Uuid;

pub use self::{
    error::Error,
    history::{Entry, Kind, at_version, history, remove_some},
    size::{LIMITS, MAX_BYTES},
    texts::find_texts,
    write::{Change, ChangeAuthor, WriteOutcome, change},
};
pub use super::agents::{BlackboardGrants as Grants, BlackboardPath as Path, NoPath};
use super::{StatementError, agents::Agent};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Blackboard {
    pub campaign_id: Uuid,
    /// Number of changes. 0: the blackboard is still empty.
    pub version: i64,
    pub changed_at: Option<DateTime<Utc>>,
    #[schema(value_type = Object)]
    pub document: Value,
}

impl Blackboard {
    /// The blackboard before its first change.
    fn empty(campaign_id: Uuid) -> Self {
        Self { campaign_id, version: 0, changed_at: None, document: Value::Object(Map::new()) }
    }

    /// Builds the blackboard from its row. A writer that changed nothing may have left a row of version 0.
    fn of_row(campaign_id: Uuid, version: i64, changed_at: DateTime<Utc>, document: Value) -> Self {
        let changed_at = (version > 0).then_some(changed_at);
        Self { campaign_id, version, changed_at, document }
    }
}

/// Reads the current version.
pub async fn get(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
) -> Result<Blackboard, StatementError> {
    let found = sqlx::query!(
        "select version, changed_at, document from dalsegno.blackboards where campaign_id = $1",
        campaign_id,
    )
    .fetch_optional(executor)
    .await
    .map_err(StatementError::to("read a blackboard"))?;
    Ok(found.map_or_else(
        || Blackboard::empty(campaign_id),
        |row| Blackboard::of_row(campaign_id, row.version, row.changed_at, row.document),
    ))
}

/// Reads the current version, reduced to what the agent may read.
pub async fn get_for(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
    agent: &Agent,
) -> Result<Blackboard, StatementError> {
    let mut blackboard = get(executor, campaign_id).await?;
    blackboard.keep_readable(agent);
    Ok(blackboard)
}

impl Blackboard {
    fn keep_readable(&mut self, agent: &Agent) {
        let shown = agent.grants.blackboard.readable_parts(&self.document);
        self.document = shown.unwrap_or_else(|| Value::Object(Map::new()));
    }
}
