//! Contexts of calls, as they were sent: manifests with the texts and rows that they name.

mod diff;
mod error;
mod side_calls;
mod stored_session;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use uuid::Uuid;

pub use self::{
    diff::{
        ComparedContext, ContextDiff, PartChange, PartDiff, WordChange, WordChangeKind, compare,
        diff_words,
    },
    error::Error,
    side_calls::{StoredSideCall, find_side_call, visit_side_calls},
    stored_session::StoredSession,
};
use super::{
    manifests,
    sessions::{self, SessionRow},
    turns,
};
use crate::context::{
    Manifest,
    manifest::RENDERING,
    replay::{self, AgentTexts, ReplayedCall},
};

/// A call of a turn, as far as it can still be assembled.
#[derive(Debug)]
pub struct StoredContext {
    pub session_id: Uuid,
    pub provider: String,
    pub model: String,
    pub turn: i32,
    /// Number of the call in its turn, from 1.
    pub call: i32,
    /// Number of the turn's stored calls, where the turn was asked for.
    pub calls: i32,
    pub created_at: DateTime<Utc>,
    pub parts: Vec<manifests::Part>,
    pub estimated_tokens: i64,
    pub counted_tokens: Option<i64>,
    pub manifest: Manifest,
    /// The text of each part for people; see [`replay::part_texts`].
    pub texts: Vec<Option<String>>,
    pub replayed: Result<ReplayedCall, replay::Error>,
    /// The envelope of its request as JSON; `None` if none was sent, or it is not stored.
    pub envelope: Option<String>,
}

/// A request to a provider. For Claude it is what the CLI is given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ProviderRequest {
    /// Address; null for a program.
    pub url: Option<String>,
    /// Header with the key, in which `$KEY` stands for the key; null if the request has none.
    #[serde(default)]
    pub key_header: Option<String>,
    /// Further headers that the server requires.
    #[serde(default)]
    pub headers: Vec<String>,
    /// SHA-256 of the body.
    pub sha256: String,
    pub body: String,
}

/// Finds the context of a call. Without `turn`: of the newest turn that has one.
pub async fn find(
    conn: &mut PgConnection,
    session_id: Uuid,
    turn: Option<i32>,
    call: i32,
) -> Result<StoredContext, Error> {
    find_with_agent(conn, session_id, turn, call, None).await
}

/// Finds the context of a call, and assembles it with the texts of another agent file in place of its own.
pub async fn find_with_agent(
    conn: &mut PgConnection,
    session_id: Uuid,
    turn: Option<i32>,
    call: i32,
    agent: Option<&AgentTexts<'_>>,
) -> Result<StoredContext, Error> {
    let session = sessions::read_live(&mut *conn, session_id).await?;
    let turn = match turn {
        Some(turn) => turn,
        None => {
            let newest = manifests::newest_turn(&mut *conn, session_id).await?;
            newest.ok_or(Error::NoneStored(session_id))?
        }
    };
    let stored = manifests::stored_of_turn(&mut *conn, session_id, turn).await?;
    if stored.is_empty() {
        turns::find(&mut *conn, session_id, turn)
            .await?
            .ok_or(turns::Error::Unknown { session_id, number: turn })?;
        return Err(Error::NotStored { session_id, turn });
    }
    let calls = i32::try_from(stored.len()).unwrap_or(i32::MAX);
    let at = call.checked_sub(1).and_then(|at| usize::try_from(at).ok());
    let at = at.and_then(|at| stored.into_iter().nth(at));
    let stored = at.ok_or(Error::UnknownCall { session_id, turn, call, calls })?;
    let manifest = read_manifest(&stored.manifest);
    let mut rows = StoredSession::up_to_turn(&mut *conn, &session, &manifest, turn).await?;
    let found = assemble(conn, &session, stored, manifest, (&mut rows, agent)).await?;
    Ok(StoredContext { calls, ..found })
}

/// Visits the contexts of up to `limit` turns after a turn, in order. Returns the last of these turns if there are more.
pub async fn visit(
    conn: &mut PgConnection,
    session_id: Uuid,
    after_turn: i32,
    limit: i64,
    visit: &mut (dyn FnMut(StoredContext) -> Result<(), Error> + Send),
) -> Result<Option<i32>, Error> {
    let session = sessions::read_live(&mut *conn, session_id).await?;
    let page = manifests::page(&mut *conn, session_id, after_turn, limit).await?;
    let mut known: Option<StoredSession> = None;
    let to_turn = page.stored.last().map_or(after_turn, |stored| stored.turn);
    for stored in page.stored {
        let manifest = read_manifest(&stored.manifest);
        let rows = match known.take().filter(|rows| rows.is_of(&manifest)) {
            Some(rows) => rows,
            None => StoredSession::up_to_turn(&mut *conn, &session, &manifest, to_turn).await?,
        };
        let rows = known.insert(rows);
        visit(assemble(&mut *conn, &session, stored, manifest, (rows, None)).await?)?;
        // A long context takes milliseconds.
        tokio::task::yield_now().await;
    }
    Ok(page.has_more.then_some(to_turn))
}

async fn assemble(
    conn: &mut PgConnection,
    session: &SessionRow,
    stored: manifests::Manifest,
    manifest: Manifest,
    (rows, agent): (&mut StoredSession, Option<&AgentTexts<'_>>),
) -> Result<StoredContext, Error> {
    let texts = stored_session::texts_of(&mut *conn, &manifest).await?;
    let (replayed, part_texts) = rows.assemble(conn, &manifest, &texts, stored.turn, agent).await?;
    let envelope = manifest.request.and_then(|request| texts.get(&request.envelope).cloned());
    Ok(StoredContext {
        session_id: session.id,
        provider: session.provider.clone(),
        model: session.model.clone(),
        turn: stored.turn,
        call: i32::from(stored.call) + 1,
        calls: 1,
        created_at: stored.created_at,
        estimated_tokens: stored.estimated_tokens,
        counted_tokens: stored.real_tokens,
        replayed,
        texts: part_texts,
        parts: stored.parts(),
        manifest,
        envelope,
    })
}

/// Reads a stored manifest. One of another version may not be readable: then it has no parts, and cannot be assembled.
fn read_manifest(stored: &serde_json::Value) -> Manifest {
    let known = serde_json::from_value(stored.clone());
    known.unwrap_or_else(|_| {
        let rendering = stored.get("rendering").and_then(serde_json::Value::as_u64);
        let rendering = rendering.and_then(|n| u32::try_from(n).ok()).unwrap_or(0);
        // A manifest of this version that cannot be read was changed.
        let rendering = if rendering == RENDERING { 0 } else { rendering };
        Manifest { rendering, ..Manifest::new(Vec::new(), 0) }
    })
}
