//! The part of a transcript that a page shows. A page has the newest messages; earlier ones come on demand.

use uuid::Uuid;

use super::PageQuery;
use crate::{
    console::page::Page,
    domain::messages::StoredMessage,
    operations::{Listing, ReadTranscript, Refusal},
};

/// Messages of a page.
const MAX_MESSAGES: i64 = 20;
/// Bytes of all texts of a page, which keep its first load below 150 KB. One message is always shown.
const MAX_BYTES: usize = 16_000;

/// The place of a page in a transcript.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// The messages after this one.
    After(i64),
    /// The last messages before this one.
    Before(i64),
    /// The newest messages.
    End,
}

/// Consecutive messages.
#[derive(Debug)]
pub(super) struct Window {
    /// The place after which the messages begin.
    pub(super) begin: i64,
    pub(super) messages: Vec<StoredMessage>,
    /// The place after which the next page begins, if there is one.
    pub(super) next: Option<String>,
}

impl Place {
    pub(super) fn of(query: &PageQuery) -> Self {
        match (query.cursor, query.before) {
            (Some(cursor), _) => Self::After(cursor),
            (None, Some(before)) => Self::Before(before),
            (None, None) => Self::End,
        }
    }

    /// Returns the place after which to read. Messages that a summary replaces are shown on demand only.
    fn begin(self, fold_end: i64) -> i64 {
        match self {
            Self::After(cursor) => cursor,
            Self::Before(before) if before <= fold_end + 1 => 0,
            Self::Before(_) | Self::End => fold_end,
        }
    }
}

impl Window {
    pub(super) async fn read(
        page: &Page,
        id: Uuid,
        place: Place,
        fold_end: i64,
    ) -> Result<Self, Refusal> {
        let begin = place.begin(fold_end);
        let before = match place {
            Place::After(_) => None,
            Place::Before(before) => Some(before),
            Place::End => Some(i64::MAX),
        };
        let read = ReadTranscript { id, cursor: Some(begin), before, limit: Some(MAX_MESSAGES) };
        let listing = page.caller.run(read).await?;
        Ok(match place {
            Place::After(_) => Self::from_begin(begin, listing),
            Place::Before(before) => {
                Self { next: Some((before - 1).to_string()), ..Self::to_end(begin, listing) }
            }
            Place::End => Self::to_end(begin, listing),
        })
    }

    fn from_begin(begin: i64, Listing { mut items, mut next }: Listing<StoredMessage>) -> Self {
        let n_fitting = n_fitting(items.iter().map(size));
        if n_fitting < items.len() {
            items.truncate(n_fitting);
            next = items.last().map(|message| message.seq.to_string());
        }
        Self { begin, messages: items, next }
    }

    fn to_end(begin: i64, Listing { mut items, next }: Listing<StoredMessage>) -> Self {
        let n_left_out = items.len() - n_fitting(items.iter().rev().map(size));
        items.drain(..n_left_out);
        let is_cut = next.is_some() || n_left_out > 0;
        let first = items.first().filter(|_| is_cut).map(|message| message.seq - 1);
        Self { begin: first.unwrap_or(begin), messages: items, next: None }
    }
}

fn size(message: &StoredMessage) -> usize {
    message.message.text.len().min(super::pair::TEXT_MAX_CHARS)
}

/// Counts the first sizes that fit into a page, at least one.
fn n_fitting(sizes: impl Iterator<Item = usize>) -> usize {
    let mut sum = 0;
    let fits = |size: &usize| {
        let is_first = sum == 0;
        sum += (*size).max(1);
        is_first || sum <= MAX_BYTES
    };
    sizes.take_while(fits).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_without_a_place_has_the_newest_messages_after_the_summary() {
        let begin = |cursor, before, fold_end| {
            let estimate = String::new();
            Place::of(&PageQuery { cursor, before, estimate }).begin(fold_end)
        };
        assert_eq!(begin(None, None, 0), 0);
        assert_eq!(begin(None, None, 4_000), 4_000);
        assert_eq!(begin(None, Some(4_500), 4_000), 4_000);
        // The originals of a summary.
        assert_eq!(begin(Some(7), None, 4_000), 7);
        assert_eq!(begin(None, Some(4_001), 4_000), 0);
    }

    #[test]
    fn a_page_has_at_least_one_message() {
        assert_eq!(n_fitting([90_000, 1].into_iter()), 1);
        assert_eq!(n_fitting([MAX_BYTES - 1, 1, 1].into_iter()), 2);
        assert_eq!(n_fitting([0, 0].into_iter()), 2);
        assert_eq!(n_fitting(std::iter::empty()), 0);
    }
}
