//! The difference between what two calls were sent.

use std::{collections::HashMap, time::Duration};

use serde::{Deserialize, Serialize};
use similar::{ChangeTag, TextDiff};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{Error, StoredContext, find};
use crate::{
    context::manifest::{Kind, Part},
    domain::manifests::Span,
};

/// The difference between the first calls of two turns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ContextDiff {
    pub from: ComparedContext,
    pub to: ComparedContext,
    /// Bytes at the beginning of system text, tools and messages that both have: a provider can reuse its cache of them. 0 if the models
    /// differ. Null if one of the two cannot be assembled.
    pub shared_bytes: Option<i64>,
    /// Bytes of system text, tools and messages of `to`.
    pub to_bytes: Option<i64>,
    /// Parts that differ, in the order of `to`, then those that are gone.
    pub parts: Vec<PartDiff>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ComparedContext {
    pub session_id: Uuid,
    pub turn: i32,
    pub model: String,
    pub provider: String,
    pub estimated_tokens: i64,
    /// The provider's own count of the prompt. Null if it reports none.
    pub counted_tokens: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct PartDiff {
    pub kind: String,
    pub id: Option<String>,
    pub change: PartChange,
    /// Estimated tokens before and after; 0 if it was not sent.
    pub tokens_before: i64,
    pub tokens_after: i64,
    /// The messages or posts that it had before and has after, if it is made of those.
    #[schema(inline)]
    pub span_before: Option<Span>,
    #[schema(inline)]
    pub span_after: Option<Span>,
    /// The reason why the part is sent or left out, after the change; before it for a removed part.
    pub reason: String,
    /// The text with its changes, word by word. Empty if the texts are not stored, or the part has none of its own.
    pub words: Vec<WordChange>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PartChange {
    Added,
    Removed,
    Changed,
}

/// A stretch of a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct WordChange {
    pub kind: WordChangeKind,
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum WordChangeKind {
    Same,
    Added,
    Removed,
}

/// Compares the first calls of two turns, each given by session and number.
pub async fn compare(
    conn: &mut PgConnection,
    from: (Uuid, i32),
    to: (Uuid, i32),
) -> Result<ContextDiff, Error> {
    let from = find(&mut *conn, from.0, Some(from.1), 1).await?;
    let to = find(conn, to.0, Some(to.1), 1).await?;
    Ok(ContextDiff::of(&from, &to))
}

impl ContextDiff {
    fn of(from: &StoredContext, to: &StoredContext) -> Self {
        let prompts = bytes(from).zip(bytes(to));
        let count = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
        let is_same_model = (&from.provider, &from.model) == (&to.provider, &to.model);
        Self {
            shared_bytes: prompts.as_ref().map(|(from, to)| match is_same_model {
                true => {
                    count(from.iter().zip(to).take_while(|(before, after)| before == after).count())
                }
                false => 0,
            }),
            to_bytes: prompts.as_ref().map(|(_, to)| count(to.len())),
            parts: part_diffs(from, to),
            from: ComparedContext::of(from),
            to: ComparedContext::of(to),
        }
    }
}

impl ComparedContext {
    fn of(stored: &StoredContext) -> Self {
        Self {
            session_id: stored.session_id,
            turn: stored.turn,
            model: stored.model.clone(),
            provider: stored.provider.clone(),
            estimated_tokens: stored.estimated_tokens,
            counted_tokens: stored.counted_tokens,
        }
    }
}

/// Returns system text, tools and messages in the order in which a model reads them.
fn bytes(stored: &StoredContext) -> Option<Vec<u8>> {
    let replayed = stored.replayed.as_ref().ok()?;
    let mut bytes = replayed.system.clone().into_bytes();
    for tool in &replayed.tools {
        bytes.push(0);
        bytes.extend(serde_json::to_vec(&**tool).ok()?);
    }
    for message in &replayed.messages {
        bytes.push(0);
        bytes.extend_from_slice(message.text.as_bytes());
    }
    Some(bytes)
}

/// A part with its text, and its number among the parts of the same name.
struct Side<'a> {
    part: &'a Part,
    text: Option<&'a str>,
}

fn part_diffs(from: &StoredContext, to: &StoredContext) -> Vec<PartDiff> {
    let (mut before, after) = (sides(from), sides(to));
    let mut diffs = Vec::new();
    for (name, new) in after {
        let at = before.iter().position(|(other, _)| *other == name);
        match at.map(|at| before.remove(at).1) {
            None => diffs.push(diff(None, Some(&new))),
            Some(old) if is_same(old.part, new.part) => {}
            Some(old) => diffs.push(diff(Some(&old), Some(&new))),
        }
    }
    diffs.extend(before.iter().map(|(_, old)| diff(Some(old), None)));
    diffs.into_iter().flatten().collect()
}

/// The name by which a part is found in the other context.
type Name<'a> = (Kind, Option<&'a str>, usize);

fn sides(stored: &StoredContext) -> Vec<(Name<'_>, Side<'_>)> {
    let mut seen: HashMap<(Kind, Option<&str>, bool), usize> = HashMap::new();
    let named = stored.manifest.parts.iter().zip(&stored.texts).map(|(part, text)| {
        let id = part.id.as_deref().filter(|_| has_lasting_id(part.kind));
        let n = seen.entry((part.kind, id, part.sent)).or_default();
        *n += 1;
        // Parts that are left out are numbered apart, so that an added one moves no other.
        let number = if part.sent { *n } else { *n + 1_000 };
        ((part.kind, id, number), Side { part, text: text.as_deref() })
    });
    named.collect()
}

