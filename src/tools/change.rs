//! A change that a tool makes, in one short transaction that commits only while the run holds its job.
//!
//! Order of locks: first the calls of the same task, one after the other, then the locks of the change, then the run's job. The check of
//! the job comes last and decides whether the change counts.

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use sqlx::{PgConnection, Postgres, Transaction};

use super::{Caller, Refusal, Turn, pages::ToolAnswer, tool::Call};
use crate::{
    domain::{
        audit::{self, Action},
        tool_calls::{self, AnsweredCall, ToolCallKey},
        transaction, turns,
    },
    queue,
};

/// Result of [`Change::begin`].
pub(super) enum BeginResult<'a> {
    /// An earlier attempt of the task has made the change. Holds the answer of that attempt.
    AlreadyMade(ToolAnswer),
    Started(Change<'a>),
}

pub(super) struct Change<'a> {
    call: &'a Call<'a>,
    transaction: Transaction<'static, Postgres>,
    digest: [u8; 32],
}

impl<'a> Change<'a> {
    pub(super) async fn begin(call: &'a Call<'a>) -> Result<BeginResult<'a>, Refusal> {
        let digest = digest(call);
        let mut transaction = call.begin().await?;
        if let Caller::Turn(turn) = call.caller {
            tool_calls::lock(&mut *transaction, turn.task_id).await?;
            let asked = call_to_claim(turn, &digest);
            if let Some(text) = tool_calls::take_over(&mut *transaction, asked).await? {
                fence(&mut transaction, turn).await?;
                transaction::commit(transaction).await?;
                return Ok(BeginResult::AlreadyMade(ToolAnswer { text, ..ToolAnswer::default() }));
            }
        }
        Ok(BeginResult::Started(Self { call, transaction, digest }))
    }

    pub(super) fn conn(&mut self) -> &mut PgConnection {
        &mut self.transaction
    }

    /// Writes the audit line and commits. `ids` tell the audit log what was changed. The answer holds ids and names only, because it is
    /// stored.
    pub(super) async fn commit(self, ids: Value, answer: &Value) -> Result<ToolAnswer, Refusal> {
        let Self { call, mut transaction, digest } = self;
        let (now, said) = (call.now(), ToolAnswer::json(answer)?);
        let mut data = Map::new();
        data.insert("campaign_id".to_owned(), json!(call.caller.campaign_id()));
        data.extend(call.caller.origin().map(|origin| ("by".to_owned(), origin)));
        data.insert("changed".to_owned(), ids);
        let (actor, data) = (call.caller.actor(), Value::Object(data));
        audit::write(&mut *transaction, &actor, Action::ToolCall, call.tool.name, data, now)
            .await?;
        if let Caller::Turn(turn) = call.caller {
            let made = AnsweredCall {
                asked: call_to_claim(turn, &digest),
                tool: call.tool.name,
                answer: &said.text,
            };
            tool_calls::store(&mut *transaction, &made, now).await?;
            fence(&mut transaction, turn).await?;
        }
        transaction::commit(transaction).await?;
        Ok(said)
    }
}

/// Refuses unless the turn still runs and its run still holds the job. No other worker can take the job until the commit.
async fn fence(conn: &mut PgConnection, turn: &Turn) -> Result<(), Refusal> {
    let runs = turns::is_running(&mut *conn, turn.session_id, turn.turn, turn.lease).await?;
    match runs && queue::check_and_lock_lease(conn, turn.job_id, turn.lease).await? {
        true => Ok(()),
        false => Err(Refusal::Over),
    }
}

fn call_to_claim<'a>(turn: &Turn, digest: &'a [u8; 32]) -> ToolCallKey<'a> {
    ToolCallKey {
        task_id: turn.task_id,
        lease: turn.lease,
        session_id: turn.session_id,
        turn: turn.turn,
        digest,
    }
}

/// Hashes the tool and its arguments. Keys of objects are sorted, so equal arguments have one digest.
fn digest(call: &Call<'_>) -> [u8; 32] {
    let mut hasher = Sha256::new();
    hasher.update(call.tool.name.as_bytes());
    hasher.update([0]);
    hasher.update(call.arguments.to_string().as_bytes());
    hasher.finalize().into()
}
