//! The installation: the identity of the service that this database belongs to.

use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::PgExecutor;
use uuid::Uuid;

#[derive(Debug, Clone, Serialize)]
pub struct Installation {
    pub id: Uuid,
    pub created_at: DateTime<Utc>,
    /// Minimum age in days of audit lines that a service may remove without owning the schema.
    pub audit_min_days: i32,
}

/// Reads the only installation, which the first migration makes.
pub async fn get(executor: impl PgExecutor<'_>) -> sqlx::Result<Installation> {
    sqlx::query_as!(
        Installation,
        "select id, created_at, audit_min_days from dalsegno.installation"
    )
    .fetch_one(executor)
    .await
}

/// Formats the SQL that the schema's owner runs so that lines of the audit log are removed after `days`.
pub fn set_audit_min_days(days: u32) -> String {
    format!("as the owner: update dalsegno.installation set audit_min_days = {days}")
}
