//! Decides what is folded and what stays. Pure, linear in the number of messages, reads no text but that
//! of messages too long for one batch.

use std::{borrow::Cow, ops::Range};

use crate::context::{
    budget::Budget,
    calibration::Calibration,
    compaction::{
        extract,
        flow::Flow,
        generations::{Compaction, View},
        groups::{self, Grouping},
        pins::{self, Voice},
        policy::Policy,
        prompt,
    },
    entry::Entry,
    weight::Weight,
};
use crate::transcript::Role;

/// How finely a message that is too long for a batch is measured.
const SPLIT_STEP_BYTES: usize = 256;

#[derive(Debug, Clone, Copy)]
pub struct Scene<'a> {
    pub view: View<'a>,
    pub budget: Budget,
    pub calibration: &'a Calibration,
    /// What the coming turn adds: its task, posts and notices.
    pub upcoming_tokens: u64,
    /// The narrowest window of the summarisers that may be asked.
    pub summariser_window_tokens: u64,
    pub policy: Policy,
    /// Where the session is, if it is at a node: only what was said there is summarised.
    pub node: Option<Node<'a>>,
}

#[derive(Debug, Clone, Copy)]
pub struct Node<'a> {
    /// The place of its entry.
    pub first_seq: i64,
    /// The summary that is shown is of this node too, so the next one goes on from it.
    pub is_continued: bool,
    pub flow: &'a Flow,
    /// Where the entry stands that the flow quotes; `None` where it is folded already.
    pub entry_seq: Option<i64>,
}

impl<'a> Node<'a> {
    /// What stands in front of a summary up to this place: without the entry where that stays word for word behind it.
    pub(super) fn flow_to(self, to_seq: i64) -> Cow<'a, Flow> {
        match self.entry_seq {
            Some(seq) if seq > to_seq => Cow::Owned(Flow { entry: None, ..self.flow.clone() }),
            _ => Cow::Borrowed(self.flow),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// `view.tail[..fold]` is folded, the rest stays.
    pub fold: usize,
    /// The part of it that is summarised; what is in front of it is archived.
    pub read: Range<usize>,
    pub from_seq: i64,
    pub to_seq: i64,
    /// Empty where there is nothing to read, or the summariser's window is too small for any: then only the extract is left.
    pub batches: Vec<Batch>,
    /// The conversation as it is, without system part and coming turn.
    pub tokens_before: u64,
    /// The part of it that stays word for word.
    pub tail_tokens: u64,
    pub summary_max_tokens: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Batch {
    pub pieces: Vec<Piece>,
}

/// A stretch of one message's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Position in `view.tail`.
    pub index: usize,
    pub bytes: Range<usize>,
    pub part: usize,
    pub parts: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error(
        "there is nothing to fold: the conversation has only {turns} turns and the last {keep_turns} stay as \
         they are; raise the window or shorten the task"
    )]
    NothingToFold { turns: usize, keep_turns: usize },
    #[error(
        "the turns that must stay take {tail_tokens} and the coming one {upcoming_tokens} of {room_tokens} \
         tokens, which leaves no room for a summary: raise the window, shorten the task, or reset the session"
    )]
    Floor { tail_tokens: u64, upcoming_tokens: u64, room_tokens: u64 },
}

pub fn plan(scene: &Scene<'_>) -> Result<Plan, Error> {
    let entries = scene.view.tail;
    let grouping = groups::group(entries, &[]);
    let cut = choose_cut(scene, &grouping)?;
    let tail_tokens = scene.calibration.tokens(weight_of(&entries[cut..]));
    let stands_in = scene.view.compaction.map_or(Weight::ZERO, Compaction::weight);
    let tokens_before = scene.calibration.tokens(weight_of(entries) + stands_in);
    let to_seq = entries[cut - 1].seq;
    let flow = scene.node.map_or(Weight::ZERO, |node| node.flow_to(to_seq).weight());
    let flow_tokens = scene.calibration.tokens(flow);
    let summary_max_tokens = summary_room(scene, tokens_before, tail_tokens, flow_tokens)?;
    let read = node_start(scene).min(cut)..cut;
    Ok(Plan {
        fold: cut,
        from_seq: entries[0].seq,
        to_seq,
        batches: batches(scene, read.clone(), summary_max_tokens),
        read,
        tokens_before,
        tail_tokens,
        summary_max_tokens,
    })
}

