//! The query of a search over the texts of campaigns, and its hits. The statements are in the modules of their tables.
//!
//! The newest texts come first. Their indexes have the week of each text as a word (migration `text_search`), so that the search goes back
//! in spans of weeks: common words are found in the newest weeks, and rare ones by some more statements.

use std::{fmt, str::FromStr};

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Matches of one statement that are sorted by time. Of more, only some are.
pub const MAX_MATCHES: i64 = 10_000;
/// Longest snippet, in characters.
const SNIPPET_MAX_CHARS: usize = 400;
/// Longest part of a snippet before its first match, in characters.
const BEFORE_MATCH_MAX_CHARS: usize = SNIPPET_MAX_CHARS / 2;
/// The lengths of spans in weeks, the newest first. Everything older is one span. Planning the statement of a span takes most of its time.
const SPANS: [i64; 4] = [2, 4, 16, 64];
const WEEK_SECS: i64 = 7 * 24 * 60 * 60;
/// The marks around a match in a snippet of the database.
const BEGIN: char = '\u{1}';
const END: char = '\u{2}';

/// A search over the texts of campaigns.
#[derive(Debug, Clone, Copy)]
pub struct TextQuery<'a> {
    pub words: &'a str,
    pub campaign_id: Option<Uuid>,
    /// The campaigns that the caller may read. `None`: all.
    pub within: Option<&'a [Uuid]>,
    pub agent: Option<&'a str>,
    pub instance: Option<&'a str>,
    pub since: Option<DateTime<Utc>>,
    /// The place before which the search begins.
    pub before: TextPlace,
    pub limit: i64,
}

/// A place in the list of hits, which is sorted by time and id. It is the cursor of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextPlace {
    pub at: DateTime<Utc>,
    pub id: Uuid,
}

/// A part of the time that one statement searches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// The weeks as a `tsquery`. `None`: all, for the span with everything older.
    pub weeks: Option<String>,
    /// The place before which the span ends.
    pub before: TextPlace,
}

/// A match as the database returns it.
#[derive(Debug, Clone, PartialEq)]
pub struct TextRow {
    pub id: Uuid,
    pub campaign_id: Option<Uuid>,
    pub author: String,
    pub at: DateTime<Utc>,
    /// With marks around the matches.
    pub snippet: String,
    pub session_id: Option<Uuid>,
    pub seq: Option<i64>,
}

#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum TextKind {
    /// Prompt and result.
    Task,
    Post,
    /// An edict, a record or an entry of a journal.
    Memory,
    /// An answer, or the result of a tool.
    Message,
    /// The summary of a compaction.
    Summary,
    /// The brief and the client context of a campaign.
    Brief,
    Blackboard,
    /// A fact about a user.
    Fact,
}

/// A text that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TextHit {
    pub kind: TextKind,
    /// Id of the task, the post, the item, the fact or the message; of the session for a summary, of the campaign for a brief or a blackboard.
    pub id: Uuid,
    /// Null for a fact that was stated outside of campaigns.
    pub campaign_id: Option<Uuid>,
    /// The agent of a task, a message or a summary; the user that a fact is about; the sender or author of the others. Empty if no author is known.
    pub author: String,
    /// When it was written; of a task: when it was added.
    pub at: DateTime<Utc>,
    /// The passages that match.
    pub snippet: Vec<SnippetPart>,
    /// The session of a message or a summary.
    pub session_id: Option<Uuid>,
    /// The place of a message in its transcript, or of a post on its board; the generation of a summary; the version of a brief or a blackboard.
    pub seq: Option<i64>,
}

/// A part of a snippet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SnippetPart {
    pub text: String,
    pub is_match: bool,
}

impl TextKind {
    pub const ALL: [Self; 8] = [
        Self::Task,
        Self::Post,
        Self::Memory,
        Self::Message,
        Self::Summary,
        Self::Brief,
        Self::Blackboard,
        Self::Fact,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Task => "task",
            Self::Post => "post",
            Self::Memory => "memory",
            Self::Message => "message",
            Self::Summary => "summary",
            Self::Brief => "brief",
            Self::Blackboard => "blackboard",
            Self::Fact => "fact",
        }
    }

    /// Returns the kinds of these hits, each once.
    pub fn of_hits(hits: &[TextHit]) -> Vec<Self> {
        Self::ALL.into_iter().filter(|kind| hits.iter().any(|hit| hit.kind == *kind)).collect()
    }
}

impl TextPlace {
    /// Returns the place before everything at this moment and later.
    pub fn start_of(at: DateTime<Utc>) -> Self {
        Self { at, id: Uuid::nil() }
    }

    fn key(&self) -> (DateTime<Utc>, Uuid) {
        (self.at, self.id)
    }
}

impl fmt::Display for TextPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.at.timestamp_micros(), self.id)
    }
}

impl FromStr for TextPlace {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (micros, id) = text.split_once('.').ok_or(())?;
        let at = micros.parse().ok().and_then(DateTime::from_timestamp_micros).ok_or(())?;
        Ok(Self { at, id: id.parse().map_err(|_| ())? })
    }
}

