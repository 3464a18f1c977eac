//! The record of a call's context: each part, and why it is in or out.
//!
//! Texts are identified by their digest. The tail of the transcript is one line with the chain of its entries' digests.
//! So a manifest is as small after five hundred turns as after ten.

use std::{collections::BTreeMap, sync::Arc};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{calibration::Calibration, digest::Digest, entry::Entry, weight::Weight};

/// Version of the rendering. Raised when the rendering of messages, posts or summaries changes; [`crate::replay`] then keeps the old one for
/// the calls that were sent with it. All other texts are stored as they were sent.
pub const RENDERING: u32 = 3;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    pub rendering: u32,
    pub parts: Vec<Part>,
    /// Turns whose messages were left out, because the provider had rejected the prompt of their task.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without_turns: Vec<i32>,
    /// Last message that a provider which keeps the conversation itself had received before the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heard_to_seq: Option<i64>,
    /// The request as it was sent; `None` for calls of older versions and of providers that send none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<RequestHashes>,
    /// Estimated tokens of all sent parts.
    pub estimated_tokens: u64,
    /// Chain of the digests of all sent parts.
    pub sha256: Digest,
}

/// Hashes of a request that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestHashes {
    /// Digest of the stored text with all fields besides messages and tools.
    pub envelope: Digest,
    /// Digest of the whole request.
    pub sha256: Digest,
}

/// Kind of a stored text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextKind {
    Part(Kind),
    /// All fields of a request besides messages and tools.
    Envelope,
    /// The system text of a call beside turns.
    Instructions,
    /// A piece of the prompt of a call beside turns.
    Prompt,
}

/// A text of a context that no row holds, so it is stored by its digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextText {
    pub kind: TextKind,
    /// The row it was made from, if its removal has to remove the text.
    pub source: Option<Uuid>,
    pub sha256: Digest,
    /// Open: see [`crate::xml::Fence::open`].
    pub text: Arc<str>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    pub kind: Kind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span: Option<Span>,
    /// Digest of the text. The text is stored under it, or follows from rows: messages, posts, a summary. `None` for parts that
    /// were not loaded because they are not sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<Digest>,
    pub tokens: u64,
    pub sent: bool,
    pub why: PartReason,
    /// Number of posts of each trust level, for the posts of the board.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub by_trust: BTreeMap<String, usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    pub from_seq: i64,
    pub to_seq: i64,
    /// Number of entries; `None` if they were not loaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ContextPartKind)]
pub enum Kind {
    AgentPrompt,
    FenceRules,
    Skill,
    CampaignBrief,
    ClientContext,
    Edict,
    /// A fact about the user for whom the campaign works.
    Fact,
    Roster,
    Summary,
    Transcript,
    SyntheticResults,
    Notice,
    Posts,
    Statuses,
    /// Named values of the campaign and the task.
    Parameters,
    Blackboard,
    Results,
    Task,
    /// The tools that the model may call.
    Tools,
    /// The model's calls in this turn, with their results.
    Rounds,
}

/// Origin of the text of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ContextPartTrust)]
pub enum Trust {
    /// The service itself, or a file of the operator.
    Trusted,
    /// People, models and tools. The text is escaped and delimited.
    Untrusted,
}

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
}

impl Manifest {
    /// Creates a manifest of these parts, for a call that was not sent yet.
    pub fn new(parts: Vec<Part>, estimated_tokens: u64) -> Self {
        Self {
            rendering: RENDERING,
            estimated_tokens,
            sha256: chain_of_sent(&parts),
            parts,
            without_turns: Vec::new(),
            heard_to_seq: None,
            request: None,
        }
    }

    /// Returns the generation of the summary that the call had.
    pub fn generation(&self) -> Option<i32> {
        let summary = self.parts.iter().find(|part| part.kind == Kind::Summary)?;
        summary.id.as_deref()?.rsplit(' ').next()?.parse().ok()
    }

    /// Records the messages of the session before that this one has not taken over.
    pub fn add_not_inherited(&mut self, span: Span) {
        let is_tail = |part: &Part| part.kind == Kind::Transcript && part.sent;
        let at = self.parts.iter().position(is_tail).unwrap_or(self.parts.len());
        let (kind, why) = (Kind::Transcript, PartReason::NotInherited);
        self.parts.insert(at, Part { span: Some(span), ..Part::new(kind, None, why) });
    }

