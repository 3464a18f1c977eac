//! The transcript of a provider that keeps the conversation itself, as far as it leads to an answer.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::transcript::Message;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TranscriptChain {
    /// Entries in order, ending with the answer.
    pub entries: Vec<TranscriptEntry>,
    /// Line before the first entry that the file lacks.
    pub missing_line: Option<Uuid>,
}

/// A message in the provider's transcript.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TranscriptEntry {
    /// Id of its first line.
    pub line_id: Uuid,
    /// True if the provider's program has added it in the user's name.
    pub added: bool,
    #[serde(flatten)]
    pub message: Message,
}

/// Messages that a call adds to the transcript before its answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TranscriptGrowth {
    /// True if the transcript begins with them.
    pub is_new: bool,
    pub messages: Vec<Message>,
}
