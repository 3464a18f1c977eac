//! The history of a blackboard: its changes and earlier versions.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sqlx::{PgConnection, PgExecutor};
use uuid::Uuid;

use super::{Blackboard, Change, ChangeAuthor, Error, Path, get, merge};
use crate::domain::StatementError;

/// A change of a blackboard.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = BlackboardChange)]
pub struct Entry {
    /// The version that the change made.
    pub version: i64,
    pub changed_at: DateTime<Utc>,
    pub kind: Kind,
    /// An operator as in the audit log, or an agent as `agent/instance`.
    pub actor: String,
    pub agent: Option<String>,
    pub task_id: Option<Uuid>,
    pub turn: Option<i32>,
    /// Changed paths as JSON Pointers; at most 100.
    pub paths: Vec<String>,
    /// Size of the patch, or of the document that was set.
    pub bytes: i32,
    /// The patch; null if it is long: then compare the versions before and after it.
    #[schema(value_type = Option<Object>)]
    pub patch: Option<Value>,
}

#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, sqlx::Type, utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
#[sqlx(type_name = "text", rename_all = "snake_case")]
#[schema(as = BlackboardChangeKind)]
pub enum Kind {
    Set,
    Patch,
}

/// Each version that this number divides is stored whole, which limits the patches to merge for an earlier version.
const SNAPSHOT_EVERY: i64 = 32;
/// Maximum number of changed paths that are stored with a change.
const MAX_PATHS: usize = 100;
/// Maximum size of a patch that a list shows: a list of two hundred changes has to stay readable.
const SHOWN_MAX_BYTES: i32 = 4096;

/// Reads an earlier version of the document.
pub async fn at_version(
    conn: &mut PgConnection,
    campaign_id: Uuid,
    version: i64,
) -> Result<Blackboard, Error> {
    let rows = sqlx::query!(
        "select version, changed_at, patch, document from dalsegno.blackboard_changes
          where campaign_id = $1 and version <= $2
            -- Versions before the first stored document are patches of the empty document.
            and version >= coalesce((select max(version) from dalsegno.blackboard_changes
                                      where campaign_id = $1 and version <= $2 and document is not null), 0)
          order by version",
        campaign_id,
        version,
    )
    .fetch_all(&mut *conn)
    .await
    .map_err(StatementError::to("read an earlier version of a blackboard"))?;
    let mut read = Blackboard::empty(campaign_id);
    for row in rows {
        read = Blackboard { version: row.version, changed_at: Some(row.changed_at), ..read };
        match (row.document, row.patch) {
            (Some(document), _) => read.document = document,
            (None, patch) => merge::merge(&mut read.document, &patch.unwrap_or_default()),
        }
    }
    if read.version == version {
        return Ok(read);
    }
    let current = get(conn, campaign_id).await?.version;
    Err(Error::NoVersion { version, current })
}

/// Lists changes before the version `before`, the newest first.
pub async fn history(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
    before: Option<i64>,
    limit: i64,
) -> Result<Vec<Entry>, StatementError> {
    sqlx::query_as!(
        Entry,
        r#"select version, changed_at, kind as "kind: Kind", actor, agent, task_id, turn, paths, bytes,
                  case when bytes <= $4 then patch end as patch
             from dalsegno.blackboard_changes where campaign_id = $1 and version < coalesce($2, 9223372036854775807)
            order by version desc limit $3"#,
        campaign_id,
        before,
        limit,
        SHOWN_MAX_BYTES,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list the changes of a blackboard"))
}

pub(super) async fn append(
    conn: &mut PgConnection,
    after: &Blackboard,
    change: &Change<'_>,
    by: &ChangeAuthor<'_>,
    paths: &[Path],
    now: DateTime<Utc>,
) -> Result<(), StatementError> {
    let (kind, patch) = match change {
        Change::Set { .. } => (Kind::Set, None),
        Change::Patch { patch, .. } => (Kind::Patch, Some(*patch)),
    };
    let (actor, agent, task_id, turn) = match by {
        ChangeAuthor::Operator { label } => ((*label).to_owned(), None, None, None),
        ChangeAuthor::Agent { agent, instance, task_id, turn } => {
            let actor = format!("{}/{instance}", agent.name);
            (actor, Some(agent.name.as_str()), Some(*task_id), Some(*turn))
        }
    };
    let paths: Vec<String> = paths.iter().take(MAX_PATHS).map(Path::to_string).collect();
    let is_kept_whole = kind == Kind::Set || after.version % SNAPSHOT_EVERY == 0;
    sqlx::query!(
        "insert into dalsegno.blackboard_changes
                (campaign_id, version, changed_at, task_id, turn, bytes, kind, actor, agent, paths, patch, document)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
        after.campaign_id,
        after.version,
        now,
        task_id,
        turn,
        i32::try_from(change.content().to_string().len()).unwrap_or(i32::MAX),
        kind as Kind,
        actor,
        agent,
        &paths,
        patch,
        is_kept_whole.then_some(&after.document),
    )
    .execute(conn)
    .await
    .map(drop)
    .map_err(StatementError::to("record a change of a blackboard"))
}

/// Removes the document and at most `limit` of its oldest changes. Returns the number of removed changes.
pub async fn remove_some(
    conn: &mut PgConnection,
    campaign_id: Uuid,
    limit: i64,
) -> Result<i64, StatementError> {
    sqlx::query!("delete from dalsegno.blackboards where campaign_id = $1", campaign_id)
        .execute(&mut *conn)
        .await
        .map_err(StatementError::to("remove a blackboard"))?;
    sqlx::query_scalar!(
        r#"select dalsegno.remove_blackboard_changes($1, $2) as "n!""#,
        campaign_id,
        limit,
    )
    .fetch_one(conn)
    .await
    .map_err(StatementError::to("remove the changes of a blackboard"))
}
