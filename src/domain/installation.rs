//! The installation: which service this database belongs to.

use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::PgExecutor;
use uuid::Uuid;

#[derive(Debug, Clone, Serialize)]
pub struct Installation {
    pub id: Uuid,
    pub created_at: DateTime<Utc>,
    /// A service that does not own the schema removes no younger lines of the audit log.
    pub audit_min_days: i32,
}

/// The one installation. The first migration makes it.
pub async fn get(executor: impl PgExecutor<'_>) -> sqlx::Result<Installation> {
    sqlx::query_as!(
        Installation,
        "select id, created_at, audit_min_days from dalsegno.installation"
    )
    .fetch_one(executor)
    .await
}

/// What the owner runs in SQL, so that lines of the audit log are kept for no longer than that.
pub fn set_audit_min_days(days: u32) -> String {
    format!("as the owner: update dalsegno.installation set audit_min_days = {days}")
}
