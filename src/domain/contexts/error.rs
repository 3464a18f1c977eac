//! Errors of contexts, and their classes.

use uuid::Uuid;

use crate::domain::{
    StatementError,
    class::{Class, Classify, Kind},
    compactions, sessions, turns,
};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "session {0} has no stored context yet: a context is stored with the end of its turn; `dalsegno turn ls {0}` lists the turns"
    )]
    NoneStored(Uuid),
    #[error(
        "turn {turn} of session {session_id} has no stored context: it is running, its call was not made, or its worker was lost; `dalsegno turn show {session_id} {turn}` shows its state"
    )]
    NotStored { session_id: Uuid, turn: i32 },
    #[error(
        "turn {turn} of session {session_id} has {calls} calls with a stored context, and none with the number {call}: `dalsegno turn show {session_id} {turn}` lists them"
    )]
    UnknownCall { session_id: Uuid, turn: i32, call: i32, calls: i32 },
    #[error(
        "the envelope of turn {turn} of session {session_id} cannot be read or written as JSON"
    )]
    Envelope { session_id: Uuid, turn: i32, source: serde_json::Error },
    #[error(
        "the ledger has no call with the number {0}: `dalsegno turn show SESSION TURN` lists the calls of a turn"
    )]
    UnknownInLedger(i64),
    #[error(
        "call {ledger_id} of the ledger belongs to turn {turn} of session {session_id}: `dalsegno context show {session_id} --turn {turn}` shows the context"
    )]
    OfTurn { ledger_id: i64, session_id: Uuid, turn: i32 },
    #[error(
        "call {0} of the ledger has no stored context: its session was removed by a cleanup or an erasure, or an older version has made the call"
    )]
    SideCallNotStored(i64),
    #[error(
        "call {ledger_id} of the ledger is a rerun of turn {turn} of session {session_id}: `dalsegno turn reruns {session_id} --turn {turn}` shows it"
    )]
    OfRerun { ledger_id: i64, session_id: Uuid, turn: i32 },
    #[error(
        "turn {turn} of session {session_id} has no answer: it is running, has failed or was interrupted; `dalsegno turn show {session_id} {turn}` shows its state"
    )]
    NoAnswer { session_id: Uuid, turn: i32 },
    #[error(
        "session {0} has no turn with an answer yet: `dalsegno turn ls {0}` lists the turns with their states"
    )]
    NoAnswers(Uuid),
    #[error(
        "no transcript of {provider} is stored for session {session_id}: the provider is sent the whole conversation with each call, and `dalsegno context show {session_id}` shows it"
    )]
    NoTranscript { session_id: Uuid, provider: String },
    #[error(
        "the provider's transcript of session {session_id} does not have the answer of turn {turn}: it was written again from the stored messages after that turn, or the line was removed; `dalsegno session transcript {session_id}` shows the stored messages"
    )]
    NotInTranscript { session_id: Uuid, turn: i32 },
    #[error("the fence seed of session {0} does not have 32 bytes")]
    FenceSeed(Uuid),
    #[error(transparent)]
    Compaction(#[from] compactions::Error),
    #[error(transparent)]
    Turn(#[from] turns::Error),
    #[error(transparent)]
    Session(#[from] sessions::Error),
    #[error(transparent)]
    Database(#[from] StatementError),
}

impl Error {
    pub const NOT_STORED: Class = Class::of(Kind::NotFound, "context_not_stored");
    pub const UNKNOWN_CALL: Class = Class::of(Kind::NotFound, "unknown_call");
}

impl Classify for Error {
    fn class(&self) -> Class {
        match self {
            Self::NoneStored(_)
            | Self::NotStored { .. }
            | Self::OfTurn { .. }
            | Self::OfRerun { .. }
            | Self::NoAnswer { .. }
            | Self::NoAnswers(_)
            | Self::NoTranscript { .. }
            | Self::NotInTranscript { .. }
            | Self::SideCallNotStored(_) => Self::NOT_STORED,
            Self::UnknownCall { .. } | Self::UnknownInLedger(_) => Self::UNKNOWN_CALL,
            Self::Envelope { .. } | Self::FenceSeed(_) => Class::of(Kind::Internal, "internal"),
            Self::Compaction(error) => error.class(),
            Self::Turn(error) => error.class(),
            Self::Session(error) => error.class(),
            Self::Database(error) => error.class(),
        }
    }
}
