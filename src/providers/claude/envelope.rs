//! The input of the CLI besides its system text and the prompt.

use std::ffi::OsString;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{neutralise, transcript};
use crate::{
    providers::{CallTexts, TranscriptChain, TranscriptGrowth},
    transcript::{Message, Role},
};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Envelope {
    /// The arguments of the program. They contain no secrets: those are in its environment, or come through a pipe.
    arguments: Vec<String>,
    /// True if it continues its own conversation, and is sent only what is new.
    continues: bool,
}

/// Everything that the CLI is given.
#[derive(Debug, Serialize)]
struct Body<'a> {
    arguments: &'a [String],
    system: &'a str,
    prompt: &'a str,
}

/// Returns the text that the CLI is sent; `None` if there is nothing to send.
pub(super) fn prompt(call: &CallTexts<'_>) -> Option<String> {
    match call.unheard {
        Some(unheard) => neutralise::to_prompt(unheard.to_owned()),
        None => neutralise::prompt(call.messages),
    }
}

impl Envelope {
    pub(super) fn new(arguments: &[OsString], continues: bool) -> Self {
        let arguments = arguments.iter().map(|it| it.to_string_lossy().into_owned()).collect();
        Self { arguments, continues }
    }

    pub(in crate::providers) fn body(&self, call: &CallTexts<'_>) -> serde_json::Result<Vec<u8>> {
        let call = CallTexts { unheard: call.unheard.filter(|_| self.continues), ..*call };
        let prompt = prompt(&call).unwrap_or_default();
        serde_json::to_vec(&self.body_of(call.system, &prompt))
    }

    /// Returns the messages that the CLI's transcript has of the conversation before the answer: those that the call has added.
    pub(in crate::providers) fn transcript_growth(&self, call: &CallTexts<'_>) -> TranscriptGrowth {
        let call = CallTexts { unheard: call.unheard.filter(|_| self.continues), ..*call };
        let prompt = prompt(&call).map(|prompt| Message::new(Role::User, prompt));
        let history = match self.continues {
            true => Vec::new(),
            false => transcript::synthesised_messages(neutralise::history(call.messages)),
        };
        TranscriptGrowth {
            is_new: !self.continues,
            messages: history.into_iter().chain(prompt).collect(),
        }
    }

    pub(in crate::providers) fn transcript_file(session: Uuid) -> String {
        transcript::main_name(session)
    }

    pub(in crate::providers) fn read_transcript(
        file: &[u8],
        answer_id: &str,
    ) -> Option<TranscriptChain> {
        transcript::chain_to_answer(file, answer_id)
    }

    pub(super) fn to_json(&self, system: &str, prompt: &str) -> Vec<u8> {
        // Texts only, so there is nothing that JSON could not say.
        serde_json::to_vec(&self.body_of(system, prompt)).unwrap_or_default()
    }

    fn body_of<'a>(&'a self, system: &'a str, prompt: &'a str) -> Body<'a> {
        Body { arguments: &self.arguments, system, prompt }
    }
}
