//! Errors of a compaction.

use uuid::Uuid;

use crate::{
    context::compaction::{folding::RefusedAttempt, generations, plan},
    domain::{StatementError, compactions, sessions, tasks},
    jobs::{busy, side_call},
    providers::{self, Class},
    queue::{self, HoldUntil, JobError},
};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "session {session_id} is not compacted now: three summaries in ten turns did not help. The next one is tried from turn {from_turn} on; `dalsegno session show {session_id}` lists the refused ones"
    )]
    BreakerOpen { session_id: Uuid, from_turn: i32 },
    #[error(
        "no summary of session {session_id} was accepted, including the extract ({}), which is stored as compaction {generation}: shorten its standing requirements, raise the window, or reset the session",
        format_refusals(refused)
    )]
    Parked { session_id: Uuid, generation: i32, refused: Vec<RefusedAttempt> },
    #[error("session {session_id} cannot be compacted: {source}")]
    Plan { session_id: Uuid, source: plan::Error },
    #[error("another run is summarising session {0}")]
    InProgress(Uuid),
    #[error("cannot read the messages of session {session_id}")]
    View { session_id: Uuid, source: generations::Error },
    #[error("the stored {what} of session {session_id} cannot be read")]
    Stored { session_id: Uuid, what: &'static str, source: serde_json::Error },
    #[error("the fence seed of session {0} does not have 32 bytes")]
    FenceSeed(Uuid),
    #[error("cannot write a compaction as JSON")]
    Encode(#[source] serde_json::Error),
    /// The call was not made, or was stopped: it counts neither for the ladder nor for the breaker.
    #[error("the summariser could not be called: {0}")]
    NotAsked(#[source] providers::Error),
    #[error(transparent)]
    Compaction(#[from] compactions::Error),
    #[error(transparent)]
    Session(#[from] sessions::Error),
    #[error(transparent)]
    Task(#[from] tasks::Error),
    #[error(transparent)]
    Database(#[from] StatementError),
    #[error("cannot check for other summaries of the session")]
    Queue(#[source] queue::Error),
    #[error("cannot get a connection for a compaction")]
    Connection(#[source] sqlx::Error),
    #[error("cannot begin or commit a transaction of a compaction")]
    Transaction(#[source] sqlx::Error),
}

impl From<side_call::Error> for Error {
    fn from(error: side_call::Error) -> Self {
        match error {
            side_call::Error::NotAsked(source) => Self::NotAsked(source),
            side_call::Error::Task(source) => Self::Task(source),
            side_call::Error::Database(source) => Self::Database(source),
            side_call::Error::Transaction(source) => Self::Transaction(source),
        }
    }
}

impl From<Error> for JobError {
    fn from(error: Error) -> Self {
        match &error {
            Error::NotAsked(source) => match source.class {
                Class::Snooze { after, .. } => {
                    Self::snooze_for(busy::wait_cause(source), HoldUntil::After(after))(error)
                }
                // A worker that shuts down returns the job; the queue knows why the token was cancelled.
                _ => Self::retry(error),
            },
            Error::Compaction(
                compactions::Error::Session(_) | compactions::Error::Unknown { .. },
            )
            | Error::BreakerOpen { .. }
            | Error::Parked { .. }
            | Error::Plan { .. }
            | Error::View { .. }
            | Error::Stored { .. }
            | Error::FenceSeed(_)
            | Error::Encode(_)
            | Error::Session(sessions::Error::Closed(_) | sessions::Error::Unknown(_)) => {
                Self::fail(error)
            }
            _ => Self::retry(error),
        }
    }
}

fn format_refusals(refused: &[RefusedAttempt]) -> String {
    let last = refused.last().map(|attempt| attempt.refusals.as_slice()).unwrap_or_default();
    let reasons: Vec<_> = last.iter().map(|refusal| refusal.brief(5)).collect();
    reasons.join("; ")
}