/// The first position that stays. Always the beginning of a turn, never inside a group, and never in front of the node.
fn choose_cut(scene: &Scene<'_>, grouping: &Grouping) -> Result<usize, Error> {
    let entries = scene.view.tail;
    let node_start = node_start(scene);
    let starts = turn_starts(entries, node_start);
    let keep_turns = scene.policy.keep_turns.max(1);
    let nothing = Error::NothingToFold { turns: starts.len(), keep_turns };
    let whole = whole_cuts(entries.len(), grouping);
    if starts.len() <= keep_turns {
        // Little was said at the node: it stays as it is, and what came before goes.
        let is_begun = node_start > 0 && starts.first() == Some(&node_start) && whole[node_start];
        return if is_begun { Ok(node_start) } else { Err(nothing) };
    }
    let room_tokens = scene.budget.room_tokens();
    let tail_limit = scene.calibration.weight_within(
        (room_tokens * scene.policy.tail_percent / 100).min(scene.policy.tail_max_tokens),
    );
    let mut cut = None;
    let mut weight = Weight::ZERO;
    let mut counted_from = entries.len();
    for (turns, &start) in starts.iter().rev().enumerate() {
        weight = weight + weight_of(&entries[start..counted_from]);
        counted_from = start;
        let enough_turns = turns + 1 >= keep_turns;
        if cut.is_some() && weight > tail_limit {
            break;
        }
        if enough_turns && start > 0 && whole[start] {
            cut = Some(start);
        }
    }
    cut.ok_or(nothing)
}

/// The first position of the node that the session is at; 0 where it is at none.
fn node_start(scene: &Scene<'_>) -> usize {
    let entries = scene.view.tail;
    scene.node.map_or(0, |node| entries.partition_point(|entry| entry.seq < node.first_seq))
}

/// Of the turns from here on. A turn begins with the user's message, or with the notices and posts directly in front of it.
fn turn_starts(entries: &[Entry], from: usize) -> Vec<usize> {
    let role = |index: usize| entries[index].message.role;
    (from..entries.len())
        .filter(|index| role(*index) == Role::User)
        .map(|mut start| {
            while start > from && matches!(role(start - 1), Role::Notice | Role::Posts) {
                start -= 1;
            }
            start
        })
        .collect()
}

/// Per position, whether a cut in front of it leaves every group whole.
fn whole_cuts(count: usize, grouping: &Grouping) -> Vec<bool> {
    let mut whole = vec![true; count + 1];
    let mut reach = 0;
    for group in &grouping.groups {
        // Positions between a head and its last result are inside the group.
        let from = (group.head + 1).max(reach);
        let to = group.last() + 1;
        if from < to {
            whole[from..to].fill(false);
        }
        reach = reach.max(to);
    }
    whole
}

/// The most a summary may take so that it both saves enough and fits.
fn summary_room(
    scene: &Scene<'_>,
    tokens_before: u64,
    tail_tokens: u64,
    flow_tokens: u64,
) -> Result<u64, Error> {
    let policy = &scene.policy;
    let room_tokens = scene.budget.room_tokens();
    let stays = tail_tokens + flow_tokens + scene.upcoming_tokens;
    let to_save = (tokens_before * (100 - policy.save_percent) / 100)
        .saturating_sub(tail_tokens + flow_tokens);
    // Room for the bare headings and for the share that pins may fill: then the extract always fits.
    let min_tokens = scene.calibration.tokens(extract::skeleton()) * 5 / 2 + 1;
    let window = scene.budget.window_tokens().min(scene.summariser_window_tokens);
    let [usual, tight] = [policy.fit_percent, policy.tight_fit_percent].map(|percent| {
        let to_fit = (room_tokens * percent / 100).saturating_sub(stays);
        to_fit.min(to_save).min(Policy::summary_max_tokens(window))
    });
    // A tail that has become heavy must not push out what people said: then the next compaction comes sooner.
    let chosen = if usual >= carried_room(scene).max(min_tokens) { usual } else { tight };
    if chosen < min_tokens {
        let upcoming_tokens = scene.upcoming_tokens;
        return Err(Error::Floor { tail_tokens, upcoming_tokens, room_tokens });
    }
    Ok(chosen)
}

