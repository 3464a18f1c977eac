//! The audit log.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{Call, Listing, Operation, Refusal, Spec, page_limit};
use crate::domain::{
    audit::{self, Entry, Filter},
    keys::Scope,
    timestamp,
};

/// Lists the audit log, the newest first.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ListAudit {
    /// A name, a kind, or the id of a key.
    pub actor: Option<String>,
    /// `task.cancel`, or `task` for everything that was done to tasks.
    pub action: Option<String>,
    pub subject: Option<String>,
    /// Only lines that were written at this moment or later.
    #[serde(default, deserialize_with = "timestamp::optional")]
    pub created_after: Option<DateTime<Utc>>,
    /// Only lines that were written earlier.
    #[serde(default, deserialize_with = "timestamp::optional")]
    pub created_before: Option<DateTime<Utc>>,
    pub cursor: Option<i64>,
    #[schema(minimum = 1, maximum = 200)]
    pub limit: Option<i64>,
}

impl Operation for ListAudit {
    const SPEC: Spec =
        Spec::read("list_audit", "/v1/audit", "audit ls").tag("keys").needs(&[Scope::Admin]);
    type Output = Listing<Entry>;

    async fn run(self, call: &Call) -> Result<Listing<Entry>, Refusal> {
        let limit = page_limit(self.limit)?;
        let filter = Filter {
            actor: self.actor.as_deref(),
            action: self.action.as_deref(),
            subject: self.subject.as_deref(),
            created_after: self.created_after,
            created_before: self.created_before,
            before: self.cursor,
            limit: limit + 1,
        };
        let entries = audit::list(&call.pool, filter).await?;
        Ok(Listing::of(entries, limit, |entry| entry.id))
    }
}
