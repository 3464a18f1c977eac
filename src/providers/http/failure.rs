//! Failures of a request, before a provider has named its server in them.

use std::{fmt, time::Duration};

use super::{Refusal, Step};
use crate::providers::deadline::GaveUp;

#[derive(Debug)]
pub(in crate::providers) enum Failure {
    /// The client or an address cannot be built, for this reason.
    SetUp(String),
    Cancelled,
    /// The call as a whole took too long.
    TooLong {
        after: Duration,
    },
    /// A step took too long.
    Silent {
        doing: Activity,
        after: Duration,
    },
    Connect(reqwest::Error),
    Broken {
        doing: Activity,
        source: reqwest::Error,
    },
    Refused(Refusal),
    Malformed(serde_json::Error),
}

/// Activity during which a call failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activity {
    AskingForModel,
    AskingForVersion,
    CountingTokens,
    SendingBatch,
    AskingForBatch,
    MakingVectors,
    WaitingForAnswer,
    ReadingAnswer,
}

impl Failure {
    pub(super) fn of_transport(doing: Activity, source: reqwest::Error) -> Self {
        // Messages have the address already, in the short form.
        let source = source.without_url();
        match source.is_connect() {
            true => Self::Connect(source),
            false => Self::Broken { doing, source },
        }
    }
}

impl Step {
    pub(super) fn failure(self, why: GaveUp) -> Failure {
        match why {
            GaveUp::Cancelled => Failure::Cancelled,
            GaveUp::Total { after } => Failure::TooLong { after },
            GaveUp::Step => Failure::Silent { doing: self.doing, after: self.limit },
        }
    }
}

impl Activity {
    /// Returns the setting that limits its time, in the section of a provider.
    pub(in crate::providers) fn timeout_key(self) -> &'static str {
        match self {
            Self::WaitingForAnswer | Self::MakingVectors => "first_byte_timeout_secs",
            _ => "idle_timeout_secs",
        }
    }
}

impl fmt::Display for Activity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AskingForModel => "the service asked about the model",
            Self::AskingForVersion => "the service asked for its version",
            Self::CountingTokens => "the server counted the prompt",
            Self::SendingBatch => "the service sent a batch",
            Self::AskingForBatch => "the service asked about a batch",
            Self::MakingVectors => "the service waited for embeddings",
            Self::WaitingForAnswer => "the service waited for the answer",
            Self::ReadingAnswer => "the answer was being sent",
        })
    }
}