/// What a summary needs for the pins that people have set so far, and for some more.
fn carried_room(scene: &Scene<'_>) -> u64 {
    let carried = scene.view.compaction.map_or(&[][..], |compaction| &compaction.pins);
    let of_people = carried.iter().filter(|pin| pin.voice == Voice::Person);
    Policy::summary_for_pins(pins::list_tokens(of_people, scene.calibration)) * 6 / 5
}

fn batches(scene: &Scene<'_>, read: Range<usize>, summary_max_tokens: u64) -> Vec<Batch> {
    if read.is_empty() {
        return Vec::new();
    }
    let Some(batch_tokens) = batch_tokens(scene, summary_max_tokens) else {
        return Vec::new();
    };
    let limit = scene.calibration.weight_within(batch_tokens);
    let mut batches = Vec::new();
    let mut batch = Batch::default();
    let mut filled = Weight::ZERO;
    for index in read {
        let entry = &scene.view.tail[index];
        for piece in pieces(index, entry, limit) {
            let weight = piece_weight(entry, &piece);
            if !batch.pieces.is_empty() && filled + weight > limit {
                batches.push(std::mem::take(&mut batch));
                filled = Weight::ZERO;
            }
            filled = filled + weight;
            batch.pieces.push(piece);
        }
    }
    batches.push(batch);
    batches
}

/// What is left of the summariser's window beside its instructions, the pins, the summary so far and its answer; `None` where
/// that is too little to get on with.
fn batch_tokens(scene: &Scene<'_>, summary_max_tokens: u64) -> Option<u64> {
    let window_tokens = scene.summariser_window_tokens;
    let taken = scene.calibration.tokens(prompt::overhead())
        + Policy::pins_max_tokens(summary_max_tokens)
        + summary_max_tokens * 2;
    let left = (window_tokens * 9 / 10).saturating_sub(taken);
    let enough = left * 10 >= window_tokens;
    enough.then(|| left.min(window_tokens * scene.policy.batch_percent / 100))
}

fn pieces(index: usize, entry: &Entry, limit: Weight) -> Vec<Piece> {
    let text = &entry.message.text;
    let mut ends = Vec::new();
    if message_weight(entry) > limit {
        ends = split(text, limit);
    }
    if ends.last() != Some(&text.len()) {
        ends.push(text.len());
    }
    let parts = ends.len();
    let starts = std::iter::once(0).chain(ends.clone());
    starts
        .zip(ends)
        .enumerate()
        .map(|(part, (from, to))| Piece { index, bytes: from..to, part: part + 1, parts })
        .collect()
}

/// A summariser gets every message as an element, the assistant's too.
fn message_weight(entry: &Entry) -> Weight {
    entry.weight + Weight::of_user_text("")
}

/// Where to cut a text so that no part weighs more than `limit`.
fn split(text: &str, limit: Weight) -> Vec<usize> {
    // Room for the element around each part.
    let limit = limit.saturating_sub(Weight::of_user_text(""));
    let mut ends = Vec::new();
    let mut weight = Weight::ZERO;
    let mut at = 0;
    while at < text.len() {
        let next = text.ceil_char_boundary(at + SPLIT_STEP_BYTES);
        let step = Weight::of_text(&text[at..next]);
        if weight > Weight::ZERO && weight + step > limit {
            ends.push(at);
            weight = Weight::ZERO;
        }
        weight = weight + step;
        at = next;
    }
    ends.push(text.len());
    ends
}

fn piece_weight(entry: &Entry, piece: &Piece) -> Weight {
    if piece.parts == 1 {
        message_weight(entry)
    } else {
        Weight::of_user_text(&entry.message.text[piece.bytes.clone()])
    }
}

fn weight_of(entries: &[Entry]) -> Weight {
    entries.iter().map(|entry| entry.weight).sum()
}
