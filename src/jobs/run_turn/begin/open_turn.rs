//! A turn that has begun, and the results of a begin.

use std::sync::Arc;

use uuid::Uuid;

use crate::{
    context::{Budget, Calibration, Manifest, Pressure, Weight, manifest::ContextText},
    domain::{sessions::SessionRow, turn_phases::StartedTurn},
    jobs::{
        compact_session::setup::FixedWeight,
        rate_limits::Permit,
        run_turn::begin::{entries::TurnEntries, provider_session::ProviderBinding, team},
    },
    providers::Request,
    traces::Context,
    transcript::Message,
};

/// A turn that has begun.
pub struct OpenTurn {
    pub begun: StartedTurn,
    pub session: SessionRow,
    /// The context of the current call.
    pub context: CallRecord,
    /// Weight of everything that is sent.
    pub weight: Weight,
    /// Weight of the files in it, whose tokens are estimated less exactly.
    pub files_weight: Weight,
    /// Weight of those of the task.
    pub task_files_weight: Weight,
    pub around: FixedWeight,
    pub calibration: Calibration,
    pub budget: Budget,
    pub estimated_tokens: u64,
    /// True if there are messages before the prompt that a rebuilt session would not have.
    pub has_history: bool,
    /// For a provider that keeps the conversation itself.
    pub bound: Option<ProviderBinding>,
    pub unheard: Option<String>,
    pub words: TurnEntries,
    pub team: Vec<team::ColleagueStatus>,
    /// Place in the transcript that is reserved for the shown posts.
    pub posts_seq: i64,
    /// The shares of rate limits for its calls.
    pub permit: Permit,
    /// Our id of the batch that the call is sent as; its row is removed with the end of the turn.
    pub batch_call: Option<BatchCall>,
    /// True if the call could have been a batch, but has files.
    pub has_unbatched_files: bool,
    /// Span of the previous turn, if traces are on.
    pub before: Option<Context>,
}

/// The context of a call, to be stored with the end of the turn.
#[derive(Debug, Clone)]
pub struct CallRecord {
    pub manifest: Manifest,
    /// Texts of the manifest that no row has.
    pub texts: Vec<ContextText>,
    /// Earlier calls of the turn and their results, as this call sent them.
    pub rounds: Vec<Arc<Message>>,
}

/// The batch of an open turn, whose row the end of the turn removes.
#[derive(Debug, Clone, Copy)]
pub struct BatchCall {
    pub id: Uuid,
    /// True if the provider may still have the batch: a job cancels it.
    pub is_given_up: bool,
}

/// The result of a begin.
pub enum BeginResult {
    Opened(Box<OpenTurn>, Box<Request>),
    /// The conversation has to shrink first. Only its session is committed.
    NoRoom(Box<NoRoom>),
}

pub struct NoRoom {
    pub session: SessionRow,
    pub around: FixedWeight,
    pub pressure: Pressure,
    /// True if there are messages that a compaction could fold.
    pub has_history: bool,
    pub weight: Weight,
    /// The call as it would have been made.
    pub request: Request,
}
