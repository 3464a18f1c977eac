//! Sessions that are due for removal.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::{PgConnection, PgExecutor};
use uuid::Uuid;

use crate::domain::StatementError;

/// Reason for the removal of a session.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
#[schema(as = CleanupBecause)]
pub enum DueReason {
    /// It was not used within its time to live.
    Expired,
    /// It was closed, and its retention is over.
    Closed,
}

/// A session that is due for removal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueSession {
    pub id: Uuid,
    pub campaign_id: Uuid,
    pub agent: String,
    pub instance: String,
    pub provider: String,
    pub ephemeral: bool,
    pub opened_by_task: Option<Uuid>,
    pub is_running: bool,
    pub expires_at: DateTime<Utc>,
    pub closed_at: Option<DateTime<Utc>>,
}

impl DueSession {
    pub fn is_open(&self) -> bool {
        self.closed_at.is_none()
    }

    pub fn because(&self) -> DueReason {
        if self.is_open() { DueReason::Expired } else { DueReason::Closed }
    }

    /// Returns the time at which the session expired or was closed.
    pub fn since(&self) -> DateTime<Utc> {
        self.closed_at.unwrap_or(self.expires_at)
    }

    /// Returns the task of an ephemeral session, whose end the removal waits for.
    pub fn own_task(&self) -> Option<Uuid> {
        self.opened_by_task.filter(|_| self.ephemeral)
    }
}

/// Lists the sessions that were due at `until`, the oldest first, after the position `after`.
pub async fn due_after(
    executor: impl PgExecutor<'_>,
    because: DueReason,
    until: DateTime<Utc>,
    after: (DateTime<Utc>, Uuid),
    limit: i64,
) -> Result<Vec<DueSession>, StatementError> {
    let failed = StatementError::to("list expired sessions");
    match because {
        DueReason::Expired => sqlx::query_as!(
            DueSession,
            r#"select id, campaign_id, agent_type as agent, instance, provider, ephemeral, opened_by_task,
                      running_turn is not null as "is_running!", expires_at, closed_at
                 from dalsegno.sessions
                where closed_at is null and expires_at <= $1 and (expires_at, id) > ($2, $3)
                order by expires_at, id limit $4"#,
            until,
            after.0,
            after.1,
            limit,
        )
        .fetch_all(executor)
        .await
        .map_err(failed),
        DueReason::Closed => sqlx::query_as!(
            DueSession,
            r#"select id, campaign_id, agent_type as agent, instance, provider, ephemeral, opened_by_task,
                      false as "is_running!", expires_at, closed_at
                 from dalsegno.sessions
                where closed_at is not null and closed_at <= $1 and (closed_at, id) > ($2, $3)
                order by closed_at, id limit $4"#,
            until,
            after.0,
            after.1,
            limit,
        )
        .fetch_all(executor)
        .await
        .map_err(failed),
    }
}

/// Locks those of these sessions that are still due and not in use. Skips locked rows instead of waiting.
pub async fn lock_due(
    conn: &mut PgConnection,
    ids: &[Uuid],
    now: DateTime<Utc>,
    closed_until: DateTime<Utc>,
) -> Result<Vec<DueSession>, StatementError> {
    sqlx::query_as!(
        DueSession,
        r#"select id, campaign_id, agent_type as agent, instance, provider, ephemeral, opened_by_task,
                  false as "is_running!", expires_at, closed_at
             from dalsegno.sessions
            where id = any($1) and running_turn is null
              and case when closed_at is null then expires_at <= $2 else closed_at <= $3 end
            order by id for update skip locked"#,
        ids,
        now,
        closed_until,
    )
    .fetch_all(conn)
    .await
    .map_err(StatementError::to("lock expired sessions"))
}

/// Removes these sessions permanently. Rows that belong to them must be removed before.
pub async fn remove_all(
    executor: impl PgExecutor<'_>,
    session_ids: &[Uuid],
) -> Result<(), StatementError> {
    sqlx::query!("delete from dalsegno.sessions where id = any($1)", session_ids)
        .execute(executor)
        .await
        .map(|_| ())
        .map_err(StatementError::to("remove sessions"))
}

/// Returns the conversations of these sessions that have no open session: campaigns, agents and instances as parallel lists.
pub async fn conversations_without_open(
    executor: impl PgExecutor<'_>,
    sessions: &[DueSession],
) -> Result<(Vec<Uuid>, Vec<String>, Vec<String>), StatementError> {
    let campaigns: Vec<Uuid> = sessions.iter().map(|session| session.campaign_id).collect();
    let agents: Vec<String> = sessions.iter().map(|session| session.agent.clone()).collect();
    let instances: Vec<String> = sessions.iter().map(|session| session.instance.clone()).collect();
    let rows = sqlx::query!(
        r#"select k.campaign_id as "campaign_id!", k.agent as "agent!", k.instance as "instance!"
             from unnest($1::uuid[], $2::text[], $3::text[]) as k (campaign_id, agent, instance)
            where not exists (select from dalsegno.sessions as s
                               where s.campaign_id = k.campaign_id and s.agent_type = k.agent and s.instance = k.instance
                                 and s.closed_at is null and not s.ephemeral)"#,
        &campaigns,
        &agents,
        &instances,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list conversations without a session"))?;
    let mut gone = (Vec::new(), Vec::new(), Vec::new());
    for row in rows {
        gone.0.push(row.campaign_id);
        gone.1.push(row.agent);
        gone.2.push(row.instance);
    }
    Ok(gone)
}

/// Returns those of these campaigns that have a session, open or closed.
pub async fn filter_with_sessions(
    executor: impl PgExecutor<'_>,
    campaigns: &[Uuid],
) -> Result<Vec<Uuid>, StatementError> {
    sqlx::query_scalar!(
        r#"select c.id as "id!" from unnest($1::uuid[]) as c (id)
            where exists (select from dalsegno.sessions as s where s.campaign_id = c.id)"#,
        campaigns,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list campaigns with sessions"))
}

/// Returns those of these sessions that are not stored, one look each in the index of ids.
pub async fn filter_without_row(
    executor: impl PgExecutor<'_>,
    ids: &[Uuid],
) -> Result<Vec<Uuid>, StatementError> {
    sqlx::query_scalar!(
        r#"select known.id as "id!" from unnest($1::uuid[]) as known (id)
            where not exists (select from dalsegno.sessions as s where s.id = known.id offset 0)"#,
        ids,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("find removed sessions"))
}

/// Returns those of these external session ids that are still needed: open sessions, or closed after `closed_since`.
pub async fn needed_folders(
    executor: impl PgExecutor<'_>,
    external_ids: &[String],
    closed_since: DateTime<Utc>,
) -> Result<Vec<String>, StatementError> {
    sqlx::query_scalar!(
        r#"select external_session_id as "id!" from dalsegno.sessions
            where external_session_id = any($1) and (closed_at is null or closed_at > $2)"#,
        external_ids,
        closed_since,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("find the sessions of folders"))
}
