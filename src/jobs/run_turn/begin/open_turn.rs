//! A turn that has begun, and what came of the wish to begin one.

use crate::{
    context::{Budget, Calibration, Manifest, Pressure, Weight},
    domain::{sessions::Live, turn_phases::Begun},
    jobs::{
        compact_session::setup::Around,
        run_turn::begin::{entries::Words, provider_session::Binding, team},
    },
    providers::Request,
    traces::Context,
};

/// A turn that has begun.
pub struct OpenTurn {
    pub begun: Begun,
    pub session: Live,
    pub manifest: Manifest,
    /// Of everything that is sent.
    pub weight: Weight,
    pub around: Around,
    pub calibration: Calibration,
    pub budget: Budget,
    pub estimated_tokens: u64,
    /// There is something in front of the prompt that a rebuilt session would not have.
    pub has_history: bool,
    /// For a provider that keeps the conversation itself.
    pub bound: Option<Binding>,
    pub unheard: Option<String>,
    pub words: Words,
    pub team: Vec<team::Presence>,
    /// The place in the transcript that is kept for the posts that it shows.
    pub posts_seq: i64,
    /// The span of the turn before, if spans are wanted.
    pub before: Option<Context>,
}

/// The result of a begin.
pub enum Beginning {
    Opened(Box<OpenTurn>, Request),
    /// The conversation has to be made smaller first. Its session is committed, and nothing else.
    NoRoom(NoRoom),
}

pub struct NoRoom {
    pub session: Live,
    pub around: Around,
    pub pressure: Pressure,
}
