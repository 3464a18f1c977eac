//! What a provider that keeps the conversation itself has to be told about it, and what it gives back.
//!
//! The caller stores all of it: the name before the first call, everything else in the commit of the turn. The provider's
//! own folders are a cache of that, on whichever host the last turn ran. What a failed turn left behind is cut off by
//! the next call, because only what the caller committed is named in it.

use std::{collections::BTreeMap, path::PathBuf};

use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::Usage;
use crate::transcript::Message;

/// The state of a conversation as the last commit left it.
#[derive(Debug, Clone, Default)]
pub struct Conversation {
    /// What the provider calls it. Minted by the caller and stored before the first call; never changed by a provider.
    pub external_id: Uuid,
    /// The last answer that was committed; `None` before the first one, and where the transcript is lost.
    pub head: Option<Uuid>,
    /// The provider's own transcript up to the head. Empty together with `head`: then what was said before comes from
    /// the request's messages.
    pub transcript: Vec<TranscriptFile>,
    /// What the provider has not heard yet, in one text: what came after the head, and the task. `None`: what follows the
    /// last answer in the request's messages.
    pub unheard: Option<String>,
    /// What the provider had counted by then.
    pub meter: Meter,
    /// Which login it began on; it stays there. `None`: the first that is configured.
    pub credential: Option<String>,
    pub grants: Grants,
    /// Start the provider again behind this turn, so that the next one begins sooner.
    pub is_warm: bool,
    /// Nobody goes on with it: nothing of its transcript is given back, and what is on this host goes with the call.
    pub is_temporary: bool,
}

/// One file of the provider's transcript, as the caller holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TranscriptFile {
    /// Relative to the conversation's folder, with `/` between its parts.
    pub name: String,
    pub n_bytes: u64,
    pub sha256: [u8; 32],
    /// Only needed where the provider has lost it: see
    /// [`Provider::lacks_transcript`](super::Provider::lacks_transcript).
    pub bytes: Option<Vec<u8>>,
}

/// What the agent may do besides talking.
#[derive(Debug, Clone, Default)]
pub struct Grants {
    /// Tools that come with the provider. None unless they are named.
    pub built_in: Vec<String>,
    /// Rules for calls that are allowed without asking: `mcp__board__post`, `Bash(ls:*)`.
    pub allowed: Vec<String>,
    /// Rules for calls that never are.
    pub denied: Vec<String>,
    pub permission_mode: PermissionMode,
    /// Tool servers by name, as Claude Code's own files have them below `mcpServers`. May hold secrets.
    pub mcp_servers: BTreeMap<String, Value>,
    /// Those that have to be there: without them the turn does not begin.
    pub required_servers: Vec<String>,
    /// Of the servers, what is good for this turn alone. Nothing that the provider gives back has them in it.
    pub secrets: Vec<SecretString>,
    /// Folders besides its own that it may work in.
    pub folders: Vec<PathBuf>,
    /// Calls of the model that one turn may take.
    pub max_rounds: Option<u32>,
    /// What one turn may cost. Checked by the provider after each of its calls, so it is passed by one call at most.
    pub max_cost_micros: Option<u64>,
}

/// What becomes of calls that no rule names. Nobody is there to be asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PermissionMode {
    /// They are denied.
    #[default]
    DontAsk,
    /// Changes of files are allowed.
    AcceptEdits,
    Plan,
    /// Everything is allowed. Claude Code refuses it to root.
    BypassPermissions,
}

/// How a conversation stands after a turn.
#[derive(Debug, Clone, PartialEq)]
pub struct Continued {
    pub head: Uuid,
    pub began: Began,
    /// The provider had been started before the turn.
    pub was_ahead: bool,
    /// What was said in the turn after its prompt, in order: calls, their results, and the answer at the end.
    pub messages: Vec<Message>,
    /// What the transcript grew by.
    pub grown: Vec<Grown>,
    pub meter: Meter,
    /// One for each answer of the model, in order. The first tells whether the model saw its history; the last, how
    /// full the window is.
    pub calls: Vec<Call>,
    pub flags: Vec<Flag>,
}

/// What the turn began from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Began {
    /// Nothing had been said.
    New,
    /// The provider had the transcript.
    Resumed,
    /// The provider's transcript was missing, damaged or longer than what was committed, and was put right first.
    Restored,
    /// The transcript was lost; a new one was written from the messages.
    Rewritten,
}

/// The bytes that came to a file, `from` on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grown {
    pub name: String,
    /// 0 where the file is new, or is no longer what the caller holds: then `bytes` is all of it.
    pub from: u64,
    pub bytes: Vec<u8>,
    /// Of the whole file.
    pub sha256: [u8; 32],
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// What the ledger deduplicates by.
    pub provider_message_id: String,
    pub model: String,
    pub usage: Usage,
    /// Made by a subagent: it says nothing about the conversation's own context.
    pub is_subagent: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spent {
    pub model: String,
    pub usage: Usage,
    /// By the provider's own price table; `None` where it named none.
    pub cost_micros: Option<u64>,
    pub window_tokens: Option<u32>,
}

/// The provider's running totals by model. Some versions begin at 0 with each process, some go on where the
/// conversation stood; what a turn cost is a difference in either case.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Meter(pub BTreeMap<String, Reading>);

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_creation: u64,
    pub cost_micros: Option<u64>,
}

/// Something about the turn that a person would want to know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Flag {
    /// The provider replaced the history by a summary of its own.
    Compacted,
    /// A tool server was not there, so its tools were not either.
    ServerMissing(String),
    /// A tool was granted that this provider does not have.
    ToolMissing(String),
    /// A call was denied because no rule allows it.
    Denied(String),
    /// Files beside the transcript are not stored, because they would be larger than they may be together.
    NotStored { files: u64, bytes: u64 },
    /// The answer was whole, but the child did not end by itself.
    Hung,
    /// The provider did not say what it cost, or said what cannot be.
    CostUnknown,
}
