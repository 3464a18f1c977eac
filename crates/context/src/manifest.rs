//! The record of a call's context: each part, and why it is in or out.
//!
//! Texts are identified by their digest. The tail of the transcript is one line with the chain of its entries' digests.
//! So a manifest is as small after five hundred turns as after ten.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{calibration::Calibration, digest::Digest, entry::Entry, weight::Weight};

/// Version of the rendering. Raised when rendering changes, because the digests are those of the sources.
pub const RENDERING: u32 = 2;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    pub rendering: u32,
    pub parts: Vec<Part>,
    /// Estimated tokens of all sent parts.
    pub estimated_tokens: u64,
    /// Chain of the digests of all sent parts.
    pub sha256: Digest,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    pub kind: Kind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span: Option<Span>,
    /// Digest of the source; `None` for parts that were not loaded because they are not sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<Digest>,
    pub tokens: u64,
    pub sent: bool,
    pub why: PartReason,
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
    /// A tool result whose call is not in the view, or was answered before.
    OrphanedResult,
    /// The system part is not taken from the history.
    SystemInHistory,
    /// Neither text nor tool calls.
    Empty,
    /// Stored by an earlier attempt of this turn, and sent as its task.
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

impl Kind {
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
            Self::OrphanedResult => "tool result without its call",
            Self::SystemInHistory => "system message, which each call has of its own",
            Self::Empty => "neither text nor tool calls",
            Self::IsTheTask => "stored by an earlier attempt, sent as the task",
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
    weight: Weight,
}

impl<'a> Ledger<'a> {
    pub(super) fn new(calibration: &'a Calibration) -> Self {
        Self { calibration, parts: Vec::new(), weight: Weight::ZERO }
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
        self.push(Part { kind, id, span: None, sha256, tokens: 0, sent: true, why }, weight);
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
                kind: Kind::Transcript,
                id: None,
                span: Some(span),
                sha256: Some(Digest::chain(entries.clone().map(|entry| entry.digest))),
                tokens: 0,
                sent,
                why,
            },
            entries.map(|entry| entry.weight).sum(),
        );
    }

    pub(super) fn posts(&mut self, span: Span, text: &str) {
        self.sent(Kind::Posts, None, PartReason::SinceCursor, text);
        if let Some(part) = self.parts.last_mut() {
            part.span = Some(span);
        }
    }

    pub(super) fn posts_not_shown(&mut self, span: Span, why: PartReason) {
        let (kind, id, sha256) = (Kind::Posts, None, None);
        self.parts.push(Part { kind, id, span: Some(span), sha256, tokens: 0, sent: false, why });
    }

    pub(super) fn edict_not_shown(&mut self, id: Uuid) {
        let (kind, why) = (Kind::Edict, PartReason::NoRoom);
        let id = id_of(id);
        self.parts.push(Part { kind, id, span: None, sha256: None, tokens: 0, sent: false, why });
    }

    pub(super) fn folded(&mut self, to_seq: i64, generation: u32) {
        let span = Span { from_seq: 0, to_seq, count: None };
        self.parts.push(Part {
            kind: Kind::Transcript,
            id: Some(format!("generation {generation}")),
            span: Some(span),
            sha256: None,
            tokens: 0,
            sent: false,
            why: PartReason::Folded,
        });
    }

    /// Continues from the manifest of an earlier call of the turn.
    pub(super) fn going_on(
        calibration: &'a Calibration,
        manifest: &Manifest,
        weight: Weight,
    ) -> Self {
        Self { calibration, parts: manifest.parts.clone(), weight }
    }

    /// Removes parts that are not sent in this call.
    pub(super) fn without(&mut self, kind: Kind, weight: Weight) {
        self.parts.retain(|part| part.kind != kind);
        self.weight = self.weight.saturating_sub(weight);
    }

    pub(super) fn weight(&self) -> Weight {
        self.weight
    }

    pub(super) fn finish(self) -> Manifest {
        let sent = self.parts.iter().filter(|part| part.sent);
        Manifest {
            rendering: RENDERING,
            estimated_tokens: self.calibration.tokens(self.weight),
            sha256: Digest::chain(sent.filter_map(|part| part.sha256)),
            parts: self.parts,
        }
    }

    fn push(&mut self, mut part: Part, weight: Weight) {
        part.tokens = self.calibration.tokens(weight);
        if part.sent {
            self.weight = self.weight + weight;
        }
        self.parts.push(part);
    }
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
