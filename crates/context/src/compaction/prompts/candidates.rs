//! The texts of people that a compaction may keep.

use std::{borrow::Cow, cell::OnceCell, collections::HashSet};

use super::{Prompt, Prompts, Selection, Sentence, read_parts, selection::Source, weight_of};
use crate::{
    compaction::{
        archive_reference::shorten,
        generations::View,
        requirements::{self, Revocation, RevokedSubject},
    },
    weight::Weight,
};

/// The part of the share that one prompt may take, so that one paste does not push out all others.
const SHARE_DIVISOR: u64 = 4;
/// The part of the remaining room that one prompt may take, if that is less.
const ROOM_DIVISOR: u64 = 3;
/// The percentage of the room for whole prompts, if not all of them fit.
const WHOLE_PERCENT: u64 = 67;

pub(in crate::compaction) struct Candidates<'a> {
    /// Prompts in order.
    prompts: Vec<Candidate<'a>>,
    /// Sentences of prompts that left earlier, without those that were revoked.
    sentences: Vec<&'a Sentence>,
    archived: u64,
    /// Last entry that earlier generations have read.
    carried_to_seq: i64,
    share: Weight,
    revocations: Revocations,
}

/// Revocations with the positions of their prompts.
struct Revocations(Vec<(i64, Revocation)>);

struct Candidate<'a> {
    seq: i64,
    text: &'a str,
    is_shortened: bool,
    /// True if its turn was folded earlier, so that no summariser reads it again.
    is_carried: bool,
    requirements: OnceCell<Vec<Sentence>>,
}

impl<'a> Candidates<'a> {
    /// Collects the candidates. `view.tail[..fold]` is folded. Later prompts of people may revoke requirements in it.
    pub(in crate::compaction) fn of(view: View<'a>, fold: usize, share: Weight) -> Self {
        let carried = view.compaction.map(|compaction| &compaction.prompts);
        let (folded, shown) = view.tail.split_at(fold.min(view.tail.len()));
        let folded = folded.iter().filter(|entry| entry.is_by_person());
        let shown = shown.iter().filter(|entry| entry.is_by_person());
        let kept = carried.map_or(&[][..], |prompts| &prompts.kept).iter();
        let mut prompts: Vec<_> = kept
            .map(|it| Candidate::new(it.seq, &it.text, it.is_shortened, true))
            .chain(folded.map(|it| Candidate::new(it.seq, &it.message.text, false, false)))
            .filter(|candidate| !candidate.text.trim().is_empty())
            .collect();
        keep_newest_of_equals(&mut prompts);
        let sentences = carried.map_or(&[][..], |prompts| &prompts.sentences);
        let said = sentences.iter().map(|it| (it.seq, it.text.as_str()));
        let said = said.chain(prompts.iter().map(|it| (it.seq, it.text)));
        let said = said.chain(shown.map(|entry| (entry.seq, entry.message.text.as_str())));
        let revocations = said.flat_map(|(seq, text)| {
            let found = read_parts(text).flat_map(requirements::revocations);
            found.map(move |revocation| (seq, revocation)).collect::<Vec<_>>()
        });
        let revocations = Revocations(revocations.collect());
        let sentences = sentences.iter().filter(|it| !revocations.take_back(&it.text, it.seq));
        Self {
            sentences: sentences.collect(),
            revocations,
            prompts,
            archived: carried.map_or(0, |prompts| prompts.archived),
            carried_to_seq: view.compaction.map_or(0, |compaction| compaction.to_seq),
            share,
        }
    }