    /// Names the text under which the rounds are stored, where the transcript does not have them as they were sent.
    pub fn set_rounds(&mut self, list: Digest) {
        if let Some(part) = self.parts.iter_mut().find(|part| part.kind == Kind::Rounds) {
            part.sha256 = Some(list);
        }
        self.sha256 = chain_of_sent(&self.parts);
    }
}

impl Part {
    /// Creates a part that is not sent.
    pub fn new(kind: Kind, id: Option<String>, why: PartReason) -> Self {
        let by_trust = BTreeMap::new();
        Self { kind, id, span: None, sha256: None, tokens: 0, sent: false, why, by_trust }
    }
}

impl ContextText {
    pub fn of_part(kind: Kind, text: impl Into<Arc<str>>) -> Self {
        Self::new(TextKind::Part(kind), text)
    }

    pub fn new(kind: TextKind, text: impl Into<Arc<str>>) -> Self {
        let text = text.into();
        Self { kind, source: None, sha256: Digest::of(&text), text }
    }
}

impl TextKind {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Part(kind) => kind.as_str(),
            Self::Envelope => "envelope",
            Self::Instructions => "instructions",
            Self::Prompt => "prompt",
        }
    }
}

impl Kind {
    /// Returns true for a part of the system text.
    pub const fn is_of_system(self) -> bool {
        matches!(
            self,
            Self::AgentPrompt
                | Self::FenceRules
                | Self::Skill
                | Self::CampaignBrief
                | Self::ClientContext
                | Self::Edict
                | Self::Fact
                | Self::Roster
        )
    }

    /// Returns true for a system text that is stored as it is: it has no elements, and nothing of it is escaped.
    pub const fn is_plain(self) -> bool {
        matches!(self, Self::AgentPrompt | Self::FenceRules)
    }

    /// Returns the name, as JSON has it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AgentPrompt => "agent_prompt",
            Self::FenceRules => "fence_rules",
            Self::Skill => "skill",
            Self::CampaignBrief => "campaign_brief",
            Self::ClientContext => "client_context",
            Self::Edict => "edict",
            Self::Fact => "fact",
            Self::Roster => "roster",
            Self::Summary => "summary",
            Self::Transcript => "transcript",
            Self::SyntheticResults => "synthetic_results",
            Self::Notice => "notice",
            Self::Posts => "posts",
            Self::Statuses => "statuses",
            Self::Parameters => "parameters",
            Self::Blackboard => "blackboard",
            Self::Results => "results",
            Self::Task => "task",
            Self::Tools => "tools",
            Self::Rounds => "rounds",
        }
    }

    pub const fn trust(self) -> Trust {
        match self {
            Self::AgentPrompt
            | Self::FenceRules
            | Self::Skill
            | Self::Roster
            | Self::SyntheticResults
            | Self::Notice
            | Self::Statuses
            | Self::Tools => Trust::Trusted,
            Self::CampaignBrief
            | Self::ClientContext
            | Self::Edict
            | Self::Fact
            | Self::Summary
            | Self::Transcript
            | Self::Posts
            | Self::Parameters
            | Self::Blackboard
            | Self::Results
            | Self::Task
            | Self::Rounds => Trust::Untrusted,
        }
    }
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
        }
    }
}

/// Collects the lines of a manifest while the parts are rendered.
pub(super) struct Ledger<'a> {
    calibration: &'a Calibration,
    parts: Vec<Part>,
    texts: Vec<ContextText>,
    weight: Weight,
}

impl<'a> Ledger<'a> {
    pub(super) fn new(calibration: &'a Calibration) -> Self {
        Self { calibration, parts: Vec::new(), texts: Vec::new(), weight: Weight::ZERO }
    }

    pub(super) fn sent(&mut self, kind: Kind, id: Option<String>, why: PartReason, text: &str) {
        self.sent_as(kind, id, why, text, Weight::of_text(text));
    }

    pub(super) fn sent_as(
        &mut self,
        kind: Kind,
        id: Option<String>,
        why: PartReason,
        text: &str,
        weight: Weight,
    ) {
        self.sent_with(kind, id, why, Digest::of(text), weight);
    }

    pub(super) fn sent_with(
        &mut self,
        kind: Kind,
        id: Option<String>,
        why: PartReason,
        sha256: Digest,
        weight: Weight,
    ) {
        let sha256 = Some(sha256);
        self.push(Part { sha256, sent: true, ..Part::new(kind, id, why) }, weight);
    }

