//! Contexts of calls beside turns: summaries and facts.

use std::collections::HashMap;

use serde_json::Value;
use sqlx::PgConnection;
use uuid::Uuid;

use super::Error;
use crate::{
    context::{
        Digest,
        prompt_manifest::{self, PromptManifest},
        replay::ReplayedCall,
    },
    domain::{
        StatementError, context_texts, messages,
        usage::{self, Purpose, SideCall},
    },
};

/// A call beside turns, as far as it can still be assembled.
#[derive(Debug)]
pub struct StoredSideCall {
    pub call: SideCall,
    pub session_id: Uuid,
    /// The turn that it is charged to.
    pub turn: i32,
    pub manifest: PromptManifest,
    pub replayed: Result<ReplayedCall, prompt_manifest::Error>,
    /// The envelope of its request as JSON; `None` if none was sent, or it is not stored.
    pub envelope: Option<String>,
}

/// Finds the context of a call by the number of its row in the ledger.
pub async fn find_side_call(
    conn: &mut PgConnection,
    ledger_id: i64,
) -> Result<StoredSideCall, Error> {
    let call = usage::find_side_call(&mut *conn, ledger_id).await?;
    let call = call.ok_or(Error::UnknownInLedger(ledger_id))?;
    match (&call, call.session_id.zip(call.turn)) {
        (SideCall { purpose: Purpose::Turn, .. }, Some((session_id, turn))) => {
            Err(Error::OfTurn { ledger_id, session_id, turn })
        }
        (SideCall { purpose: Purpose::Rerun, .. }, Some((session_id, turn))) => {
            Err(Error::OfRerun { ledger_id, session_id, turn })
        }
        (SideCall { manifest: Some(_), .. }, Some(_)) => Ok(assemble(conn, call).await?),
        _ => Err(Error::SideCallNotStored(ledger_id)),
    }
}

/// Visits the calls beside turns that are charged to turns after `after_turn`, up to `to_turn`, in order.
pub async fn visit_side_calls(
    conn: &mut PgConnection,
    session_id: Uuid,
    (after_turn, to_turn): (i32, Option<i32>),
    visit: &mut (dyn FnMut(StoredSideCall) -> Result<(), Error> + Send),
) -> Result<(), Error> {
    for call in usage::side_calls(&mut *conn, session_id, after_turn, to_turn).await? {
        visit(assemble(&mut *conn, call).await?)?;
        tokio::task::yield_now().await;
    }
    Ok(())
}

async fn assemble(
    conn: &mut PgConnection,
    mut call: SideCall,
) -> Result<StoredSideCall, StatementError> {
    let manifest = read_manifest(call.manifest.take());
    let session_id = call.session_id.unwrap_or_default();
    let envelope = manifest.request.map(|request| request.envelope);
    let digests: Vec<Digest> = manifest.digests().into_iter().chain(envelope).collect();
    let mut texts = context_texts::find(&mut *conn, &digests).await?;
    let quoted = messages::list_by_ids(conn, session_id, &manifest.message_ids()).await?;
    let quoted: HashMap<Uuid, String> =
        quoted.into_iter().map(|stored| (stored.id, stored.message.text)).collect();
    Ok(StoredSideCall {
        session_id,
        turn: call.turn.unwrap_or_default(),
        replayed: manifest.replay(&texts, &quoted),
        envelope: envelope.and_then(|envelope| texts.remove(&envelope)),
        manifest,
        call,
    })
}

/// Reads a stored record. One of another version may not be readable: it is empty, and cannot be assembled.
fn read_manifest(stored: Option<Value>) -> PromptManifest {
    let stored = stored.unwrap_or_default();
    let rendering = stored.get("rendering").and_then(Value::as_u64);
    let rendering = rendering.and_then(|n| u32::try_from(n).ok()).unwrap_or(0);
    serde_json::from_value(stored).unwrap_or_else(|_| {
        // A record of this version that cannot be read was changed.
        let rendering = if rendering == prompt_manifest::RENDERING { 0 } else { rendering };
        PromptManifest { rendering, ..PromptManifest::new("", "", &[], 0).0 }
    })
}
