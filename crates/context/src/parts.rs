//! What a call is assembled from. Borrowed and plain: whoever loads the rows decides what is in them.

use std::sync::Arc;

use uuid::Uuid;

use crate::{
    compaction::generations::View,
    manifest::{Span, Why},
    posts::Posts,
    transcript::{Message, ToolSpec},
};

#[derive(Debug, Clone)]
pub struct Parts<'a> {
    /// The operator's own file, sent as written: it has the system's authority anyway, and prompts use markup
    /// of their own.
    pub agent_prompt: &'a str,
    pub skills: &'a [Skill<'a>],
    pub campaign: Campaign<'a>,
    pub edicts: &'a [Edict<'a>],
    /// `None` where there are none, or the agent's file does not want them.
    pub facts: Option<AboutUser<'a>>,
    pub roster: &'a [Colleague<'a>],
    /// What the model may call. Providers put it into the prompt by themselves; here it is counted.
    pub tools: &'a [Arc<ToolSpec>],
    pub view: View<'a>,
    /// The last place of the view that a provider which keeps the conversation itself has heard. `None`: there is no such
    /// provider, or it has heard nothing of this view.
    pub heard_to_seq: Option<i64>,
    /// Tells the model that its session was restored; `None` in the ordinary case.
    pub notice: Option<&'a str>,
    /// `None` where there is nothing new on the board.
    pub board: Option<Board<'a>>,
    pub statuses: &'a [Status<'a>],
    /// What the agent may read of it, if that is anything.
    pub blackboard: Option<Blackboard<'a>>,
    /// What the tasks came to that this one has waited for.
    pub results: Option<Told<'a>>,
    pub task: Task<'a>,
}

#[derive(Debug, Clone, Copy)]
pub struct Skill<'a> {
    pub name: &'a str,
    pub text: &'a str,
}

#[derive(Debug, Clone, Copy)]
pub struct Campaign<'a> {
    pub id: Uuid,
    pub name: &'a str,
    pub brief: &'a str,
    pub client_context: Option<&'a str>,
}

#[derive(Debug, Clone, Copy)]
pub struct Edict<'a> {
    pub id: Uuid,
    pub name: &'a str,
    pub author: &'a str,
    /// Whether a person vouches for it.
    pub trust: &'a str,
    /// `None`: there is no room for it, and the model is told that it is there.
    pub text: Option<&'a str>,
}

/// What is known of the user for whom the campaign works.
#[derive(Debug, Clone, Copy)]
pub struct AboutUser<'a> {
    pub user: &'a str,
    pub facts: &'a [Fact<'a>],
}

#[derive(Debug, Clone, Copy)]
pub struct Fact<'a> {
    pub id: Uuid,
    pub attribute: &'a str,
    pub text: &'a str,
    /// How it came to be known.
    pub source: &'a str,
    /// When it was said.
    pub said: &'a str,
}

#[derive(Debug, Clone, Copy)]
pub struct Colleague<'a> {
    pub name: &'a str,
    pub description: &'a str,
}

/// What a turn shows of the board.
#[derive(Debug, Clone, Copy)]
pub struct Board<'a> {
    /// The id that the posts will have as an entry of the transcript.
    pub entry_id: Uuid,
    /// After the session's cursor; there may be none.
    pub shown: &'a Posts<'a>,
    /// For the manifest.
    pub not_shown: &'a [NotShown],
}

/// Posts that the agent may see, and that are not sent for one reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotShown {
    pub why: Why,
    pub span: Span,
}

#[derive(Debug, Clone, Copy)]
pub struct Status<'a> {
    pub agent: &'a str,
    pub state: &'a str,
}

/// As it stands in the transcript, or is about to: in front of the task, in this call as in later ones.
#[derive(Debug, Clone, Copy)]
pub struct Told<'a> {
    pub entry_id: Uuid,
    pub message: &'a Message,
}

#[derive(Debug, Clone, Copy)]
pub struct Blackboard<'a> {
    pub version: i64,
    /// Without blanks.
    pub json: &'a str,
}

#[derive(Debug, Clone, Copy)]
pub struct Task<'a> {
    /// The id that the prompt has, or will have, as an entry of the transcript. Should the view already hold that
    /// entry, because an interrupted attempt stored it, it is sent once.
    pub entry_id: Uuid,
    pub prompt: &'a str,
    /// The agent that asked it on the board, if an agent did: from a row, never from the text.
    pub asked_by: Option<&'a str>,
}