    /// Adds a part whose text is stored. `open` is the text as it is stored.
    pub(super) fn stored(
        &mut self,
        kind: Kind,
        id: Option<String>,
        why: PartReason,
        weight: Weight,
        open: String,
    ) {
        let source = match kind {
            Kind::Fact => id.as_deref().and_then(|id| id.parse().ok()),
            _ => None,
        };
        let text = ContextText { source, ..ContextText::of_part(kind, open) };
        self.sent_with(kind, id, why, text.sha256, weight);
        self.texts.push(text);
    }

    /// Adds one line for all entries that share a reason; none for no entries.
    pub(super) fn entries<'e>(
        &mut self,
        entries: impl Iterator<Item = &'e Entry> + Clone,
        sent: bool,
        why: PartReason,
    ) {
        let Some(span) = span_of(entries.clone()) else {
            return;
        };
        self.push(
            Part {
                span: Some(span),
                sha256: Some(Digest::chain(entries.clone().map(|entry| entry.digest))),
                sent,
                ..Part::new(Kind::Transcript, None, why)
            },
            entries.map(|entry| entry.weight).sum(),
        );
    }

    /// Adds the posts. Their text is stored only if the turn does not store them as an entry.
    pub(super) fn posts(
        &mut self,
        span: Option<Span>,
        by_trust: BTreeMap<String, usize>,
        text: &str,
    ) {
        let weight = Weight::of_text(text);
        self.stored(Kind::Posts, None, PartReason::SinceCursor, weight, text.to_owned());
        if let Some(part) = self.parts.last_mut() {
            (part.span, part.by_trust) = (span, by_trust);
        }
    }

    pub(super) fn posts_not_shown(&mut self, span: Span, why: PartReason) {
        self.parts.push(Part { span: Some(span), ..Part::new(Kind::Posts, None, why) });
    }

    /// Adds a part of which only a note or an empty element is sent, the open text.
    pub(super) fn left_out(
        &mut self,
        kind: Kind,
        id: Option<String>,
        why: PartReason,
        open: String,
    ) {
        let text = ContextText::of_part(kind, open);
        let sha256 = Some(text.sha256);
        self.parts.push(Part { sha256, ..Part::new(kind, id, why) });
        self.texts.push(text);
    }

    /// Records the messages that the summary covers. Transcripts begin at 1.
    pub(super) fn folded(&mut self, to_seq: i64, generation: u32) {
        let span = Span { from_seq: 1, to_seq, count: None };
        let id = Some(format!("generation {generation}"));
        let part = Part::new(Kind::Transcript, id, PartReason::Folded);
        self.parts.push(Part { span: Some(span), ..part });
    }

    /// Continues from the manifest of an earlier call of the turn.
    pub(super) fn going_on(
        calibration: &'a Calibration,
        manifest: &Manifest,
        weight: Weight,
    ) -> Self {
        Self { calibration, parts: manifest.parts.clone(), texts: Vec::new(), weight }
    }

    /// Removes parts that are not sent in this call.
    pub(super) fn without(&mut self, kind: Kind, weight: Weight) {
        self.parts.retain(|part| part.kind != kind);
        self.weight = self.weight.saturating_sub(weight);
    }

    pub(super) fn weight(&self) -> Weight {
        self.weight
    }

    /// Returns the manifest, and the texts to be stored with it.
    pub(super) fn finish(self) -> (Manifest, Vec<ContextText>) {
        let manifest = Manifest::new(self.parts, self.calibration.tokens(self.weight));
        (manifest, self.texts)
    }

    fn push(&mut self, mut part: Part, weight: Weight) {
        part.tokens = self.calibration.tokens(weight);
        if part.sent {
            self.weight = self.weight + weight;
        }
        self.parts.push(part);
    }
}

fn chain_of_sent(parts: &[Part]) -> Digest {
    let sent = parts.iter().filter(|part| part.sent);
    Digest::chain(sent.filter_map(|part| part.sha256))
}

pub(super) fn id_of(id: Uuid) -> Option<String> {
    Some(id.to_string())
}

fn span_of<'e>(entries: impl Iterator<Item = &'e Entry>) -> Option<Span> {
    entries.fold(None, |span: Option<Span>, entry| {
        Some(match span {
            None => Span { from_seq: entry.seq, to_seq: entry.seq, count: Some(1) },
            Some(span) => Span {
                from_seq: span.from_seq.min(entry.seq),
                to_seq: span.to_seq.max(entry.seq),
                count: span.count.map(|count| count + 1),
            },
        })
    })
}
