//! Compactions as a context uses them.

use sqlx::PgExecutor;
use uuid::Uuid;

use super::{Error, get};
use crate::context::compaction::Compaction;

/// Reads an accepted compaction.
pub async fn read(
    executor: impl PgExecutor<'_>,
    session_id: Uuid,
    generation: i32,
) -> Result<Compaction, Error> {
    let unknown = || Error::Unknown { session_id, generation };
    let row = get(executor, session_id, generation).await?.ok_or_else(unknown)?;
    let invalid = |what| move |source| Error::Invalid { session_id, generation, what, source };
    let pins = serde_json::from_value(row.pins).map_err(invalid("pins"))?;
    let flow = row.flow.map(serde_json::from_value).transpose();
    let flow = flow.map_err(invalid("current node"))?;
    let prompts = row.prompts.map(serde_json::from_value).transpose();
    let prompts = prompts.map_err(invalid("kept prompts"))?;
    Ok(Compaction {
        prompts: prompts.unwrap_or_default(),
        flow,
        generation: unsigned(row.generation),
        parent: unsigned(row.parent),
        from_seq: row.from_seq,
        to_seq: row.to_seq,
        summary: row.summary.ok_or_else(unknown)?,
        pins,
        tokens_before: u64::try_from(row.tokens_before).unwrap_or(0),
        tokens_after: row.tokens_after.and_then(|tokens| u64::try_from(tokens).ok()).unwrap_or(0),
    })
}

fn unsigned(number: i32) -> u32 {
    u32::try_from(number).unwrap_or(0)
}
