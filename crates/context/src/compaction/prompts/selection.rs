//! The texts of people that one compaction keeps, and the quotes that a summariser may add.

use std::{cmp::Reverse, collections::HashSet};

use super::{Prompts, Sentence, quotes, weight_of};
use crate::{
    calibration::Calibration,
    compaction::{pins::Haystack, requirements::Strength},
    weight::Weight,
};

/// The part of the leaving texts that a summariser may quote.
const QUOTED_DIVISOR: u64 = 4;

#[derive(Debug, Clone, Default)]
pub struct Selection {
    prompts: Prompts,
    /// All sentences that look like requirements, also those for which there is no room.
    found: Vec<Sentence>,
    /// Prompts that are not kept whole any more: a summariser may quote them.
    sources: Vec<Source>,
    room_for_sentences: Weight,
}

/// A prompt that leaves wholly or in part.
#[derive(Debug, Clone)]
pub(super) struct Source {
    pub(super) seq: i64,
    pub(super) text: String,
    pub(super) is_carried: bool,
}

impl Selection {
    pub(super) fn new(
        prompts: Prompts,
        found: Vec<Sentence>,
        sources: Vec<Source>,
        room_for_sentences: Weight,
    ) -> Self {
        let mut selection = Self { prompts, found, sources, room_for_sentences };
        selection.fill();
        let taken = selection.sentences_weight();
        let quoted = selection.sources.iter().map(|it| Weight::of_text(&it.text)).sum::<Weight>();
        let quoted = Weight::from_millitokens(quoted.millitokens() / QUOTED_DIVISOR);
        selection.room_for_sentences = room_for_sentences.min(taken + quoted);
        selection
    }

    pub fn prompts(&self) -> &Prompts {
        &self.prompts
    }

    /// Returns true if every prompt and every sentence of earlier ones is kept.
    pub(super) fn has_all(&self) -> bool {
        let has = |sentence: &Sentence| {
            let mut chosen = self.prompts.sentences.iter();
            chosen.any(|it| it.text.contains(&sentence.text)) || self.is_kept(&sentence.text)
        };
        self.sources.iter().all(|source| self.prompts.kept.iter().any(|it| it.seq == source.seq))
            && self.found.iter().all(has)
    }

    /// Prepares the prompts that are kept whole for look-ups.
    pub(in crate::compaction) fn haystack(&self) -> Haystack {
        let texts: Vec<_> = self.prompts.kept.iter().map(|it| it.text.as_str()).collect();
        Haystack::of(&texts.join("\n"))
    }

    /// Returns the tokens of the selection, with room for sentences that may still be quoted.
    pub(in crate::compaction) fn tokens(&self, calibration: &Calibration) -> u64 {
        let spare = self.room_for_sentences.saturating_sub(self.sentences_weight());
        let spare = if self.wants_quotes() { spare } else { Weight::ZERO };
        calibration.tokens(self.prompts.weight() + spare)
    }

    /// Returns true if there is text that a summariser may quote.
    pub(in crate::compaction) fn wants_quotes(&self) -> bool {
        !self.sources.is_empty()
    }

    /// Returns the tokens of all leaving prompts that no summariser reads otherwise.
    pub(in crate::compaction) fn removed_prompts_tokens(&self, calibration: &Calibration) -> u64 {
        let carried = self.sources.iter().filter(|source| source.is_carried);
        // Rounded up once more: `leaving` rounds down.
        calibration.tokens(carried.map(|source| weight_of(&source.text)).sum()) + 1
    }

    /// Returns leaving prompts that no summariser reads otherwise, the newest first, as many as fit into `max` together.
    pub(in crate::compaction) fn removed_prompts(&self, max: Weight) -> Vec<&str> {
        let mut left = max;
        let carried = self.sources.iter().rev().filter(|source| source.is_carried);
        let fitting = carried.take_while(|source| {
            let weight = weight_of(&source.text);
            let fits = weight <= left;
            left = left.saturating_sub(weight);
            fits
        });
        fitting.map(|source| source.text.as_str()).collect()
    }

    /// Adds the quotes of a summariser. Only quotes that are in a prompt count.
    pub(in crate::compaction) fn with_quotes(mut self, lines: &[String]) -> Prompts {
        let sources = || self.sources.iter().rev().map(|source| (source.seq, source.text.as_str()));
        let found = lines.iter().filter_map(|line| {
            let (seq, text) = quotes::find_quote(line, &sources())?;
            Some(Sentence { seq, text: text.to_owned(), strength: Strength::Quote })
        });
        let found: Vec<_> = found.collect();
        self.found.extend(found);
        self.fill();
        self.prompts
    }

    fn sentences_weight(&self) -> Weight {
        self.prompts.sentences.iter().map(Sentence::weight).sum()
    }

    /// Chooses the sentences: the clearest first, and of those the newest.
    fn fill(&mut self) {
        let mut ranked: Vec<_> = self.found.iter().collect();
        ranked.sort_by_key(|it| (it.strength, Reverse(it.seq)));
        let mut left = self.room_for_sentences;
        let mut seen = HashSet::new();
        let mut chosen: Vec<Sentence> = Vec::new();
        for sentence in ranked {
            let weight = sentence.weight();
            let is_new = seen.insert(sentence.text.as_str())
                && !self.is_kept(&sentence.text)
                && !chosen.iter().any(|it| it.text.contains(&sentence.text));
            if is_new && weight <= left {
                left = left.saturating_sub(weight);
                chosen.push(sentence.clone());
            }
        }
        chosen.sort_by_key(|it| it.seq);
        self.prompts.sentences = chosen;
    }

    fn is_kept(&self, text: &str) -> bool {
        self.prompts.kept.iter().any(|prompt| prompt.text.contains(text))
    }
}
