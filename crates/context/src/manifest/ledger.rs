//! The lines of a manifest, while the parts are rendered.

use std::collections::BTreeMap;

use uuid::Uuid;

use super::{ContextText, Kind, Manifest, Part, PartReason, Span};
use crate::{calibration::Calibration, digest::Digest, entry::Entry, weight::Weight};

/// Collects the lines of a manifest while the parts are rendered.
pub(crate) struct Ledger<'a> {
    calibration: &'a Calibration,
    parts: Vec<Part>,
    texts: Vec<ContextText>,
    weight: Weight,
}

impl<'a> Ledger<'a> {
    pub(crate) fn new(calibration: &'a Calibration) -> Self {
        Self { calibration, parts: Vec::new(), texts: Vec::new(), weight: Weight::ZERO }
    }

    pub(crate) fn sent(&mut self, kind: Kind, id: Option<String>, why: PartReason, text: &str) {
        self.sent_as(kind, id, why, text, Weight::of_text(text));
    }

    pub(crate) fn sent_as(
        &mut self,
        kind: Kind,
        id: Option<String>,
        why: PartReason,
        text: &str,
        weight: Weight,
    ) {
        self.sent_with(kind, id, why, Digest::of(text), weight);
    }

    pub(crate) fn sent_with(
        &mut self,
        kind: Kind,
        id: Option<String>,
        why: PartReason,
        sha256: Digest,
        weight: Weight,
    ) {
        let sha256 = Some(sha256);
        self.push(Part { sha256, sent: true, ..Part::new(kind, id, why) }, weight);
    }

    /// Adds a part whose text is stored. `open` is the text as it is stored.
    pub(crate) fn stored(
        &mut self,
        kind: Kind,
        id: Option<String>,
        why: PartReason,
        weight: Weight,
        open: String,
    ) {
        let source = match kind {
            Kind::Fact => id.as_deref().and_then(|id| id.parse().ok()),
            _ => None,
        };
        let text = ContextText { source, ..ContextText::of_part(kind, open) };
        self.sent_with(kind, id, why, text.sha256, weight);
        self.texts.push(text);
    }

    /// Adds a file. Of one that is not sent, its description is.
    pub(crate) fn attachment(
        &mut self,
        id: String,
        why: PartReason,
        sha256: Digest,
        weight: Weight,
        sent: bool,
    ) {
        let part = Part::new(Kind::Attachment, Some(id), why);
        let tokens = self.calibration.tokens(weight);
        self.weight = self.weight + weight;
        self.parts.push(Part { sha256: Some(sha256), sent, tokens, ..part });
    }

    /// Adds one line for all entries that share a reason; none for no entries.
    pub(crate) fn entries<'e>(
        &mut self,
        entries: impl Iterator<Item = &'e Entry> + Clone,
        sent: bool,
        why: PartReason,
    ) {
        let Some(span) = span_of(entries.clone()) else {
            return;
        };
        self.push(
            Part {
                span: Some(span),
                sha256: Some(Digest::chain(entries.clone().map(|entry| entry.digest))),
                sent,
                ..Part::new(Kind::Transcript, None, why)
            },
            entries.map(|entry| entry.text_weight()).sum(),
        );
    }

    /// Adds the posts. Their text is stored only if the turn does not store them as an entry.
    pub(crate) fn posts(
        &mut self,
        span: Option<Span>,
        by_trust: BTreeMap<String, usize>,
        text: &str,
    ) {
        let weight = Weight::of_text(text);
        self.stored(Kind::Posts, None, PartReason::SinceCursor, weight, text.to_owned());
        if let Some(part) = self.parts.last_mut() {
            (part.span, part.by_trust) = (span, by_trust);
        }
    }

    pub(crate) fn posts_not_shown(&mut self, span: Span, why: PartReason) {
        self.parts.push(Part { span: Some(span), ..Part::new(Kind::Posts, None, why) });
    }

    /// Adds a part of which only a note or an empty element is sent, the open text.
    pub(crate) fn left_out(
        &mut self,
        kind: Kind,
        id: Option<String>,
        why: PartReason,
        open: String,
    ) {
        let text = ContextText::of_part(kind, open);
        let sha256 = Some(text.sha256);
        self.parts.push(Part { sha256, ..Part::new(kind, id, why) });
        self.texts.push(text);
    }

    /// Records the messages that the summary covers. Transcripts begin at 1.
    pub(crate) fn folded(&mut self, to_seq: i64, generation: u32) {
        let span = Span { from_seq: 1, to_seq, count: None };
        let id = Some(format!("generation {generation}"));
        let part = Part::new(Kind::Transcript, id, PartReason::Folded);
        self.parts.push(Part { span: Some(span), ..part });
    }

    /// Continues from the manifest of an earlier call of the turn.
    pub(crate) fn going_on(
        calibration: &'a Calibration,
        manifest: &Manifest,
        weight: Weight,
    ) -> Self {
        Self { calibration, parts: manifest.parts.clone(), texts: Vec::new(), weight }
    }

    /// Removes parts that are not sent in this call.
    pub(crate) fn without(&mut self, kind: Kind, weight: Weight) {
        self.parts.retain(|part| part.kind != kind);
        self.weight = self.weight.saturating_sub(weight);
    }

    pub(crate) fn weight(&self) -> Weight {
        self.weight
    }

    /// Returns the manifest, and the texts to be stored with it.
    pub(crate) fn finish(self) -> (Manifest, Vec<ContextText>) {
        let manifest = Manifest::new(self.parts, self.calibration.tokens(self.weight));
        (manifest, self.texts)
    }

    fn push(&mut self, mut part: Part, weight: Weight) {
        part.tokens = self.calibration.tokens(weight);
        if part.sent {
            self.weight = self.weight + weight;
        }
        self.parts.push(part);
    }
}

pub(crate) fn id_of(id: Uuid) -> Option<String> {
    Some(id.to_string())
}

fn span_of<'e>(entries: impl Iterator<Item = &'e Entry>) -> Option<Span> {
    entries.fold(None, |span: Option<Span>, entry| {
        Some(match span {
            None => Span { from_seq: entry.seq, to_seq: entry.seq, count: Some(1) },
            Some(span) => Span {
                from_seq: span.from_seq.min(entry.seq),
                to_seq: span.to_seq.max(entry.seq),
                count: span.count.map(|count| count + 1),
            },
        })
    })
}
