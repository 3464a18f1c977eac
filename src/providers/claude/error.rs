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
    #[error("there is nothing to answer: no message has any text")]
    NothingToSend,
    #[error("no credential is configured for Claude; add one to claude.credentials")]
    NoCredential,
    #[error("could not {doing} below {}; make room there, and make it writable", folder.display())]
    Folder {
        doing: &'static str,
        folder: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error(
        "this host has no disk space for a turn on Claude below {} ({source}): make room there, or leave the turn to another host",
        folder.display()
    )]
    NoSpace { folder: PathBuf, source: io::Error },
    #[error(
        "another call has taken the session over on this host; what this one did does not count"
    )]
    TakenOver,
    #[error("could not start {}; install Claude Code, or correct claude.program: {message}", program.display())]
    NotStarted { program: PathBuf, message: String },
    #[error("Claude Code printed no line in {} s; raise claude.first_line_timeout_secs if it needs longer", after.as_secs_f32())]
    NeverBegan { after: Duration },
    #[error(
        "Claude Code did not reach the tool server {server}, without which the turn does not begin; raise claude.mcp_timeout_secs if it \
         needs longer"
    )]
    Unserved { server: String },
    #[error("Claude Code was silent for {} s; raise claude.idle_timeout_secs if its tools need longer", after.as_secs_f32())]
    Silent { after: Duration },
    #[error("the turn was not over after {} s; raise claude.total_timeout_secs if it needs longer", after.as_secs_f32())]
    TooLong { after: Duration },
    #[error("Claude Code printed {0}, which no turn does")]
    TooMuch(#[from] TooMuch),
    #[error("Claude Code refuses to start: {message}")]
    Refused { message: String },
    #[error("{ROOT_REFUSED}: {message}")]
    Root { message: String },
    #[error(
        "the turn needed more memory than it may have, and what it ran was killed; raise claude.memory_max_bytes, or ask for less at once"
    )]
    OutOfMemory,
    #[error(
        "Claude Code broke down ({how}), as it does at its memory limit; raise claude.memory_max_bytes if that comes back{}",
        after_colon(message)
    )]
    BrokeDown { how: String, message: String },
    #[error("a file grew larger than it may; raise claude.file_max_bytes, or ask for less at once")]
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
        "the answer breaks off: the API ended it without a reason, and Claude Code took it for whole"
    )]
    BrokenOff,
    #[error(
        "Claude Code says that it answered, but its transcript does not have the answer; is the disk full or read-only?"
    )]
    NotPersisted,
    #[error("the transcript of the session is lost, here and where it was stored")]
    TranscriptLost,
    #[error("Claude Code does not know the session, or the place to go on from: {message}")]
    SessionLost { message: String },
    #[error(
        "the conversation does not fit into the model's window; start a new session, or compact it: {message}"
    )]
    Overflow { message: String },
    #[error("the API refuses the call: {message}")]
    Invalid { message: String, has_history: bool },
    #[error("the credential {credential} is not accepted; renew it: {message}")]
    CredentialRejected { credential: String, message: String },
    #[error("the account of the credential {credential} cannot pay; add credit to it: {message}")]
    Billing { credential: String, message: String },
    #[error("the credential {credential} has used up its limit: {message}")]
    RateLimited { credential: String, after: Duration, message: String },
    #[error("the API is overloaded: {message}")]
    Overloaded { message: String },
    #[error(
        "the API does not have the model, or not for this credential; correct the agent's model: {message}"
    )]
    ModelMissing { message: String },
    #[error(
        "the answer did not fit into the model's output limit, and going on did not end it; ask for less: {message}"
    )]
    NoRoom { message: String },
    #[error("the model declined to answer: {message}")]
    Declined { message: String },
    #[error(
        "the turn took more rounds than it may: {message}; raise the agent's limit, or ask for less"
    )]
    TooManyRounds { message: String },
    #[error("the turn cost more than it may: {message}; raise the budget, or ask for less")]
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
            // The API does not say for how long.
            Self::Overloaded { .. } => {
                Class::Snooze { after: Duration::ZERO, scope: Scope::Host }
            }
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