/// Returns true if the id names the same thing in each turn.
fn has_lasting_id(kind: Kind) -> bool {
    matches!(kind, Kind::Skill | Kind::Edict | Kind::Fact)
}

fn is_same(old: &Part, new: &Part) -> bool {
    (old.sha256, old.span, old.sent) == (new.sha256, new.span, new.sent)
}

/// Describes a change. `None` if it concerns only a part that was not sent before and is not sent now.
fn diff(old: Option<&Side<'_>>, new: Option<&Side<'_>>) -> Option<PartDiff> {
    let is_sent = |side: Option<&Side<'_>>| side.is_some_and(|side| side.part.sent);
    let change = match (is_sent(old), is_sent(new)) {
        (true, true) => PartChange::Changed,
        (true, false) => PartChange::Removed,
        (false, true) => PartChange::Added,
        (false, false) => return None,
    };
    let shown = new.or(old)?.part;
    let tokens = |side: Option<&Side<'_>>| {
        let sent = side.filter(|side| side.part.sent);
        sent.map_or(0, |side| i64::try_from(side.part.tokens).unwrap_or(i64::MAX))
    };
    let span = |side: Option<&Side<'_>>| {
        let span = side.filter(|side| side.part.sent)?.part.span?;
        Some(Span { from_seq: span.from_seq, to_seq: span.to_seq, count: None })
    };
    Some(PartDiff {
        kind: shown.kind.as_str().to_owned(),
        id: shown.id.clone(),
        change,
        tokens_before: tokens(old),
        tokens_after: tokens(new),
        span_before: span(old),
        span_after: span(new),
        reason: shown.why.as_text().to_owned(),
        words: diff_words(text_of(old), text_of(new)),
    })
}

fn text_of<'a>(side: Option<&Side<'a>>) -> &'a str {
    side.filter(|side| side.part.sent).and_then(|side| side.text).unwrap_or_default()
}

/// Longest search for the smallest difference. After it, the rest counts as replaced: texts of a megabyte with nothing in common would
/// take minutes.
const SEARCH_TIME: Duration = Duration::from_millis(200);

/// Compares two texts word by word.
pub fn diff_words(old: &str, new: &str) -> Vec<WordChange> {
    let mut words: Vec<WordChange> = Vec::new();
    let diff = TextDiff::configure().timeout(SEARCH_TIME).diff_words(old, new);
    for change in diff.iter_all_changes() {
        let kind = match change.tag() {
            ChangeTag::Equal => WordChangeKind::Same,
            ChangeTag::Insert => WordChangeKind::Added,
            ChangeTag::Delete => WordChangeKind::Removed,
        };
        match words.last_mut().filter(|last| last.kind == kind) {
            Some(last) => last.text.push_str(change.value()),
            None => words.push(WordChange { kind, text: change.value().to_owned() }),
        }
    }
    match is_another_text(&words) {
        true => vec![
            WordChange { kind: WordChangeKind::Removed, text: old.to_owned() },
            WordChange { kind: WordChangeKind::Added, text: new.to_owned() },
        ],
        false => words,
    }
}

/// Stretches of a text that are so short are common words and blanks.
const SHORT_STRETCH: usize = 16;

/// Returns true if both texts have little in common, so that their words would only be mixed.
fn is_another_text(words: &[WordChange]) -> bool {
    let sum = |of: &dyn Fn(&&WordChange) -> bool| -> usize {
        words.iter().filter(of).map(|word| word.text.len()).sum()
    };
    let same = sum(&|word| word.kind == WordChangeKind::Same && word.text.len() >= SHORT_STRETCH);
    let removed = sum(&|word| word.kind == WordChangeKind::Removed);
    let added = sum(&|word| word.kind == WordChangeKind::Added);
    let is_long = removed.min(added) >= 8 * SHORT_STRETCH;
    is_long && same * 4 < removed.max(added)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_found_word_by_word() {
        let changes = diff_words("You write short verse.", "You write long and short verse.");
        let changes: Vec<_> = changes.iter().map(|it| (it.kind, it.text.as_str())).collect();
        let expected = [
            (WordChangeKind::Same, "You write "),
            (WordChangeKind::Added, "long and "),
            (WordChangeKind::Same, "short verse."),
        ];
        assert_eq!(changes, expected);
    }

    #[test]
    fn texts_that_share_only_common_words_are_replaced_as_a_whole() {
        let old = "The harbour is quiet in the winter, and the boats of the town are out of the water until the ice is gone. ".repeat(3);
        let new = "A lamp of the tower needs oil for the night, and the keeper of it asks the mayor for more of it in a letter. ".repeat(3);
        let changes = diff_words(&old, &new);
        let kinds: Vec<_> = changes.iter().map(|it| it.kind).collect();
        assert_eq!(kinds, [WordChangeKind::Removed, WordChangeKind::Added]);
        let edited = old.replace("quiet", "calm");
        assert!(diff_words(&old, &edited).iter().any(|it| it.kind == WordChangeKind::Same));
    }

    #[test]
    fn long_texts_without_common_words_are_replaced_in_bounded_time() {
        let text = |word: &str| (0..60_000).map(|n| format!("{word}{n} ")).collect::<String>();
        let (old, new) = (text("a"), text("b"));
        let changes = diff_words(&old, &new);
        let of = |kind| -> String {
            let all =
                changes.iter().filter(|it| it.kind == kind || it.kind == WordChangeKind::Same);
            all.map(|it| it.text.as_str()).collect()
        };
        assert_eq!(of(WordChangeKind::Removed), old);
        assert_eq!(of(WordChangeKind::Added), new);
    }
}
