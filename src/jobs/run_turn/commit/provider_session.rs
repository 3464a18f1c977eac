//! The rows for a provider that keeps the conversation itself.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;

use crate::{
    domain::{credentials::PausedCredential, text, transcripts::FileGrowth},
    jobs::run_turn::{begin::open_turn::OpenTurn, error::Error},
    providers::{self, Class, ConversationUpdate, Flag, Scope, TurnStart},
};

/// Converts grown files to rows.
pub fn to_added_files(continued: &ConversationUpdate) -> Vec<FileGrowth<'_>> {
    let files = continued.grown.iter().map(|grown| FileGrowth {
        name: &grown.name,
        from_byte: i64::try_from(grown.from).unwrap_or(i64::MAX),
        bytes: &grown.bytes,
        sha256: &grown.sha256,
    });
    files.collect()
}

/// Returns true if the stored bytes are not part of the files any more.
pub fn is_rewritten(continued: &ConversationUpdate) -> bool {
    matches!(continued.began, TurnStart::New | TurnStart::Rewritten)
}

pub fn meter(continued: &ConversationUpdate) -> Result<Value, Error> {
    serde_json::to_value(&continued.meter).map_err(Error::undone)
}

/// Returns the credential of the call, if it hit its limit and has to be paused.
pub fn pause_credential(
    opened: &OpenTurn,
    error: &providers::Error,
    why: &str,
    now: DateTime<Utc>,
) -> Option<PausedCredential> {
    let Class::Snooze { after, scope: Scope::Credential } = error.class else { return None };
    let name = opened.bound.as_ref()?.credential.clone();
    let until = now + TimeDelta::from_std(after).unwrap_or(TimeDelta::MAX);
    Some(PausedCredential { name, until, why: why.to_owned() })
}

/// Names a flag of a turn.
pub fn flag(flag: &Flag) -> String {
    text::make_storable(match flag {
        Flag::Compacted => "compacted_by_provider".to_owned(),
        Flag::ServerMissing(server) => format!("tool_server_missing: {server}"),
        Flag::ToolMissing(tool) => format!("tool_missing: {tool}"),
        Flag::Denied(tool) => format!("tool_denied: {tool}"),
        Flag::NotStored { files, bytes } => {
            format!("side_files_not_stored: {files} with {bytes} bytes")
        }
        Flag::Hung => "did_not_end_by_itself".to_owned(),
        Flag::CostUnknown => "cost_unknown".to_owned(),
    })
}
