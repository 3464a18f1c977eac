//! The record of a call beside turns, for a summary or for facts. With it, the stored texts and the messages of the session, the call is
//! assembled again.
//!
//! Such a call quotes messages that the session has anyway. The record refers to these messages, so that a stretch of a transcript is not
//! stored again with each summary of it. Pieces between them that are shorter than their digest are a part of the record; all other texts
//! are stored by their digest.

use std::{collections::HashMap, ops::Range, sync::Arc};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{
    conversation::user,
    digest::Digest,
    manifest::{ContextText, Kind, RequestHashes, TextKind},
    replay::ReplayedCall,
    xml::escape_text,
};

/// Version of the record. Raised when texts of messages are quoted in another way.
pub const RENDERING: u32 = 1;
/// Digits of a digest: a shorter piece is not worth a text of its own.
const SHORT_MAX_BYTES: usize = 64;

/// A prompt under construction, with the places where it is cut for storage.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PromptBuilder {
    pub text: String,
    /// In order and without gaps.
    pub cuts: Vec<Cut>,
}

/// A piece of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    /// The piece begins at the end of the one before.
    pub end: usize,
    pub source: Source,
}

/// The row that a piece of a prompt was made from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// No row that has to be removed before the session.
    None,
    Fact(Uuid),
    /// Escaped bytes of the text of a message.
    Message {
        id: Uuid,
        bytes: Range<usize>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptManifest {
    pub rendering: u32,
    /// Digest of the system text.
    pub system: Digest,
    /// The prompt, in pieces.
    pub prompt: Vec<PromptPiece>,
    /// Chain of the digests of system text and prompt.
    pub sha256: Digest,
    pub estimated_tokens: u64,
    /// The request as it was sent; `None` if the provider sends none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<RequestHashes>,
}

/// A piece of a prompt, as the record has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PromptPiece {
    /// A text that is shorter than its digest.
    Short(String),
    /// A stored text.
    Text(Digest),
    /// A stored text about a fact.
    Fact(Digest),
    /// Bytes of the text of a message. They are escaped.
    Message { id: Uuid, from: usize, to: usize },
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("a text of kind `{}` is not stored: it was erased, or could not be stored after the call", kind.as_str())]
    Removed { kind: TextKind },
    #[error("the prompt differs from what was sent: messages or the record were changed")]
    Changed,
    #[error(
        "the context was stored by a version of Dalsegno whose record (number {0}) this one does not know: a newer one shows it"
    )]
    Rendering(u32),
}

impl PromptBuilder {
    /// Begins a block behind an empty line.
    pub fn begin_block(&mut self) {
        if !self.text.is_empty() {
            self.text.push_str("\n\n");
            self.cut(Source::None);
        }
    }

    /// Adds a text of the current block.
    pub fn push(&mut self, text: &str) {
        self.text.push_str(text);
        match self.cuts.last_mut() {
            Some(last) if last.source == Source::None => last.end = self.text.len(),
            _ => self.cut(Source::None),
        }
    }

    /// Adds a whole block.
    pub fn push_block(&mut self, text: &str) {
        self.begin_block();
        self.push(text);
    }

    /// Adds a text about a fact.
    pub fn push_fact(&mut self, text: &str, id: Uuid) {
        self.text.push_str(text);
        self.cut(Source::Fact(id));
    }

    /// Adds a text that contains bytes of a message.
    pub fn push_quoting(&mut self, text: &str, message: &str, id: Uuid, bytes: Range<usize>) {
        let quote = escape_text(message.get(bytes.clone()).unwrap_or_default());
        match text.split_once(&*quote).filter(|_| !quote.is_empty()) {
            Some((before, after)) => {
                self.push(before);
                self.text.push_str(&quote);
                self.cut(Source::Message { id, bytes });
                self.push(after);
            }
            None => self.push(text),
        }
    }

    fn cut(&mut self, source: Source) {
        self.cuts.push(Cut { end: self.text.len(), source });
    }
}

impl PromptManifest {
    /// Builds the record of a call that was not sent yet, with the texts to store.
    pub fn new(
        system: &str,
        prompt: &str,
        cuts: &[Cut],
        estimated_tokens: u64,
    ) -> (Self, Vec<ContextText>) {
        let mut texts = vec![ContextText::new(TextKind::Instructions, system)];
        let mut pieces = Vec::with_capacity(cuts.len());
        let mut from = 0;
        for cut in cuts {
            let text = prompt.get(from..cut.end).unwrap_or_default();
            from = cut.end;
            pieces.push(match &cut.source {
                Source::Message { id, bytes } => {
                    PromptPiece::Message { id: *id, from: bytes.start, to: bytes.end }
                }
                Source::None if text.len() <= SHORT_MAX_BYTES => PromptPiece::Short(text.into()),
                Source::None => {
                    let text = ContextText::new(TextKind::Prompt, text);
                    let sha256 = text.sha256;
                    texts.push(text);
                    PromptPiece::Text(sha256)
                }
                Source::Fact(id) => {
                    let text = ContextText::of_part(Kind::Fact, text);
                    let sha256 = text.sha256;
                    texts.push(ContextText { source: Some(*id), ..text });
                    PromptPiece::Fact(sha256)
                }
            });
        }
        let manifest = Self {
            rendering: RENDERING,
            system: Digest::of(system),
            prompt: pieces,
            sha256: chain(system, prompt),
            estimated_tokens,
            request: None,
        };
        (manifest, texts)
    }

