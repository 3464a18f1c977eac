//! Changing the document.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{Blackboard, Error, Path, history, merge, size};
use crate::domain::{
    Failed,
    agents::Agent,
    campaigns,
    feed::{self, Kind as FeedKind},
};

/// What is to become of the document.
#[derive(Debug, Clone, Copy)]
pub enum Change<'a> {
    /// This instead of what `expected_version` says.
    Set { document: &'a Value, expected_version: i64 },
    /// Merged into what there is, or into that version and no other.
    Patch { patch: &'a Value, expected_version: Option<i64> },
}

/// Who changes it.
#[derive(Debug, Clone, Copy)]
pub enum By<'a> {
    /// As the audit log names them. May write everywhere.
    Operator { label: &'a str },
    /// In the turn of a task. May write what its file grants.
    Agent { agent: &'a Agent, instance: &'a str, task_id: Uuid, turn: i32 },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = BlackboardWritten)]
pub struct Written {
    /// As it is now; an agent is shown what it may read.
    #[serde(flatten)]
    pub blackboard: Blackboard,
    /// False: it said so already, and stays at its version.
    pub changed: bool,
}

/// Changes the blackboard of a campaign. The one way for everybody: what an agent may do is decided here, by the places
/// that would be different, and not by the form of the change.
///
/// Operators change nothing in a closed campaign: an erasure that has begun must not be written behind. Agents do while their
/// turns end, which an erasure waits for.
pub async fn change(
    conn: &mut PgConnection,
    campaign_id: Uuid,
    change: &Change<'_>,
    by: &By<'_>,
    now: DateTime<Utc>,
) -> Result<Written, Error> {
    size::check(change.content())?;
    let campaign = campaigns::hold(&mut *conn, campaign_id).await?;
    if matches!(by, By::Operator { .. }) && campaign == campaigns::Status::Closed {
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
    if let By::Agent { agent, .. } = by {
        after.keep_readable(agent);
    }
    Ok(Written { blackboard: after, changed })
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

impl By<'_> {
    fn check(&self, paths: &[Path]) -> Result<(), Error> {
        let Self::Agent { agent, .. } = self else { return Ok(()) };
        let grants = &agent.grants.blackboard;
        match paths.iter().find(|path| !grants.may_write(path)) {
            None => Ok(()),
            Some(path) => {
                let granted: Vec<String> = grants.write.iter().map(Path::to_string).collect();
                let granted =
                    if granted.is_empty() { "nothing".to_owned() } else { granted.join(", ") };
                Err(Error::NotGranted { agent: agent.name.clone(), path: path.clone(), granted })
            }
        }
    }
}

/// The row of the campaign, locked. Whoever comes first makes it.
async fn lock(
    conn: &mut PgConnection,
    campaign_id: Uuid,
    now: DateTime<Utc>,
) -> Result<Blackboard, Failed> {
    sqlx::query!(
        "insert into dalsegno.blackboards (campaign_id, version, changed_at, document) values ($1, 0, $2, '{}')
         on conflict (campaign_id) do nothing",
        campaign_id,
        now,
    )
    .execute(&mut *conn)
    .await
    .map_err(Failed::to("begin a blackboard"))?;
    let row = sqlx::query!(
        "select version, changed_at, document from dalsegno.blackboards where campaign_id = $1 for update",
        campaign_id,
    )
    .fetch_one(conn)
    .await
    .map_err(Failed::to("lock a blackboard"))?;
    Ok(Blackboard::of_row(campaign_id, row.version, row.changed_at, row.document))
}

async fn store(
    conn: &mut PgConnection,
    after: &Blackboard,
    now: DateTime<Utc>,
) -> Result<(), Failed> {
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
    .map_err(Failed::to("change a blackboard"))
}

/// Says that something is different and who did it, and nothing of what it says.
fn event(after: &Blackboard, by: &By<'_>, n_paths: usize) -> feed::New {
    let (task_id, agent) = match by {
        By::Operator { .. } => (None, None),
        By::Agent { agent, task_id, .. } => (Some(*task_id), Some(&agent.name)),
    };
    feed::New {
        campaign_id: Some(after.campaign_id),
        task_id,
        session_id: None,
        kind: FeedKind::BlackboardChanged,
        data: json!({ "version": after.version, "agent": agent, "paths": n_paths }),
    }
}
