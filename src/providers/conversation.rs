//! State of a conversation that the provider keeps itself: what a call is given, and what it gives back.
//!
//! The caller stores all of it: the external id before the first call, everything else in the commit of the turn. The provider's own
//! folders are a cache of that, on the host of the last turn. A call names only what was committed, so it cuts off what a failed turn has
//! left.

use std::{collections::BTreeMap, path::PathBuf};

use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::{OutputLimits, Usage};
use crate::transcript::Message;

/// The state of a conversation as the last commit left it.
#[derive(Debug, Clone, Default)]
pub struct Conversation {
    /// Id of the conversation at the provider. The caller makes it and stores it before the first call; a provider never changes it.
    pub external_id: Uuid,
    /// The last answer that was committed. `None` before the first one, and if the transcript is lost.
    pub head: Option<Uuid>,
    /// The provider's own transcript up to the head. Empty if `head` is `None`: then the history comes from the request's messages.
    pub transcript: Vec<TranscriptFile>,
    /// Text that the provider has not been sent yet: everything after the head, and the task. `None`: the messages after the last answer in
    /// the request.
    pub unheard: Option<String>,
    /// The provider's totals at the head.
    pub meter: Meter,
    /// Name of the credential on which the conversation began; it stays there. `None`: the first that is configured.
    pub credential: Option<String>,
    pub grants: Grants,
    /// True to start the provider again after this turn, so that the next one begins sooner.
    pub is_warm: bool,
    /// True if no later call continues it: its transcript is not given back, and its files on this host go with the call.
    pub is_temporary: bool,
}

/// One file of the provider's transcript, as the caller holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TranscriptFile {
    /// Path relative to the conversation's folder, with `/` between its parts.
    pub name: String,
    pub n_bytes: u64,
    pub sha256: [u8; 32],
    /// Content. Only needed if the provider has lost it: see [`Provider::lacks_transcript`](super::Provider::lacks_transcript).
    pub bytes: Option<Vec<u8>>,
}

/// Permissions of the agent besides talking.
#[derive(Debug, Clone, Default)]
pub struct Grants {
    /// Tools of the provider itself. None unless they are named.
    pub built_in: Vec<String>,
    /// Rules for calls that are allowed without asking: `mcp__board__post`, `Bash(ls:*)`.
    pub allowed: Vec<String>,
    /// Rules for calls that are always denied.
    pub denied: Vec<String>,
    pub permission_mode: PermissionMode,
    /// Tool servers by name, as Claude Code's own files have them below `mcpServers`. May hold secrets.
    pub mcp_servers: BTreeMap<String, Value>,
    /// Servers without which the turn does not begin.
    pub required_servers: Vec<String>,
    /// Secrets of the servers that are valid for this turn only. They are removed from everything that the provider gives back.
    pub secrets: Vec<SecretString>,
    /// Folders besides its own that it may work in.
    pub folders: Vec<PathBuf>,
    /// Limits of the files that are kept of `out/` in its own folder. `None`: none is kept.
    pub output: Option<OutputLimits>,
    /// Maximum number of model calls in one turn.
    pub max_rounds: Option<u32>,
    /// Maximum cost of one turn. The provider checks it after each of its calls, so one call at most exceeds it.
    pub max_cost_micros: Option<u64>,
}

/// Treatment of calls that no rule names. There is no person to ask.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PermissionMode {
    /// Denies them.
    #[default]
    DontAsk,
    /// Allows changes of files.
    AcceptEdits,
    Plan,
    /// Allows everything. Claude Code refuses this mode to root.
    BypassPermissions,
}

/// State of a conversation after a turn.
#[derive(Debug, Clone, PartialEq)]
pub struct ConversationUpdate {
    pub head: Uuid,
    pub began: TurnStart,
    /// True if the provider was started before the turn.
    pub was_ahead: bool,
    /// Messages of the turn after its prompt, in order: calls, their results, and the answer at the end.
    pub messages: Vec<Message>,
    /// Growth of the transcript's files.
    pub grown: Vec<FileGrowth>,
    pub meter: Meter,
    /// One for each answer of the model, in order. The first tells whether the model saw its history. The last tells how full the window
    /// is.
    pub calls: Vec<Call>,
    pub flags: Vec<Flag>,
}

/// State from which the turn began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnStart {
    /// There was no history.
    New,
    /// The provider had the transcript.
    Resumed,
    /// The provider's transcript was missing, damaged or longer than the committed one, and was restored first.
    Restored,
    /// The transcript was lost; a new one was written from the messages.
    Rewritten,
}

/// Bytes that were added to a file after position `from`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileGrowth {
    pub name: String,
    /// 0 if the file is new or no longer begins with the caller's bytes: then `bytes` is all of it.
    pub from: u64,
    pub bytes: Vec<u8>,
    /// Digest of the whole file.
    pub sha256: [u8; 32],
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// Id by which the ledger deduplicates.
    pub provider_message_id: String,
    pub model: String,
    pub usage: Usage,
    /// True for a call of a subagent, which says nothing about the conversation's own context.
    pub is_subagent: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelSpend {
    pub model: String,
    pub usage: Usage,
    /// Cost by the provider's own price table; `None` if it named none.
    pub cost_micros: Option<u64>,
    pub window_tokens: Option<u32>,
}

/// The provider's running totals by model. Some versions begin at 0 with each process, some continue from the conversation's totals. The
/// cost of a turn is a difference in either case.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Meter(pub BTreeMap<String, MeterReading>);

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct MeterReading {
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_creation: u64,
    pub cost_micros: Option<u64>,
}

/// Notice about a turn, for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Flag {
    /// The provider replaced the history by a summary of its own.
    Compacted,
    /// A tool server was missing, so its tools were, too.
    ServerMissing(String),
    /// A tool was granted that this provider does not have.
    ToolMissing(String),
    /// A call was denied because no rule allows it.
    Denied(String),
    /// Files beside the transcript were not stored, because all together they would exceed the limit.
    NotStored { files: u64, bytes: u64 },
    /// The answer was complete, but the process did not exit by itself.
    Hung,
    /// The provider reported no cost, or an impossible one.
    CostUnknown,
}
