//! The input of an assembled call. All data is borrowed; the caller decides what to load.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{
    attachments::AttachmentRules,
    compaction::generations::View,
    manifest::{PartReason, Span},
    posts::Posts,
    transcript::{Attachment, Message, ToolSpec},
};

#[derive(Debug, Clone)]
pub struct Parts<'a> {
    /// Prompt of the agent's file, sent as written: it has the system's authority anyway, and prompts use markup of their own.
    pub agent_prompt: &'a str,
    pub skills: &'a [Skill<'a>],
    pub campaign: Campaign<'a>,
    pub edicts: &'a [Edict<'a>],
    /// Known facts; `None` if there are none, or the agent's file does not want them.
    pub facts: Option<AboutUser<'a>>,
    pub roster: &'a [Colleague<'a>],
    /// Tools that the model may call. Providers put them into the prompt by themselves; they are counted here.
    pub tools: &'a [Arc<ToolSpec>],
    pub view: View<'a>,
    /// Last entry of the view that a provider which keeps the conversation itself has received. `None`: the provider is
    /// of another kind, or has received nothing of this view.
    pub heard_to_seq: Option<i64>,
    /// Note that the session was restored; `None` in the ordinary case.
    pub notice: Option<&'a str>,
    /// New posts of the board; `None` if there are none.
    pub board: Option<Board<'a>>,
    pub statuses: &'a [Status<'a>],
    /// Parameters of campaign and task; `None` if there are none.
    pub parameters: Option<Parameters<'a>>,
    /// Part of the blackboard that the agent may read; `None` if it may read nothing.
    pub blackboard: Option<Blackboard<'a>>,
    /// Results of the tasks that this one has waited for.
    pub results: Option<AwaitedResults<'a>>,
    /// JSON Schema that the answer has to match, as JSON without whitespace; `None` if any answer will do.
    pub result_schema: Option<&'a str>,
    pub task: Task<'a>,
    pub attachments: Attachments<'a>,
}

#[derive(Debug, Clone, Copy)]
pub struct Skill<'a> {
    pub name: &'a str,
    pub text: &'a str,
}

#[derive(Debug, Clone, Copy)]
pub struct Campaign<'a> {
    /// Version of brief and client context.
    pub version: i32,
    pub name: &'a str,
    pub brief: &'a str,
    pub client_context: Option<&'a str>,
}

#[derive(Debug, Clone, Copy)]
pub struct Edict<'a> {
    pub id: Uuid,
    pub name: &'a str,
    pub author: &'a str,
    /// Trust level of the author: whether a person vouches for it.
    pub trust: &'a str,
    /// Text; `None` if there is no room for it. The model is then told that the edict exists.
    pub text: Option<&'a str>,
}

/// The facts about the user for whom the campaign works.
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
    /// Origin of the fact.
    pub source: &'a str,
    /// Time at which it was stated.
    pub said: &'a str,
}

#[derive(Debug, Clone, Copy)]
pub struct Colleague<'a> {
    pub name: &'a str,
    pub description: &'a str,
}

/// The posts of the board that a turn shows.
#[derive(Debug, Clone, Copy)]
pub struct Board<'a> {
    /// The id that the posts will have as an entry of the transcript.
    pub entry_id: Uuid,
    /// Posts after the session's cursor; may be empty.
    pub shown: &'a Posts<'a>,
    /// Posts that are not sent, for the manifest.
    pub not_shown: &'a [NotShown],
}

/// Posts that the agent may see and that are not sent, with one reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotShown {
    pub why: PartReason,
    pub span: Span,
}

#[derive(Debug, Clone, Copy)]
pub struct Status<'a> {
    pub agent: &'a str,
    pub state: &'a str,
    /// The tool that the agent is calling.
    pub tool: Option<&'a str>,
}

/// Results as they are, or will be, in the transcript: before the task, in this call and in later ones.
#[derive(Debug, Clone, Copy)]
pub struct AwaitedResults<'a> {
    pub entry_id: Uuid,
    pub message: &'a Message,
}

/// The named values that hold for a call.
#[derive(Debug, Clone, Copy)]
pub struct Parameters<'a> {
    /// Where they come from: the version of the campaign, the task, or both.
    pub source: &'a str,
    /// An object as JSON without whitespace.
    pub json: &'a str,
}

#[derive(Debug, Clone, Copy)]
pub struct Blackboard<'a> {
    pub version: i64,
    /// The document as JSON without whitespace.
    pub json: &'a str,
}

#[derive(Debug, Clone, Copy)]
pub struct Task<'a> {
    /// Id that the prompt has, or will have, as an entry of the transcript. If the view already holds that entry,
    /// because an interrupted attempt stored it, it is sent once.
    pub entry_id: Uuid,
    pub prompt: &'a str,
    /// Agent that asked on the board, if an agent did: from a row, never from the text.
    pub asked_by: Option<&'a str>,
    /// True if the service asks for a corrected answer. It is then sent as a notice.
    pub is_correction: bool,
}

/// Files of the task, and the files that the model accepts. Those of earlier prompts are with their entries.
#[derive(Debug, Clone, Copy)]
pub struct Attachments<'a> {
    pub rules: &'a AttachmentRules,
    /// In order.
    pub of_task: &'a [Arc<Attachment>],
}

impl Attachments<'_> {
    /// No files, and a model that accepts none.
    pub const NONE: Self =
        Self { rules: &AttachmentRules::described(PartReason::FileNotAccepted), of_task: &[] };
}
