//! Records of the contexts of a turn's calls, as they are stored.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use serde_json::Value;

use super::{fate::Fate, ledger, turn::Turn};
use crate::{
    context::{
        Digest, Manifest,
        manifest::{ContextText, Kind, PartReason, RequestHashes, TextKind},
    },
    domain::messages,
    jobs::run_turn::begin::open_turn::CallRecord,
    providers::SentRequest,
    transcript::Message,
};

/// The contexts of all calls that are recorded.
#[derive(Debug)]
pub struct Contexts {
    /// Manifests of the calls before the last one, in order.
    pub rounds: Vec<ManifestRecord>,
    /// Manifest of the last call; `None` if it was not made.
    pub last: Option<ManifestRecord>,
    /// Texts that no row has, each once.
    pub texts: Vec<ContextText>,
}

/// A manifest as JSON, with its digest.
#[derive(Debug)]
pub struct ManifestRecord {
    pub manifest: Value,
    pub sha256: Digest,
}

impl Contexts {
    /// Builds the records. `new` are the messages that the turn stores.
    pub fn of(turn: &Turn<'_>, fate: &Fate, new: &[messages::New]) -> serde_json::Result<Self> {
        let called = turn.called;
        let mut texts = Texts { is_answered: fate.is_answered(), ..Texts::default() };
        let mut record = |call: &CallRecord, sent: Option<&SentRequest>| {
            let mut manifest = call.manifest.clone();
            call.texts.iter().for_each(|text| texts.add(text.clone()));
            if !call.rounds.is_empty() && !has_rounds(new, &manifest, call.rounds.len()) {
                manifest.set_rounds(texts.add_rounds(&call.rounds)?);
            }
            manifest.request = sent.map(|sent| texts.add_request(sent)).transpose()?;
            let sha256 = manifest.sha256;
            Ok(ManifestRecord { sha256, manifest: serde_json::to_value(&manifest)? })
        };
        let rounds = called.rounds.calls.iter();
        let rounds = rounds.map(|call| record(&call.context, call.sent.as_deref()));
        let rounds = rounds.collect::<serde_json::Result<_>>()?;
        let last = match ledger::outcome(fate, &called.result) {
            Some(_) => Some(record(&turn.opened.context, called.sent.as_deref())?),
            None => None,
        };
        Ok(Self { rounds, last, texts: texts.all })
    }
}

#[derive(Default)]
struct Texts {
    /// True if the turn stores the posts as an entry of the transcript.
    is_answered: bool,
    all: Vec<ContextText>,
    added: HashSet<Digest>,
    /// Digests of rounds by the address of their message. Calls share messages, and all of them live until the turn has ended.
    rounds: HashMap<usize, Digest>,
}

impl Texts {
    fn add(&mut self, text: ContextText) {
        let is_stored_anyway = self.is_answered && text.kind == TextKind::Part(Kind::Posts);
        if !is_stored_anyway && self.added.insert(text.sha256) {
            self.all.push(text);
        }
    }

    /// Adds the rounds as texts, one for each message, so that calls that sent the same share it. Returns the digest of their list.
    fn add_rounds(&mut self, messages: &[Arc<Message>]) -> serde_json::Result<Digest> {
        let mut digests = Vec::with_capacity(messages.len());
        for message in messages {
            let address = Arc::as_ptr(message).addr();
            if let Some(known) = self.rounds.get(&address) {
                digests.push(*known);
                continue;
            }
            let text = ContextText::of_part(Kind::Rounds, serde_json::to_string(message)?);
            digests.push(text.sha256);
            self.rounds.insert(address, text.sha256);
            self.add(text);
        }
        let list = ContextText::of_part(Kind::Rounds, serde_json::to_string(&digests)?);
        let sha256 = list.sha256;
        self.add(list);
        Ok(sha256)
    }

    fn add_request(&mut self, sent: &SentRequest) -> serde_json::Result<RequestHashes> {
        let envelope = serde_json::to_string(&sent.envelope)?;
        let envelope = ContextText::new(TextKind::Envelope, envelope);
        let hashes =
            RequestHashes { envelope: envelope.sha256, sha256: Digest::from_bytes(sent.sha256) };
        self.add(envelope);
        Ok(hashes)
    }
}

/// Returns true if the stored messages of the turn begin with the rounds as the call has sent them: results may have been shortened
/// since, or before.
fn has_rounds(new: &[messages::New], manifest: &Manifest, n_rounds: usize) -> bool {
    let mut lines = manifest.parts.iter().filter(|part| part.kind == Kind::Rounds);
    let (Some(line), None, Some(stored)) = (lines.next(), lines.next(), new.get(..n_rounds)) else {
        return false;
    };
    let digests = stored.iter().map(|new| Digest::from_bytes(new.digest));
    line.why == PartReason::ThisTurn && line.sha256 == Some(Digest::chain(digests))
}
