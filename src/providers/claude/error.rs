//! Errors of Claude, and their classes.

use std::{io, path::PathBuf, time::Duration};

use crate::providers::{self, Class, ModelSpend, Origin, Rebuild, Scope, stream_json::TooMuch};

/// Message about bypassPermissions as root, for the check before a turn and the error after it.
pub const ROOT_REFUSED: &str = "Claude Code does not run with permissionMode bypassPermissions as root: run the service as another \
                                user, or name the tools that the agent needs in its file";

/// Error of a turn. Messages say what to do about it. They may quote the CLI, without the secret that it was given.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the call was cancelled")]
    Cancelled,
    #[error("cannot call the model: no message has text")]
    NothingToSend,
    #[error("no credential is configured for Claude; add one to claude.credentials")]
    NoCredential,
    #[error("cannot {doing} in {}; check its free space and permissions", folder.display())]
    Folder {
        doing: &'static str,
        folder: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error(
        "this host has no disk space for a turn on Claude in {} ({source}): free space there, or leave the turn to another host",
        folder.display()
    )]
    NoSpace { folder: PathBuf, source: io::Error },
    #[error("another call on this host took over the session; the result of this one is discarded")]
    TakenOver,
    #[error("cannot start {}; install Claude Code, or correct claude.program: {message}", program.display())]
    NotStarted { program: PathBuf, message: String },
    #[error("Claude Code printed no line in {} s; raise claude.first_line_timeout_secs if it needs longer", after.as_secs_f32())]
    NeverBegan { after: Duration },
    #[error(
        "Claude Code cannot reach the tool server {server}, which the turn needs; raise claude.mcp_timeout_secs if the server needs longer"
    )]
    Unserved { server: String },
    #[error("Claude Code was silent for {} s; raise claude.idle_timeout_secs if its tools need longer", after.as_secs_f32())]
    Silent { after: Duration },
    #[error("the turn did not end within {} s; raise claude.total_timeout_secs if it needs longer", after.as_secs_f32())]
    TooLong { after: Duration },
    #[error("Claude Code printed {0}, which is too much for a turn")]
    TooMuch(#[from] TooMuch),
    #[error("Claude Code refuses to start: {message}")]
    Refused { message: String },
    #[error("{ROOT_REFUSED}: {message}")]
    Root { message: String },
    #[error(
        "the turn exceeded its memory limit, and its processes were killed; raise claude.memory_max_bytes, or ask for less at once"
    )]
    OutOfMemory,
    #[error(
        "Claude Code crashed ({how}), as it does at its memory limit; raise claude.memory_max_bytes if this happens again{}",
        after_colon(message)
    )]
    BrokeDown { how: String, message: String },
    #[error("a file exceeded the size limit; raise claude.file_max_bytes, or ask for less at once")]
    FileTooLarge,
    #[error("Claude Code ended without a result ({how}){}", after_colon(message))]
    NoResult { how: String, message: String },
    #[error(
        "Claude Code answered for the session {got} instead of {wanted}; the answer is not used"
    )]
    WrongSession { got: String, wanted: String },
    #[error("Claude Code gave no answer")]
    Empty,
    #[error(
        "the answer is incomplete: the API ended it without a reason, and Claude Code accepted it"
    )]
    BrokenOff,
    #[error(
        "Claude Code reported an answer that its transcript does not contain; check whether the disk is full or read-only"
    )]
    NotPersisted,
    #[error("the transcript of the session is lost, on this host and in the database")]
    TranscriptLost,
    #[error("Claude Code cannot find the session, or the message to resume from: {message}")]
    SessionLost { message: String },
    #[error(
        "the conversation does not fit into the model's window; start a new session, or compact it: {message}"
    )]
    Overflow { message: String },
    #[error("the API refuses the call: {message}")]
    Invalid { message: String, has_history: bool },
    #[error("the API rejects the credential {credential}; renew it: {message}")]
    CredentialRejected { credential: String, message: String },
    #[error("the account of the credential {credential} has no credit; add credit: {message}")]
    Billing { credential: String, message: String },
    #[error("the credential {credential} has reached its limit: {message}")]
    RateLimited { credential: String, after: Duration, message: String },
    #[error("the API is overloaded: {message}")]
    Overloaded { message: String },
    #[error(
        "cannot connect to the API; check that claude.base_url is correct, and the network: {message}"
    )]
    Connect { message: String },
    #[error(
        "the API does not offer the model to this credential; correct the agent's model: {message}"
    )]
    ModelMissing { message: String },
    #[error(
        "the answer exceeds the model's output limit, even with continuations; ask for less: {message}"
    )]
    NoRoom { message: String },
    #[error("the model declined to answer: {message}")]
    Declined { message: String },
    #[error(
        "the turn exceeded its limit of rounds: {message}; raise maxTurns in the agent's file, or ask for less"
    )]
    TooManyRounds { message: String },
    #[error("the turn exceeded its budget: {message}; raise the budget, or ask for less")]
    OverBudget { message: String },
    #[error("the API failed{}: {message}", with_status(*status))]
    Api { status: Option<u64>, message: String },
}

/// Time between two checks of the disk space. Another host may take the turn meanwhile.
const SPACE_PAUSE: Duration = Duration::from_secs(15);

