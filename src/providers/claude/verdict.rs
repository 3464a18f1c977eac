//! Judges the output of a turn: it is an answer or an error.
//!
//! Neither the exit code nor the subtype of the result decides. Failures of the API come as `success` with `is_error`, and output that was
//! cut off comes with code 0. A result without an error is an answer, however the process ended after it. The caller then checks in the
//! transcript that it was stored.

use std::time::Duration;

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::{
    drive::{EndReason, TurnOutput, Watch},
    error::Error,
    launch::{Exit, guard},
};
use crate::providers::stream_json::TurnResult;

/// Facts that a verdict needs besides the output.
#[derive(Debug, Clone, Copy)]
pub(super) struct Case<'a> {
    pub session: Uuid,
    pub has_history: bool,
    pub credential: &'a str,
    pub program: &'a std::path::Path,
    pub required_servers: &'a [String],
    pub has_memory_limit: bool,
    pub rate_limit_pause: Duration,
    pub now: DateTime<Utc>,
}

/// Measured: SIGTRAP and SIGABRT end the CLI when it gets no more memory.
const SIGTRAP: i32 = 5;
const SIGABRT: i32 = 6;
const SIGXFSZ: i32 = 25;
/// Maximum length of the CLI's own message in an error.
const MAX_MESSAGE_CHARS: usize = 500;
/// Maximum pause of a rate limit. A reset that is further away is not believed.
const MAX_PAUSE: Duration = Duration::from_secs(8 * 24 * 3600);
/// Minimum pause: a reset in the past would lead to calls without end.
const MIN_PAUSE: Duration = Duration::from_secs(5);

impl Case<'_> {
    pub(super) fn judge<'h>(
        &self,
        heard: &'h TurnOutput,
        ended: EndReason,
        watch: &Watch,
    ) -> Result<&'h TurnResult, Error> {
        match (ended, &heard.result) {
            (EndReason::Cancelled, _) => Err(Error::Cancelled),
            // Before or after its result: output beyond the limits is not trusted.
            (EndReason::TooMuch(too_much), _) => Err(Error::TooMuch(too_much)),
            // The steps that follow a timeout make the CLI print a result, of a turn that was cut off.
            (EndReason::Unserved, _) => {
                let server =
                    heard.find_missing_server(self.required_servers).unwrap_or_default().to_owned();
                Err(Error::Unserved { server })
            }
            (EndReason::NeverBegan, _) => Err(Error::NeverBegan { after: watch.first_line }),
            (EndReason::Silent, _) => Err(Error::Silent { after: watch.idle }),
            (EndReason::TooLong, _) => Err(Error::TooLong { after: watch.total }),
            (EndReason::Exited(exit), None) => Err(self.no_result(heard, Some(exit))),
            (EndReason::Hung, None) => Err(self.no_result(heard, None)),
            (EndReason::Exited(_) | EndReason::Hung, Some(result)) => {
                self.judge_result(heard, result)
            }
        }
    }

    fn judge_result<'h>(
        &self,
        heard: &'h TurnOutput,
        result: &'h TurnResult,
    ) -> Result<&'h TurnResult, Error> {
        let wanted = self.session.to_string();
        if let Some(got) = heard.sessions.iter().find(|session| **session != wanted) {
            return Err(Error::WrongSession { got: short(got), wanted });
        }
        if result.is_error != Some(false) || result.subtype != "success" {
            return Err(self.failed(heard, result));
        }
        let has_value = result.structured_output.as_ref().is_some_and(|value| !value.is_null());
        if !has_value && heard.answer.text().trim().is_empty() {
            return Err(Error::Empty);
        }
        // Measured: a stream that ends between two blocks is reported as success, without a cost. Only the stop reason is missing.
        if result.stop_reason.is_none() {
            return Err(Error::BrokenOff);
        }
        Ok(result)
    }

    fn failed(&self, heard: &TurnOutput, result: &TurnResult) -> Error {
        let message = message(heard, result);
        if let Some(lost) = lost(&message) {
            return lost;
        }
        match result.subtype.as_str() {
            "error_max_turns" => return Error::TooManyRounds { message },
            "error_max_budget_usd" => return Error::OverBudget { message },
            _ => {}
        }
        if is_overflow(result, &message) {
            return Error::Overflow { message };
        }
        if result.stop_reason.as_deref() == Some("refusal") {
            return Error::Declined { message };
        }
        let word = heard.api_error.as_deref().unwrap_or_default();
        self.by_word(word, result.api_error_status, message, heard)
    }

    /// Chooses the error. The CLI's code comes before the status: it exists when the status does not, and says more.
    fn by_word(
        &self,
        word: &str,
        status: Option<u64>,
        message: String,
        heard: &TurnOutput,
    ) -> Error {
        let credential = self.credential.to_owned();
        match (word, status) {
            ("billing_error", _) => Error::Billing { credential, message },
            ("authentication_failed", _) | (_, Some(401 | 403)) => {
                Error::CredentialRejected { credential, message }
            }
            ("rate_limit", _) | (_, Some(429)) => {
                Error::RateLimited { credential, after: self.pause(heard), message }
            }
            (_, Some(503 | 529)) => Error::Overloaded { message },
            // Measured: for status 529 the CLI gives the text and no status.
            (_, None) if message.contains("529 Overloaded") => Error::Overloaded { message },
            (_, None) if has_no_connection(&message) => Error::Connect { message },
            ("model_not_found", _) | (_, Some(404)) => Error::ModelMissing { message },
            ("max_output_tokens", _) => Error::NoRoom { message },
            // The whole request is too large: a successor session sends less.
            (_, Some(413)) => Error::Overflow { message },
            ("invalid_request", _) | (_, Some(400 | 422)) => {
                Error::Invalid { message, has_history: self.has_history }
            }
            _ => Error::Api { status, message },
        }
    }

    /// Returns the pause until the time that the provider named, if that is plausible.
    fn pause(&self, heard: &TurnOutput) -> Duration {
        let at = heard.rate_limit_resets_at.and_then(|at| i64::try_from(at).ok());
        let at = at.and_then(|at| DateTime::from_timestamp(at, 0));
        let named = at.and_then(|at| (at - self.now).to_std().ok());
        named.filter(|pause| *pause <= MAX_PAUSE).unwrap_or(self.rate_limit_pause).max(MIN_PAUSE)
    }

    fn no_result(&self, heard: &TurnOutput, exit: Option<Exit>) -> Error {
        let stderr = heard.stderr();
        let message = short(&stderr);
        if let Some((_, why)) = stderr.split_once(guard::START_FAILED) {
            return Error::NotStarted { program: self.program.to_owned(), message: short(why) };
        }
        if let Some(lost) = lost(&message) {
            return lost;
        }
        if stderr.contains(guard::OUT_OF_MEMORY) {
            return Error::OutOfMemory;
        }
        let how = match exit {
            Some(Exit::Code(code)) => format!("code {code}"),
            Some(Exit::Signal(signal)) => format!("signal {signal}"),
            Some(Exit::Killed) => "killed".to_owned(),
            None => "it closed its output without exiting".to_owned(),
        };
        match exit {
            Some(Exit::Signal(SIGXFSZ)) => return Error::FileTooLarge,
            Some(Exit::Signal(SIGTRAP | SIGABRT)) if self.has_memory_limit => {
                return Error::BrokeDown { how, message };
            }
            _ => {}
        }
        // Measured: errors of the command line are on standard error only, with code 1. Anything else that ends so early may work the next
        // time.
        let is_usage = heard.n_lines == 0 && exit == Some(Exit::Code(1)) && says_usage(&stderr);
        match is_usage {
            true if stderr.contains("root/sudo") => Error::Root { message },
            true => Error::Refused { message },
            false => Error::NoResult { how, message },
        }
    }
}

