//! A turn that has begun, in the form in which it waits for a batch.
//!
//! A later run of the job, maybe of another worker, ends the turn as if it had made the call itself. So nothing that has changed since is a
//! part of the turn: the texts, posts and estimates are those of its call.
//!
//! Batches run for a day, so an upgrade meets turns of the version before it, and in a rolling one an older worker meets those of the new
//! version. Each stored turn has the [version](VERSION) of its form. Raise it with a change that `serde` does not read by itself, and
//! convert the older form in [`StoredTurn::read`].

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{
    entries::TurnEntries,
    open_turn::{CallRecord, OpenTurn},
    team::ColleagueStatus,
};
use crate::{
    context::{
        Budget, Calibration, Digest, Manifest, Weight,
        manifest::{ContextText, TextKind},
    },
    domain::{sessions::SessionRow, turn_phases::StartedTurn},
    jobs::{compact_session::setup::FixedWeight, rate_limits::Permit},
    providers::{Options, Purpose, Request, Timeouts},
    transcript::{Message, ToolSpec},
};

/// Version of the form in which turns are stored.
pub const VERSION: u32 = 1;

/// The reason why a stored turn cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum UnreadableTurn {
    #[error(
        "a worker of a newer version has stored its turn (form {version}, this one knows {VERSION}): that one goes on with it"
    )]
    Newer { version: u32 },
    #[error("its stored turn cannot be read")]
    Broken(#[from] serde_json::Error),
}

/// The version of a stored turn.
#[derive(Deserialize)]
struct StoredVersion {
    /// Turns from before there were versions have none.
    #[serde(default)]
    version: u32,
}

/// An open turn of a provider that is sent the whole conversation, before its first call.
#[derive(Serialize, Deserialize)]
pub struct StoredTurn {
    begun: StartedTurn,
    session: SessionRow,
    manifest: Manifest,
    texts: Vec<StoredText>,
    weight: Weight,
    files_weight: Weight,
    task_files_weight: Weight,
    around: FixedWeight,
    calibration: Calibration,
    budget: Budget,
    estimated_tokens: u64,
    has_history: bool,
    words: TurnEntries,
    team: Vec<ColleagueStatus>,
    posts_seq: i64,
    request: StoredRequest,
}

#[derive(Serialize, Deserialize)]
struct StoredText {
    kind: TextKind,
    source: Option<Uuid>,
    sha256: Digest,
    text: String,
}

#[derive(Serialize, Deserialize)]
struct StoredRequest {
    turn: String,
    model: String,
    system: String,
    messages: Vec<Message>,
    tools: Vec<ToolSpec>,
    window_tokens: u32,
    reserve_tokens: u32,
    estimated_prompt_tokens: Option<u32>,
    options: Options,
}

impl OpenTurn {
    /// Encodes the turn with its first request, as JSON. The rate limits of the turn are left out: they are about ordinary calls.
    pub fn to_stored(&self, request: &Request) -> serde_json::Result<String> {
        let stored = StoredView {
            version: VERSION,
            begun: &self.begun,
            session: &self.session,
            manifest: &self.context.manifest,
            texts: self.context.texts.iter().map(StoredTextView::of).collect(),
            weight: self.weight,
            files_weight: self.files_weight,
            task_files_weight: self.task_files_weight,
            around: self.around,
            calibration: self.calibration,
            budget: self.budget,
            estimated_tokens: self.estimated_tokens,
            has_history: self.has_history,
            words: &self.words,
            team: &self.team,
            posts_seq: self.posts_seq,
            request: StoredRequestView::of(request),
        };
        serde_json::to_string(&stored)
    }
}

impl StoredTurn {
    pub fn read(json: &str) -> Result<Self, UnreadableTurn> {
        match serde_json::from_str::<StoredVersion>(json)?.version {
            // The form without a version is that of version 1.
            0 | VERSION => Ok(serde_json::from_str(json)?),
            version => Err(UnreadableTurn::Newer { version }),
        }
    }

    /// Returns the request of its first call.
    pub fn request(&self) -> Request {
        let StoredRequest { messages, tools, .. } = &self.request;
        let request = &self.request;
        Request {
            turn: request.turn.clone(),
            purpose: Purpose::Turn,
            model: request.model.clone(),
            system: request.system.clone(),
            messages: messages.iter().cloned().map(Arc::new).collect(),
            tools: tools.iter().cloned().map(Arc::new).collect(),
            window_tokens: request.window_tokens,
            reserve_tokens: request.reserve_tokens,
            estimated_prompt_tokens: request.estimated_prompt_tokens,
            options: request.options.clone(),
            timeouts: Timeouts::default(),
            conversation: None,
            credential: None,
        }
    }

    /// Opens the turn again under the lease of a later run.
    pub fn into_open(self, lease: i64) -> OpenTurn {
        let text = |StoredText { kind, source, sha256, text }| ContextText {
            kind,
            source,
            sha256,
            text: text.into(),
        };
        OpenTurn {
            begun: StartedTurn { lease, ..self.begun },
            session: self.session,
            context: CallRecord {
                manifest: self.manifest,
                texts: self.texts.into_iter().map(text).collect(),
                rounds: Vec::new(),
            },
            weight: self.weight,
            files_weight: self.files_weight,
            task_files_weight: self.task_files_weight,
            around: self.around,
            calibration: self.calibration,
            budget: self.budget,
            estimated_tokens: self.estimated_tokens,
            has_history: self.has_history,
            bound: None,
            unheard: None,
            words: self.words,
            team: self.team,
            posts_seq: self.posts_seq,
            permit: Permit::default(),
            before: None,
            batch_call: None,
            has_unbatched_files: false,
        }
    }
}

/// The same fields as [`StoredTurn`], borrowed.
#[derive(Serialize)]
struct StoredView<'a> {
    version: u32,
    begun: &'a StartedTurn,
    session: &'a SessionRow,
    manifest: &'a Manifest,
    texts: Vec<StoredTextView<'a>>,
    weight: Weight,
    files_weight: Weight,
    task_files_weight: Weight,
    around: FixedWeight,
    calibration: Calibration,
    budget: Budget,
    estimated_tokens: u64,
    has_history: bool,
    words: &'a TurnEntries,
    team: &'a [ColleagueStatus],
    posts_seq: i64,
    request: StoredRequestView<'a>,
}

#[derive(Serialize)]
struct StoredTextView<'a> {
    kind: TextKind,
    source: Option<Uuid>,
    sha256: Digest,
    text: &'a str,
}

#[derive(Serialize)]
struct StoredRequestView<'a> {
    turn: &'a str,
    model: &'a str,
    system: &'a str,
    messages: Vec<&'a Message>,
    tools: Vec<&'a ToolSpec>,
    window_tokens: u32,
    reserve_tokens: u32,
    estimated_prompt_tokens: Option<u32>,
    options: &'a Options,
}

impl<'a> StoredTextView<'a> {
    fn of(text: &'a ContextText) -> Self {
        Self { kind: text.kind, source: text.source, sha256: text.sha256, text: &text.text }
    }
}

impl<'a> StoredRequestView<'a> {
    fn of(request: &'a Request) -> Self {
        Self {
            turn: &request.turn,
            model: &request.model,
            system: &request.system,
            messages: request.messages.iter().map(|message| &**message).collect(),
            tools: request.tools.iter().map(|tool| &**tool).collect(),
            window_tokens: request.window_tokens,
            reserve_tokens: request.reserve_tokens,
            estimated_prompt_tokens: request.estimated_prompt_tokens,
            options: &request.options,
        }
    }
}
