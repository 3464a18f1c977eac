//! Reasons why a part is sent or left out.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ContextPartReason)]
pub enum PartReason {
    /// Sent with every call, rendered anew from its source.
    EveryCall,
    /// Replaces the folded messages.
    StandsIn,
    /// Not folded yet.
    RecentHistory,
    /// A call without a recorded result would be rejected by the provider.
    CompletesInterruptedCall,
    SessionRestored,
    SinceCursor,
    ThisTurn,
    /// Results of the tasks that this task has waited for.
    WaitedFor,
    /// Covered by the summary.
    Folded,
    /// In an earlier session of the conversation, and too long for this one. A notice says so.
    NotInherited,
    /// A tool result whose call is not in the view, or was answered before.
    OrphanedResult,
    /// The system part is not taken from the history.
    SystemInHistory,
    /// Neither text nor tool calls.
    Empty,
    /// Sent separately: the stored request of an earlier attempt as the task, or stored results as its results.
    IsTheTask,
    /// The agent's own words, which the conversation holds as its answer.
    OwnAnswer,
    /// A request to the agent in this or another task.
    IsATask,
    /// Shown before, in the conversation that this one continues.
    ShownBefore,
    /// Too old: the agent's file limits the number of posts in a turn.
    BeyondWindow,
    /// Too long for the room of posts or of edicts.
    NoRoom,
    /// Results of this turn of which only the beginning and the end are sent, because there is no room for all of them.
    Shortened,
    /// The last call of a turn has to end in words.
    LastCall,
    /// Asks to correct an answer that does not match the result schema.
    Correction,
    /// A file in the folder of the agent, which reads it by itself.
    PlacedAsFile,
    /// The model accepts no such files, as far as the service knows.
    FileNotAccepted,
    /// The agent works in a folder, but may not use the tool that reads files.
    FileNotReadable,
    /// The provider accepts only smaller files.
    FileTooLarge,
    /// The provider accepts fewer or smaller files in one call; newer ones are sent.
    TooManyFiles,
    /// Its content is not stored any more.
    FileRemoved,
}

impl PartReason {
    /// Describes the reason for people.
    pub const fn as_text(self) -> &'static str {
        match self {
            Self::EveryCall => "sent with every call",
            Self::StandsIn => "replaces older messages",
            Self::RecentHistory => "recent history, not summarised yet",
            Self::CompletesInterruptedCall => "completes an interrupted tool call",
            Self::SessionRestored => "notes that the session is new or restored",
            Self::SinceCursor => "new since the last turn",
            Self::ThisTurn => "belongs to this turn",
            Self::WaitedFor => "results of the tasks that the task waited for",
            Self::Folded => "covered by the summary",
            Self::NotInherited => {
                "too long to be taken over from the session before; a notice says so"
            }
            Self::OrphanedResult => "tool result without its call",
            Self::SystemInHistory => "system message, which each call has of its own",
            Self::Empty => "has no text",
            Self::IsTheTask => "sent separately: as the task or its results",
            Self::OwnAnswer => "post of the agent, which its conversation contains",
            Self::IsATask => "request to the agent, sent as a task",
            Self::ShownBefore => "shown in an earlier session of the conversation",
            Self::BeyondWindow => "older than the window of the agent's file",
            Self::NoRoom => "too long for its share of the context",
            Self::Shortened => "shortened to its beginning and end",
            Self::LastCall => "asks for the answer in the last call of the turn",
            Self::Correction => "asks to correct an answer that does not match the result schema",
            Self::PlacedAsFile => "in a file that the agent can read",
            Self::FileNotAccepted => "the model accepts no files of this type",
            Self::FileNotReadable => "the agent has no tool to read files",
            Self::FileTooLarge => "larger than the provider accepts",
            Self::TooManyFiles => "the provider accepts no more files in one call",
            Self::FileRemoved => "its content was removed",
        }
    }
}
