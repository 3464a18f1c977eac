//! Requests as they were sent, so that they can be shown later, byte for byte.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::{
    Options, Request, TranscriptChain, TranscriptGrowth, anthropic, claude, ollama, openai,
};
use crate::transcript::{Message, ToolSpec};

/// A request that was sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SentRequest {
    pub envelope: Envelope,
    /// SHA-256 of the whole request.
    pub sha256: [u8; 32],
}

/// Everything of a request but its texts and tools. The simulation sends no requests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "provider", rename_all = "snake_case")]
pub enum Envelope {
    Ollama(ollama::Envelope),
    #[serde(rename = "openai")]
    OpenAi(openai::Envelope),
    Anthropic(anthropic::Envelope),
    /// The CLI sends requests of its own. This is what it was given.
    Claude(claude::Envelope),
}

/// The texts and tools of a request.
#[derive(Debug, Clone, Copy)]
pub struct CallTexts<'a> {
    pub system: &'a str,
    pub messages: &'a [Arc<Message>],
    pub tools: &'a [Arc<ToolSpec>],
    /// Text for a provider that keeps the conversation itself, and continues it.
    pub unheard: Option<&'a str>,
}

impl SentRequest {
    pub(super) fn new(envelope: Envelope, body: &[u8]) -> Self {
        Self { envelope, sha256: Sha256::digest(body).into() }
    }
}

impl Envelope {
    /// Builds the request: the body for HTTP; for Claude what its CLI is given, as JSON.
    pub fn body(&self, call: &CallTexts<'_>) -> serde_json::Result<Vec<u8>> {
        match self {
            Self::Ollama(envelope) => envelope.body(call),
            Self::OpenAi(envelope) => envelope.body(call),
            Self::Anthropic(envelope) => envelope.body(call),
            Self::Claude(envelope) => envelope.body(call),
        }
    }

    /// Returns the options of the request and its limit for the answer; `None` if its provider takes none.
    pub fn options(&self) -> Option<(Options, u32)> {
        match self {
            Self::Ollama(envelope) => Some(envelope.options()),
            Self::OpenAi(envelope) => Some(envelope.options()),
            Self::Anthropic(envelope) => Some(envelope.options()),
            Self::Claude(_) => None,
        }
    }

    /// Returns the address of the request; `None` for a program.
    pub fn url(&self) -> Option<&str> {
        match self {
            Self::Ollama(envelope) => Some(envelope.url()),
            Self::OpenAi(envelope) => Some(envelope.url()),
            Self::Anthropic(envelope) => Some(envelope.url()),
            Self::Claude(_) => None,
        }
    }

    /// Returns the header with the key of the request, in which `$KEY` stands for the key. `None`: the request had no key.
    pub fn key_header(&self) -> Option<&'static str> {
        match self {
            Self::OpenAi(envelope) => envelope.key_header(),
            Self::Anthropic(envelope) => envelope.key_header(),
            Self::Ollama(_) | Self::Claude(_) => None,
        }
    }

    /// Returns the headers that the server requires, besides those of the key and of the content.
    pub fn headers(&self) -> &'static [&'static str] {
        match self {
            Self::Anthropic(_) => anthropic::Envelope::HEADERS,
            Self::Ollama(_) | Self::OpenAi(_) | Self::Claude(_) => &[],
        }
    }

    /// Returns the name of the file in which the provider keeps the conversation; `None` if it is sent the whole with each call.
    pub fn transcript_file(&self, external_id: Uuid) -> Option<String> {
        match self {
            Self::Ollama(_) | Self::OpenAi(_) | Self::Anthropic(_) => None,
            Self::Claude(_) => Some(claude::Envelope::transcript_file(external_id)),
        }
    }

    /// Reads the part of that file that leads to an answer; `None` if the file has no such answer.
    pub fn read_transcript(&self, file: &[u8], answer_id: &str) -> Option<TranscriptChain> {
        match self {
            Self::Ollama(_) | Self::OpenAi(_) | Self::Anthropic(_) => None,
            Self::Claude(_) => claude::Envelope::read_transcript(file, answer_id),
        }
    }

    /// Returns the messages that the call adds to that file before its answer.
    pub fn transcript_growth(&self, call: &CallTexts<'_>) -> TranscriptGrowth {
        match self {
            Self::Ollama(_) | Self::OpenAi(_) | Self::Anthropic(_) => TranscriptGrowth::default(),
            Self::Claude(envelope) => envelope.transcript_growth(call),
        }
    }
}

impl<'a> CallTexts<'a> {
    pub fn of(request: &'a Request) -> Self {
        let resumed = request.conversation.as_ref().filter(|kept| kept.head.is_some());
        Self {
            system: &request.system,
            messages: &request.messages,
            tools: &request.tools,
            unheard: resumed.and_then(|kept| kept.unheard.as_deref()),
        }
    }
}
