//! Changing the document.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{Blackboard, Error, Path, history, merge, size};
use crate::domain::{
    StatementError,
    agents::Agent,
    campaigns,
    feed::{self, Kind as FeedKind},
};

/// A change of the document.
#[derive(Debug, Clone, Copy)]
pub enum Change<'a> {
    /// Replaces the document, which has to be at `expected_version`.
    Set { document: &'a Value, expected_version: i64 },
    /// Merges a patch into the document, which has to be at `expected_version` if there is one.
    Patch { patch: &'a Value, expected_version: Option<i64> },
}

/// The author of a change.
#[derive(Debug, Clone, Copy)]
pub enum ChangeAuthor<'a> {
    /// A person or a program, as the audit log names them. May write everywhere.
    Operator { label: &'a str },
    /// An agent in the turn of a task. May write the paths that its file grants.
    Agent { agent: &'a Agent, instance: &'a str, task_id: Uuid, turn: i32 },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = BlackboardWritten)]
pub struct WriteOutcome {
    /// The current blackboard; for an agent, the part that it may read.
    #[serde(flatten)]
    pub blackboard: Blackboard,
    /// False: the document was the same already, and keeps its version.
    pub changed: bool,
}

/// Changes the blackboard of a campaign. All changes pass through here. An agent's permission is checked against the paths that would
/// differ, whether it sets the document or patches it.
///
/// Operators cannot change the blackboard of a closed campaign, because an erasure may already have removed it. Agents can while their
/// turns end: an erasure waits for these turns.
pub async fn change(
    conn: &mut PgConnection,
    campaign_id: Uuid,
    change: &Change<'_>,
    by: &ChangeAuthor<'_>,
    now: DateTime<Utc>,
) -> Result<WriteOutcome, Error> {
    size::check(change.content())?;
    let campaign = campaigns::lock_against_erasure(&mut *conn, campaign_id).await?;
    if matches!(by, ChangeAuthor::Operator { .. }) && campaign == campaigns::Status::Closed {
        return Err(campaigns::Error::Closed(campaign_id).into());
    }
    let before = lock(&mut *conn, campaign_id, now).await?;
    if let Some(expected) = change.expected_version().filter(|it| *it != before.version) {
        return Err(Error::Version { expected, current: before.version });
    }
    let document = change.of(&before.document);
    size::check(&document)?;
    let paths = merge::differences(&before.document, &document);
    by.check(&paths)?;
    let changed = !paths.is_empty();
    let mut after = before;
    if changed {
        after = Blackboard { version: after.version + 1, changed_at: Some(now), document, ..after };
        store(&mut *conn, &after, now).await?;
        history::append(&mut *conn, &after, change, by, &paths, now).await?;
        feed::append(conn, &[event(&after, by, paths.len())], now).await?;
    }
    if let ChangeAuthor::Agent { agent, .. } = by {
        after.keep_readable(agent);
    }
    Ok(WriteOutcome { blackboard: after, changed })
}

impl Change<'_> {
    pub(super) fn content(&self) -> &Value {
        match self {
            Self::Set { document, .. } => document,
            Self::Patch { patch, .. } => patch,
        }
    }

    fn expected_version(&self) -> Option<i64> {
        match self {
            Self::Set { expected_version, .. } => Some(*expected_version),
            Self::Patch { expected_version, .. } => *expected_version,
        }
    }

    fn of(&self, before: &Value) -> Value {
        match self {
            Self::Set { document, .. } => (*document).clone(),
            Self::Patch { patch, .. } => {
                let mut document = before.clone();
                merge::merge(&mut document, patch);
                document
            }
        }
    }
}

impl ChangeAuthor<'_> {
    fn check(&self, paths: &[Path]) -> Result<(), Error> {
        let Self::Agent { agent, .. } = self else { return Ok(()) };
        let grants = &agent.grants.blackboard;
        match paths.iter().find(|path| !grants.may_write(path)) {
            None => Ok(()),
            Some(path) => {
                let granted: Vec<String> = grants.write.iter().map(Path::to_string).collect();
                let granted =
                    if granted.is_empty() { "nothing".to_owned() } else { granted.join(", ") };
                let line = grants.line_to_write(path);
                let (agent, path) = (agent.name.clone(), path.clone());
                Err(Error::NotGranted { agent, path, granted, line })
            }
        }
    }
}

/// Locks the campaign's row, and creates it if it is missing.
async fn lock(
    conn: &mut PgConnection,
    campaign_id: Uuid,
    now: DateTime<Utc>,
) -> Result<Blackboard, StatementError> {
    sqlx::query!(
        "insert into dalsegno.blackboards (campaign_id, version, changed_at, document) values ($1, 0, $2, '{}')
         on conflict (campaign_id) do nothing",
        campaign_id,
        now,
    )
    .execute(&mut *conn)
    .await
    .map_err(StatementError::to("begin a blackboard"))?;
    let row = sqlx::query!(
        "select version, changed_at, document from dalsegno.blackboards where campaign_id = $1 for update",
        campaign_id,
    )
    .fetch_one(conn)
    .await
    .map_err(StatementError::to("lock a blackboard"))?;
    Ok(Blackboard::of_row(campaign_id, row.version, row.changed_at, row.document))
}

async fn store(
    conn: &mut PgConnection,
    after: &Blackboard,
    now: DateTime<Utc>,
) -> Result<(), StatementError> {
    sqlx::query!(
        "update dalsegno.blackboards set version = $2, changed_at = $3, document = $4 where campaign_id = $1",
        after.campaign_id,
        after.version,
        now,
        after.document,
    )
    .execute(conn)
    .await
    .map(drop)
    .map_err(StatementError::to("change a blackboard"))
}

/// Builds the event of a change: version, agent and number of paths, without any content.
fn event(after: &Blackboard, by: &ChangeAuthor<'_>, n_paths: usize) -> feed::New {
    let (task_id, agent) = match by {
        ChangeAuthor::Operator { .. } => (None, None),
        ChangeAuthor::Agent { agent, task_id, .. } => (Some(*task_id), Some(&agent.name)),
    };
    feed::New {
        campaign_id: Some(after.campaign_id),
        task_id,
        session_id: None,
        kind: FeedKind::BlackboardChanged,
        data: json!({ "version": after.version, "agent": agent, "paths": n_paths }),
    }
}
