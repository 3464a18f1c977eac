//! Files of erased campaigns on the disks of hosts.

use chrono::{DateTime, Utc};
use sqlx::PgExecutor;
use uuid::Uuid;

use crate::domain::StatementError;

/// An erasure for which a host still has to check its folders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingErasure {
    pub erasure_id: Uuid,
    pub campaign_id: Uuid,
    pub ended_at: DateTime<Utc>,
    /// Names of folders that sessions and reruns had.
    pub folders: Vec<String>,
    /// Sessions, and the reruns of their turns.
    pub sessions: Vec<Uuid>,
}

/// The position of an erasure in the list of a host.
pub type ErasurePosition = (DateTime<Utc>, Uuid);

impl PendingErasure {
    pub fn position(&self) -> ErasurePosition {
        (self.ended_at, self.erasure_id)
    }
}

/// Lists up to ten erasures that a host still has to handle, the oldest first, beginning behind `after`. Erasures older than a year are left
/// out, because a host that returns later counts as a new one.
pub async fn list_pending_on_host(
    executor: impl PgExecutor<'_>,
    host: &str,
    after: Option<ErasurePosition>,
    now: DateTime<Utc>,
) -> Result<Vec<PendingErasure>, StatementError> {
    let (after, after_id) = after.unzip();
    sqlx::query_as!(
        PendingErasure,
        r#"select e.id as erasure_id, e.campaign_id, e.ended_at as "ended_at!",
                  array(select s.external_session_id from dalsegno.erased_sessions as s
                         where s.erasure_id = e.id and s.external_session_id is not null) as "folders!",
                  array(select s.session_id from dalsegno.erased_sessions as s where s.erasure_id = e.id) as "sessions!"
             from dalsegno.erasures as e
            where e.ended_at > $2::timestamptz - interval '1 year'
              and not exists (select from dalsegno.erasure_hosts as h where h.erasure_id = e.id and h.host = $1)
              and ($3::timestamptz is null or (e.ended_at, e.id) > ($3, $4::uuid))
            order by e.ended_at, e.id limit 10"#,
        host,
        now,
        after,
        after_id,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list erased campaigns with files on a host"))
}

/// Records that a host holds no files of an erased campaign any more.
pub async fn record_swept(
    executor: impl PgExecutor<'_>,
    erasure_id: Uuid,
    host: &str,
    (folders, bytes): (i64, i64),
    now: DateTime<Utc>,
) -> Result<(), StatementError> {
    sqlx::query!(
        "insert into dalsegno.erasure_hosts (erasure_id, host, swept_at, folders, bytes)
         values ($1, $2, $3, $4, $5) on conflict do nothing",
        erasure_id,
        host,
        now,
        folders,
        bytes,
    )
    .execute(executor)
    .await
    .map(drop)
    .map_err(StatementError::to("record that a host has removed the files of an erased campaign"))
}