fn says_usage(stderr: &str) -> bool {
    // Another process uses the session: it may be gone the next time.
    let is_busy = stderr.contains("already in use");
    let mut lines = stderr.lines();
    !is_busy
        && lines.any(|line| {
            line.starts_with("Error:") || line.starts_with("error:") || line.contains("root/sudo")
        })
}

/// Returns true if the CLI could not connect to the API: the request was not sent. A connection that is reset may have carried it.
fn has_no_connection(message: &str) -> bool {
    // Measured for an address at which nothing listens: ConnectionRefused. The others are the names of the runtime and of the system.
    const CODES: [&str; 9] = [
        "ConnectionRefused",
        "FailedToOpenSocket",
        "ECONNREFUSED",
        "ENOTFOUND",
        "EAI_AGAIN",
        "ENETUNREACH",
        "EHOSTUNREACH",
        "ENETDOWN",
        "EADDRNOTAVAIL",
    ];
    let named = message.split_once("Unable to connect to API (");
    let code = named.and_then(|(_, rest)| rest.split_once(')'));
    code.is_some_and(|(code, _)| CODES.contains(&code))
}

fn lost(message: &str) -> Option<Error> {
    const LOST: [&str; 2] = ["No conversation found", "No message found with message.uuid"];
    let is_lost = LOST.iter().any(|words| message.contains(words));
    is_lost.then(|| Error::SessionLost { message: message.to_owned() })
}

fn is_overflow(result: &TurnResult, message: &str) -> bool {
    result.terminal_reason.as_deref() == Some("prompt_too_long")
        || message.to_lowercase().contains("prompt is too long")
}

fn message(heard: &TurnOutput, result: &TurnResult) -> String {
    let errors = result.errors.join("; ");
    let said = [heard.api_message.as_str(), &errors, result.result.as_deref().unwrap_or_default()];
    let said = said.into_iter().find(|said| !said.trim().is_empty());
    short(said.unwrap_or("no reason was given"))
}

fn short(text: &str) -> String {
    let text = text.trim();
    match text.char_indices().nth(MAX_MESSAGE_CHARS) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_was_not_sent_is_told_from_one_that_may_have_been() {
        let says = |code: &str| format!("API Error: Unable to connect to API ({code})");
        for code in ["ConnectionRefused", "ENOTFOUND", "EAI_AGAIN", "FailedToOpenSocket"] {
            assert!(has_no_connection(&says(code)), "{code}");
        }
        for code in ["ECONNRESET", "EPIPE", "ETIMEDOUT", "CERT_HAS_EXPIRED", ""] {
            assert!(!has_no_connection(&says(code)), "{code}");
        }
        assert!(!has_no_connection("Connection to the API was lost (ENOTFOUND)"));
        assert!(!has_no_connection("Unable to connect to API (ENOTFOUND"));
    }
}