    /// Lists the digests of all stored texts, without the envelope.
    pub fn digests(&self) -> Vec<Digest> {
        let of_prompt = self.prompt.iter().filter_map(|piece| match piece {
            PromptPiece::Text(sha256) | PromptPiece::Fact(sha256) => Some(*sha256),
            PromptPiece::Short(_) | PromptPiece::Message { .. } => None,
        });
        std::iter::once(self.system).chain(of_prompt).collect()
    }

    /// Lists the messages that the prompt quotes.
    pub fn message_ids(&self) -> Vec<Uuid> {
        let ids = self.prompt.iter().filter_map(|piece| match piece {
            PromptPiece::Message { id, .. } => Some(*id),
            _ => None,
        });
        let mut ids: Vec<Uuid> = ids.collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    /// Rebuilds the call, from stored texts by their digests and from the texts of messages.
    pub fn replay(
        &self,
        texts: &HashMap<Digest, String>,
        messages: &HashMap<Uuid, String>,
    ) -> Result<ReplayedCall, Error> {
        if self.rendering != RENDERING {
            return Err(Error::Rendering(self.rendering));
        }
        let stored = |sha256, kind| texts.get(sha256).ok_or(Error::Removed { kind });
        let system = stored(&self.system, TextKind::Instructions)?.clone();
        let mut prompt = String::new();
        for piece in &self.prompt {
            match piece {
                PromptPiece::Short(text) => prompt.push_str(text),
                PromptPiece::Text(sha256) => prompt.push_str(stored(sha256, TextKind::Prompt)?),
                PromptPiece::Fact(sha256) => {
                    prompt.push_str(stored(sha256, TextKind::Part(Kind::Fact))?);
                }
                PromptPiece::Message { id, from, to } => {
                    let kind = TextKind::Part(Kind::Transcript);
                    let text = messages.get(id).ok_or(Error::Removed { kind })?;
                    let quote = text.get(*from..*to).ok_or(Error::Changed)?;
                    prompt.push_str(&escape_text(quote));
                }
            }
        }
        if chain(&system, &prompt) != self.sha256 {
            return Err(Error::Changed);
        }
        let messages = vec![Arc::new(user(prompt))];
        Ok(ReplayedCall { system, messages, tools: Vec::new(), unheard: None })
    }
}

fn chain(system: &str, prompt: &str) -> Digest {
    Digest::chain([Digest::of(system), Digest::of(prompt)])
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: &str =
        "A text that is longer than its own digest, so it is stored beside the record.";

    #[test]
    fn a_prompt_is_rebuilt_from_texts_and_messages() {
        let (fact, message) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let said = "Write <all> of it. ".repeat(20);
        let quoted = format!("<message>{}</message>\n", escape_text(&said[6..]));
        let mut built = PromptBuilder::default();
        built.push_block("<conversation>\n");
        built.push_quoting(&quoted, &said, message, 6..said.len());
        built.push("</conversation>");
        built.push_block(LONG);
        built.begin_block();
        built.push_fact("<fact>Short.</fact>", fact);
        let (manifest, texts) = PromptManifest::new("Instructions.", &built.text, &built.cuts, 7);
        let kinds: Vec<_> = texts.iter().map(|text| (text.kind, text.source)).collect();
        let expected = [
            (TextKind::Instructions, None),
            (TextKind::Prompt, None),
            (TextKind::Part(Kind::Fact), Some(fact)),
        ];
        assert_eq!(kinds, expected);
        let stored = serde_json::to_string(&manifest).unwrap();
        assert!(!stored.contains("Write"), "{stored}");
        let manifest: PromptManifest = serde_json::from_str(&stored).unwrap();
        let mut texts: HashMap<_, _> =
            texts.into_iter().map(|text| (text.sha256, text.text.to_string())).collect();
        let mut messages = HashMap::from([(message, said.clone())]);
        let replayed = manifest.replay(&texts, &messages).unwrap();
        assert_eq!((&*replayed.system, &replayed.messages[0].text), ("Instructions.", &built.text));
        messages.insert(message, said.replace("all", "ALL"));
        assert_eq!(manifest.replay(&texts, &messages), Err(Error::Changed));
        messages.clear();
        let kind = TextKind::Part(Kind::Transcript);
        assert_eq!(manifest.replay(&texts, &messages), Err(Error::Removed { kind }));
        messages.insert(message, said);
        texts.retain(|_, text| !text.contains("Short."));
        let kind = TextKind::Part(Kind::Fact);
        assert_eq!(manifest.replay(&texts, &messages), Err(Error::Removed { kind }));
    }

    #[test]
    fn a_quote_may_be_empty_and_may_look_like_its_element() {
        for said in ["", "message", "<message>", "&"] {
            let text = format!("<message from=\"person\">{}</message>\n", escape_text(said));
            let mut built = PromptBuilder::default();
            built.push_quoting(&text, said, Uuid::nil(), 0..said.len());
            assert_eq!(built.text, text);
            let (manifest, texts) = PromptManifest::new("", &built.text, &built.cuts, 0);
            let texts = texts.into_iter().map(|it| (it.sha256, it.text.to_string())).collect();
            let messages = HashMap::from([(Uuid::nil(), said.to_owned())]);
            assert_eq!(manifest.replay(&texts, &messages).unwrap().messages[0].text, text);
        }
    }
}