    /// Returns the prompts that earlier generations kept. Their contents count as said by a person.
    pub(in crate::compaction) fn carried_texts(&self) -> impl Iterator<Item = &'a str> {
        self.prompts.iter().filter(|it| it.is_carried).map(|it| it.text)
    }

    /// Returns true if a requirement of a person was revoked later. One that is in no prompt any more can only be
    /// revoked by texts that earlier generations have not read.
    pub(in crate::compaction) fn is_requirement_revoked(&self, text: &str) -> bool {
        let said = self.prompts.iter().rev().find(|it| it.text.contains(text));
        self.revocations.take_back(text, said.map_or(self.carried_to_seq, |it| it.seq))
    }

    /// Selects what is kept within `room`: everything if it fits, else the newest prompts and the clearest sentences of the others.
    pub(in crate::compaction) fn select(&self, room: Weight) -> Selection {
        let inner = room.saturating_sub(super::frame());
        let part =
            |weight: Weight, divisor| Weight::from_millitokens(weight.millitokens() / divisor);
        let one_max = part(self.share, SHARE_DIVISOR).min(part(inner, ROOM_DIVISOR));
        let whole_max = Weight::from_millitokens(inner.millitokens() * WHOLE_PERCENT / 100);
        let all = self.within(inner, one_max, inner);
        match all.has_all() {
            true => all,
            false => self.within(whole_max, one_max, inner),
        }
    }

    fn within(&self, whole_max: Weight, one_max: Weight, room: Weight) -> Selection {
        let mut kept: Vec<Prompt> = Vec::new();
        let mut filled = Weight::ZERO;
        let mut first_kept = self.prompts.len();
        for candidate in self.prompts.iter().rev() {
            let Some(prompt) = candidate.within(one_max) else { break };
            let with_this = filled + weight_of(&prompt.text);
            if with_this > whole_max {
                break;
            }
            filled = with_this;
            kept.push(prompt);
            first_kept -= 1;
        }
        kept.reverse();
        let leaving = &self.prompts[..first_kept];
        let shortened = self.prompts[first_kept..].iter().zip(&kept);
        let shortened =
            shortened.filter(|(candidate, kept)| kept.is_shortened && !candidate.is_shortened);
        let sources: Vec<_> = leaving
            .iter()
            .chain(shortened.map(|(candidate, _)| candidate))
            .map(Candidate::source)
            .collect();
        let is_source: HashSet<i64> = sources.iter().map(|source| source.seq).collect();
        let found = self.prompts.iter().filter(|it| is_source.contains(&it.seq));
        let found = found.flat_map(|candidate| candidate.requirements(&self.revocations));
        let sentences = self.sentences.iter().copied().chain(found).cloned().collect();
        let archived = self.archived + u64::try_from(leaving.len()).unwrap_or(0);
        let prompts = Prompts { kept, sentences: Vec::new(), archived };
        Selection::new(prompts, sentences, sources, room.saturating_sub(filled))
    }
}

impl Revocations {
    /// Returns true if a requirement at this position was revoked after it.
    fn take_back(&self, requirement: &str, seq: i64) -> bool {
        let mut later = self.0.iter().filter(|(at, _)| *at > seq).peekable();
        if later.peek().is_none() {
            return false;
        }
        let matter = RevokedSubject::of(requirement);
        later.any(|(_, revocation)| revocation.takes_back(&matter))
    }
}

impl<'a> Candidate<'a> {
    fn new(seq: i64, text: &'a str, is_shortened: bool, is_carried: bool) -> Self {
        Self { seq, text, is_shortened, is_carried, requirements: OnceCell::new() }
    }

    /// Fits a prompt into `max`. Returns `None` if it is too long and was shortened once already.
    fn within(&self, max: Weight) -> Option<Prompt> {
        let frame = weight_of("");
        let escaped = weight_of(self.text);
        if escaped <= max {
            return Some(self.prompt(self.text.into(), self.is_shortened));
        }
        if self.is_shortened {
            return None;
        }
        // Escaped text takes more than its own weight, by a factor that differs from place to place.
        let inner = max.saturating_sub(frame).millitokens();
        [1, 2, 4, 6].into_iter().find_map(|divisor| {
            let inner = Weight::from_millitokens(inner / divisor);
            let text = shorten(self.text, inner, self.seq)?;
            (weight_of(&text) <= max).then(|| self.prompt(text.into(), true))
        })
    }

    fn prompt(&self, text: Cow<'_, str>, is_shortened: bool) -> Prompt {
        Prompt { seq: self.seq, text: text.into_owned(), is_shortened }
    }

    /// Returns the requirements of the prompt, without those that were revoked later.
    fn requirements(&self, revocations: &Revocations) -> &[Sentence] {
        self.requirements.get_or_init(|| {
            let found = read_parts(self.text).flat_map(requirements::find);
            let sentence = |it: requirements::Requirement<'_>| Sentence {
                seq: self.seq,
                text: it.text.to_owned(),
                strength: it.strength,
            };
            let found = found.map(sentence);
            found.filter(|it| !revocations.take_back(&it.text, it.seq)).collect()
        })
    }

    fn source(&self) -> Source {
        Source { seq: self.seq, text: self.text.to_owned(), is_carried: self.is_carried }
    }
}

/// Keeps only the newest of equal prompts, such as those of a daily schedule.
fn keep_newest_of_equals(prompts: &mut Vec<Candidate<'_>>) {
    let mut seen = HashSet::new();
    prompts.reverse();
    prompts.retain(|it| seen.insert(it.text.trim()));
    prompts.reverse();
}
