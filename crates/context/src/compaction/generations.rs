//! Generations: the views of a transcript before and after each compaction.
//!
//! Generation 0 is the whole transcript. A compaction makes a new generation out of its parent: its summary replaces
//! everything up to `to_seq`, the parent's summary included. Nothing is ever removed, so the parent's view can be shown
//! again at any time. A later compaction then has that parent, and the abandoned generation stays as a side branch.

use serde::{Deserialize, Serialize};

use crate::{
    compaction::{flow::Flow, pins::Pin, prompts::Prompts},
    entry::Entry,
    weight::Weight,
};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error(
        "generation {0} of this session is not stored: choose one that `session show` lists, or 0 for the \
         whole transcript"
    )]
    Unknown(u32),
    #[error(
        "generation {generation} does not continue its parent {parent}: it must be newer and fold later \
         messages; restore the compactions of this session from a backup"
    )]
    BrokenLineage { generation: u32, parent: u32 },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compaction {
    /// Number of the generation. Rises by one per compaction of the session, side branches included.
    pub generation: u32,
    /// Generation whose view was folded; 0 for the whole transcript.
    pub parent: u32,
    /// First of the newly folded entries; `to_seq` is the last.
    pub from_seq: i64,
    pub to_seq: i64,
    pub summary: String,
    /// State of the work for a compaction at a node; placed in front of the summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<Box<Flow>>,
    /// Texts of people, word for word; placed in front of the summary.
    #[serde(default, skip_serializing_if = "Prompts::is_empty")]
    pub prompts: Prompts,
    /// Pins that the summary had to keep, and that every later one has to keep.
    pub pins: Vec<Pin>,
    pub tokens_before: u64,
    pub tokens_after: u64,
}

#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    pub compaction: Option<&'a Compaction>,
    /// Entries that are not folded, by ascending `seq`.
    pub tail: &'a [Entry],
}

impl<'a> View<'a> {
    /// Returns the view of a generation. `entries` is the transcript by ascending `seq`; entries that the generation folds may be missing.
    pub fn of(
        entries: &'a [Entry],
        compactions: &'a [Compaction],
        generation: u32,
    ) -> Result<Self, Error> {
        if generation == 0 {
            return Ok(Self { compaction: None, tail: entries });
        }
        let compaction = find(compactions, generation)?;
        check_lineage(compactions, compaction)?;
        let first = entries.partition_point(|entry| entry.seq <= compaction.to_seq);
        Ok(Self { compaction: Some(compaction), tail: &entries[first..] })
    }

    pub fn generation(&self) -> u32 {
        self.compaction.map_or(0, |compaction| compaction.generation)
    }
}

impl Compaction {
    /// Returns the texts of people, unless a reference means that there is no room for anything.
    pub fn shown_prompts(&self) -> Option<&Prompts> {
        (!self.is_reference()).then_some(&self.prompts)
    }

    /// Returns the weight of all that replaces the folded messages.
    pub fn weight(&self) -> Weight {
        let flow = self.flow.as_deref().map_or(Weight::ZERO, Flow::weight);
        Weight::of_text(&self.summary)
            + flow
            + self.shown_prompts().map_or(Weight::ZERO, Prompts::weight)
    }
}

fn find(compactions: &[Compaction], generation: u32) -> Result<&Compaction, Error> {
    compactions
        .iter()
        .find(|compaction| compaction.generation == generation)
        .ok_or(Error::Unknown(generation))
}

/// Checks one step. That suffices: the parent was checked in the same way when it was made.
fn check_lineage(compactions: &[Compaction], compaction: &Compaction) -> Result<(), Error> {
    let broken =
        Error::BrokenLineage { generation: compaction.generation, parent: compaction.parent };
    if compaction.parent >= compaction.generation || compaction.from_seq > compaction.to_seq {
        return Err(broken);
    }
    if compaction.parent == 0 {
        return Ok(());
    }
    let parent = find(compactions, compaction.parent)?;
    // A compaction that folds nothing new shortens the summary. Messages behind a reference are read again.
    let shortens = compaction.from_seq == compaction.to_seq && compaction.to_seq == parent.to_seq;
    match parent.to_seq < compaction.from_seq || shortens || parent.is_reference() {
        true => Ok(()),
        false => Err(broken),
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::transcript::{Message, Role};

    fn entry(seq: i64) -> Entry {
        let message = Message::new(Role::User, format!("message {seq}"));
        Entry::new(Uuid::from_u128(seq as u128), seq, message)
    }

    fn compaction(generation: u32, parent: u32, from_seq: i64, to_seq: i64) -> Compaction {
        Compaction {
            generation,
            parent,
            from_seq,
            to_seq,
            summary: format!("summary {generation}"),
            flow: None,
            prompts: Prompts::default(),
            pins: Vec::new(),
            tokens_before: 0,
            tokens_after: 0,
        }
    }

    #[test]
    fn each_generation_shows_its_summary_and_later_messages() {
        let entries: Vec<_> = (1..=10).map(entry).collect();
        let compactions = [compaction(1, 0, 1, 4), compaction(2, 1, 5, 8)];
        let view = |generation| View::of(&entries, &compactions, generation).unwrap();
        assert_eq!(view(0).tail.len(), 10);
        assert_eq!(view(1).tail[0].seq, 5);
        assert_eq!(view(2).tail[0].seq, 9);
        assert_eq!(view(2).compaction.unwrap().summary, "summary 2");
    }

    #[test]
    fn a_generation_that_overlaps_its_parent_is_refused() {
        let entries: Vec<_> = (1..=10).map(entry).collect();
        let compactions = [compaction(1, 0, 1, 4), compaction(2, 1, 3, 8)];
        assert!(matches!(View::of(&entries, &compactions, 2), Err(Error::BrokenLineage { .. })));
    }
}
