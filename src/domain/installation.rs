//! The installation: which service this database belongs to.

use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::PgExecutor;
use uuid::Uuid;

#[derive(Debug, Clone, Serialize)]
pub struct Installation {
    pub id: Uuid,
    pub created_at: DateTime<Utc>,
}

/// The one installation. The first migration makes it.
pub async fn get(executor: impl PgExecutor<'_>) -> sqlx::Result<Installation> {
    sqlx::query_as!(Installation, "select id, created_at from dalsegno.installation")
        .fetch_one(executor)
        .await
}