impl Error {
    pub fn code(&self) -> &'static str {
        match self {
            Self::Cancelled => "claude.cancelled",
            Self::NothingToSend => "claude.nothing_to_send",
            Self::NoCredential => "claude.no_credential",
            Self::Folder { .. } => "claude.folder",
            Self::NoSpace { .. } => "claude.no_space",
            Self::TakenOver => "claude.taken_over",
            Self::NotStarted { .. } => "claude.not_started",
            Self::NeverBegan { .. } => "claude.never_began",
            Self::Unserved { .. } => "claude.unserved",
            Self::Silent { .. } => "claude.silent",
            Self::TooLong { .. } => "claude.too_long",
            Self::TooMuch(_) => "claude.too_much",
            Self::Refused { .. } => "claude.refused",
            Self::Root { .. } => "claude.root",
            Self::OutOfMemory => "claude.out_of_memory",
            Self::BrokeDown { .. } => "claude.broke_down",
            Self::FileTooLarge => "claude.file_too_large",
            Self::NoResult { .. } => "claude.no_result",
            Self::WrongSession { .. } => "claude.wrong_session",
            Self::Empty => "claude.empty",
            Self::BrokenOff => "claude.broken_off",
            Self::NotPersisted => "claude.not_persisted",
            Self::TranscriptLost => "claude.transcript_lost",
            Self::SessionLost { .. } => "claude.session_lost",
            Self::Overflow { .. } => "claude.overflow",
            Self::Invalid { .. } => "claude.invalid",
            Self::CredentialRejected { .. } => "claude.credential_rejected",
            Self::Billing { .. } => "claude.billing",
            Self::RateLimited { .. } => "claude.rate_limited",
            Self::Overloaded { .. } => "claude.overloaded",
            Self::Connect { .. } => "claude.connect",
            Self::ModelMissing { .. } => "claude.model_missing",
            Self::NoRoom { .. } => "claude.no_room",
            Self::Declined { .. } => "claude.declined",
            Self::TooManyRounds { .. } => "claude.too_many_rounds",
            Self::OverBudget { .. } => "claude.over_budget",
            Self::Api { .. } => "claude.api",
        }
    }

    pub fn class(&self) -> Class {
        match self {
            Self::Cancelled => Class::Cancelled,
            Self::RateLimited { after, .. } => {
                Class::Snooze { after: *after, scope: Scope::Credential }
            }
            Self::NoSpace { .. } => Class::Snooze { after: SPACE_PAUSE, scope: Scope::Host },
            // It is not said for how long.
            Self::Overloaded { .. } => Class::Snooze { after: Duration::ZERO, scope: Scope::Host },
            Self::Connect { .. } => Class::Snooze { after: Duration::ZERO, scope: Scope::Worker },
            Self::TranscriptLost | Self::SessionLost { .. } => {
                Class::Rebuild { reason: Rebuild::Lost }
            }
            Self::Overflow { .. } => Class::Rebuild { reason: Rebuild::Overflow },
            Self::Invalid { has_history: true, message } if is_about_history(message) => {
                Class::Rebuild { reason: Rebuild::Poisoned }
            }
            // The API refuses a history in which it has declined to answer, as well.
            Self::Invalid { .. } | Self::Declined { .. } => Class::Reject,
            Self::NothingToSend
            | Self::NoCredential
            | Self::Refused { .. }
            | Self::Root { .. }
            // The same turn would need as much again, and be paid for again.
            | Self::OutOfMemory
            | Self::FileTooLarge
            | Self::CredentialRejected { .. }
            | Self::Billing { .. }
            | Self::ModelMissing { .. }
            | Self::NoRoom { .. }
            | Self::TooManyRounds { .. }
            | Self::OverBudget { .. } => Class::Fail,
            // Another worker may have what this one lacks, and this one later.
            Self::NotStarted { .. }
            | Self::TakenOver
            | Self::Folder { .. }
            | Self::NeverBegan { .. }
            | Self::Unserved { .. }
            | Self::Silent { .. }
            | Self::TooLong { .. }
            | Self::TooMuch(_)
            | Self::BrokeDown { .. }
            | Self::NoResult { .. }
            | Self::WrongSession { .. }
            | Self::Empty
            | Self::BrokenOff
            | Self::NotPersisted
            | Self::Api { .. } => Class::Retry { after: None },
        }
    }

    fn origin(&self) -> Origin {
        match self {
            Self::Folder { .. } | Self::NoSpace { .. } | Self::NotPersisted => Origin::Host,
            Self::TranscriptLost => Origin::LostFiles,
            Self::OverBudget { .. } => Origin::CostLimit,
            _ => Origin::Provider,
        }
    }

    /// Converts to the error of all providers, with the cost of the failed call.
    pub(super) fn with_cost(self, spent: Vec<ModelSpend>) -> providers::Error {
        let usage = (!spent.is_empty()).then(|| super::meter::total(&spent));
        let is_early = self.is_before_call();
        let error = providers::Error::from(self).with_usage(usage).with_spent(spent);
        if is_early { error.before_call() } else { error }
    }

    /// Returns true for errors that occur before the API is called, or before it can have answered.
    fn is_before_call(&self) -> bool {
        matches!(
            self,
            Self::NotStarted { .. }
                | Self::Refused { .. }
                | Self::Root { .. }
                | Self::SessionLost { .. }
                | Self::Unserved { .. }
        )
    }
}

impl From<Error> for providers::Error {
    fn from(error: Error) -> Self {
        let (code, class, origin) = (error.code(), error.class(), error.origin());
        Self::new(code, class, error).of(origin)
    }
}

/// Returns true if the API rejects a message of the history: it names the message's place, or the part.
fn is_about_history(message: &str) -> bool {
    let words = ["messages.", "tool_use", "tool_result", "signature", "thinking"];
    words.iter().any(|word| message.contains(word))
}

fn after_colon(message: &str) -> String {
    if message.is_empty() { String::new() } else { format!(": {message}") }
}

fn with_status(status: Option<u64>) -> String {
    status.map(|status| format!(" (status {status})")).unwrap_or_default()
}
