//! Divides the messages to summarise into batches, each for one call of a summariser. Reads only the text of messages that are
//! too long for one batch.

use std::ops::Range;

use crate::{entry::Entry, weight::Weight};

/// Step in which a message that is too long for a batch is measured.
const SPLIT_STEP_BYTES: usize = 256;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Batch {
    pub pieces: Vec<Piece>,
}

/// A part of one message's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Position in `view.tail`.
    pub index: usize,
    pub bytes: Range<usize>,
    pub part: usize,
    pub parts: usize,
}

/// Divides `entries[read]` into batches of at most `limit`, in order. A message that is heavier is divided, too.
pub(super) fn divide(entries: &[Entry], read: Range<usize>, limit: Weight) -> Vec<Batch> {
    let mut batches = Vec::new();
    let mut batch = Batch::default();
    let mut filled = Weight::ZERO;
    for index in read {
        let entry = &entries[index];
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

/// Returns the weight of a message in the summariser's input, where every message is an element, the assistant's too.
/// Files are only named there.
fn message_weight(entry: &Entry) -> Weight {
    entry.text_weight() + Weight::of_user_text("")
}

/// Returns the positions at which to cut a text so that no part weighs more than `limit`.
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