impl Span {
    /// Splits the time before a place into spans, the newest first.
    pub fn before(place: TextPlace, now: DateTime<Utc>) -> Vec<Self> {
        // A process whose clock is ahead may have written something.
        let newest = place.at.min(now + TimeDelta::weeks(1));
        let mut last = newest.timestamp().div_euclid(WEEK_SECS);
        let mut spans = Vec::new();
        let mut before = place;
        for length in SPANS {
            let weeks: Vec<String> = (0..length).map(|n| format!("':w{}'", last - n)).collect();
            spans.push(Self { weeks: Some(weeks.join(" | ")), before });
            last -= length;
            if let Some(at) = DateTime::from_timestamp((last + 1) * WEEK_SECS, 0) {
                before = TextPlace::start_of(at.min(place.at));
            }
        }
        spans.push(Self { weeks: None, before });
        spans
    }

    /// Returns true if all of it is earlier than this moment.
    pub fn is_before(&self, since: Option<DateTime<Utc>>) -> bool {
        since.is_some_and(|since| self.before.at <= since)
    }
}

impl TextRow {
    pub fn into_hit(self, kind: TextKind) -> TextHit {
        let Self { id, campaign_id, author, at, snippet, session_id, seq } = self;
        TextHit { kind, id, campaign_id, author, at, snippet: parts(&snippet), session_id, seq }
    }
}

impl TextHit {
    pub fn place(&self) -> TextPlace {
        TextPlace { at: self.at, id: self.id }
    }

    /// Compares hits by their place, the newest first.
    pub fn cmp_newest(&self, other: &Self) -> std::cmp::Ordering {
        other.place().key().cmp(&self.place().key())
    }
}

/// Splits a snippet at its marks, and shortens it around its first match.
fn parts(marked: &str) -> Vec<SnippetPart> {
    let mut parts = Vec::new();
    let mut n_left = SNIPPET_MAX_CHARS;
    for (n, piece) in marked.split([BEGIN, END]).enumerate() {
        // Words without blanks between them can be long.
        let most =
            if n == 0 && marked.contains(BEGIN) { BEFORE_MATCH_MAX_CHARS } else { usize::MAX };
        let n_skipped = piece.chars().count().saturating_sub(most);
        let n_chars = piece.chars().count() - n_skipped;
        let mut text = if n_skipped > 0 { "…".to_owned() } else { String::new() };
        text.extend(piece.chars().skip(n_skipped).take(n_left));
        if n_chars > n_left {
            text.push('…');
        }
        if !text.is_empty() {
            parts.push(SnippetPart { text, is_match: n % 2 == 1 });
        }
        n_left = n_left.saturating_sub(n_chars);
        if n_left == 0 {
            break;
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> DateTime<Utc> {
        text.parse().unwrap()
    }

    #[test]
    fn spans_cover_all_weeks_once_and_end_with_everything_older() {
        let now = at("2026-11-20T12:00:00Z");
        let spans = Span::before(TextPlace::start_of(DateTime::<Utc>::MAX_UTC), now);
        assert_eq!(spans[0].weeks.as_deref(), Some("':w2969' | ':w2968'"));
        assert_eq!(spans[1].weeks.as_deref(), Some("':w2967' | ':w2966' | ':w2965' | ':w2964'"));
        assert_eq!(spans[1].before.at, at("2026-11-19T00:00:00Z"));
        let all: Vec<_> = spans.iter().filter_map(|span| span.weeks.as_deref()).collect();
        let n_weeks = all.join(" | ").split(" | ").collect::<std::collections::BTreeSet<_>>().len();
        assert_eq!((n_weeks, spans.len()), (86, 5));
        assert_eq!(spans[4].weeks, None);
        assert!(spans[4].is_before(Some(now)) && !spans[0].is_before(Some(now)));
    }

    #[test]
    fn a_span_does_not_begin_after_the_cursor() {
        let now = at("2026-11-20T12:00:00Z");
        let place = TextPlace { at: at("2025-01-03T00:00:00Z"), id: Uuid::from_u128(7) };
        let spans = Span::before(place, now);
        assert_eq!(spans[0].before, place);
        assert!(spans.iter().all(|span| span.before.at <= place.at));
    }

    #[test]
    fn a_cursor_is_read_as_it_was_written() {
        let place = TextPlace { at: at("2026-11-20T12:00:00.000123Z"), id: Uuid::from_u128(7) };
        assert_eq!(place.to_string().parse(), Ok(place));
        for wrong in ["", "7", "x.y", "7.", "99999999999999999999.0"] {
            assert_eq!(wrong.parse::<TextPlace>(), Err(()), "{wrong}");
        }
    }

    #[test]
    fn a_snippet_is_split_at_its_marks_and_short() {
        let part = |text: &str, is_match| SnippetPart { text: text.to_owned(), is_match };
        let expected = [part("the ", false), part("quay", true), part(" at", false)];
        assert_eq!(parts("the \u{1}quay\u{2} at"), expected);
        assert_eq!(parts("\u{1}quay\u{2}"), [part("quay", true)]);
        let long = parts(&"x".repeat(65_536));
        assert_eq!(long[0].text.chars().count(), SNIPPET_MAX_CHARS + 1);
        assert_eq!(parts(""), []);
        let late = parts(&format!("{}\u{1}quay\u{2} at", "x".repeat(500)));
        assert_eq!(late[0].text, format!("…{}", "x".repeat(BEFORE_MATCH_MAX_CHARS)));
        assert_eq!(late[1..], expected[1..]);
    }
}
