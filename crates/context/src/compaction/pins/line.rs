//! Finds pins in one line of text.

use super::{NAME_MAX_CHARS, PinKind, shapes};
use crate::compaction::requirements::{REQUIREMENT_MAX_CHARS, text_after_mark};

/// Opening and closing quotation marks, with the kind of the quoted text.
const QUOTES: [(char, char, PinKind); 4] = [
    ('“', '”', PinKind::Name),
    ('«', '»', PinKind::Name),
    ('"', '"', PinKind::Name),
    ('`', '`', PinKind::Code),
];

/// Longer quotations are speech, not names.
const NAME_MAX_WORDS: usize = 6;

pub(super) fn scan<'a>(line: &'a str, may_require: bool, found: &mut Vec<(PinKind, &'a str)>) {
    if may_require && let Some(requirement) = marked_requirement(line) {
        found.push((PinKind::Requirement, requirement));
        return;
    }
    scan_words(line, found);
    if line.contains(|character| QUOTES.iter().any(|(open, ..)| *open == character)) {
        scan_quotes(line, found);
    }
}

fn marked_requirement(line: &str) -> Option<&str> {
    let rest = text_after_mark(line)?;
    let end = rest.char_indices().nth(REQUIREMENT_MAX_CHARS).map_or(rest.len(), |(at, _)| at);
    Some(&rest[..end])
}

fn scan_words<'a>(line: &'a str, found: &mut Vec<(PinKind, &'a str)>) {
    let words = split_words(line);
    let mut index = 0;
    while index < words.len() {
        let (kind, width) = match shapes::of_phrase(&words[index..]) {
            Some((kind, width)) => (Some(kind), width),
            None => (shapes::of_word(words[index]), 1),
        };
        if let Some(kind) = kind {
            found.push((kind, covering(line, words[index], words[index + width - 1])));
        }
        index += width;
    }
}

/// Splits a line into words without the punctuation around them. Lists and assignments without blanks are split, too.
fn split_words(line: &str) -> Vec<&str> {
    let mut words = Vec::new();
    for chunk in line.split_whitespace() {
        if chunk.contains("://") {
            words.push(trim(chunk));
        } else {
            words.extend(chunk.split([';', '=', '|']).flat_map(split_at_commas).map(trim));
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Splits at commas, except between digits, where they belong to a number.
fn split_at_commas(chunk: &str) -> impl Iterator<Item = &str> {
    let mut from = 0;
    let cuts: Vec<usize> = chunk
        .match_indices(',')
        .map(|(at, _)| at)
        .filter(|at| {
            let before = chunk[..*at].ends_with(|c: char| c.is_ascii_digit());
            let after = chunk[at + 1..].starts_with(|c: char| c.is_ascii_digit());
            !(before && after)
        })
        .chain([chunk.len()])
        .collect();
    cuts.into_iter().map(move |at| {
        let piece = &chunk[from..at];
        from = at + 1;
        piece
    })
}

fn trim(word: &str) -> &str {
    let word = word.trim_start_matches(|c: char| "([{<\"'“‘«*`,.;:!?".contains(c));
    let is_call = |word: &str| word.ends_with("()");
    let mut word = word;
    while !is_call(word)
        && let Some(last) = word.chars().next_back()
        && ")]}>\"'”’»*`,.;:!?…".contains(last)
    {
        word = &word[..word.len() - last.len_utf8()];
    }
    word
}

/// Returns the part of `line` from the start of `first` to the end of `last`, which both are words of it.
fn covering<'a>(line: &'a str, first: &'a str, last: &'a str) -> &'a str {
    let from = first.as_ptr() as usize - line.as_ptr() as usize;
    let to = last.as_ptr() as usize - line.as_ptr() as usize + last.len();
    &line[from..to]
}

fn scan_quotes<'a>(line: &'a str, found: &mut Vec<(PinKind, &'a str)>) {
    for (open, close, kind) in QUOTES {
        let mut rest = line;
        while let Some(from) = rest.find(open) {
            let inside = &rest[from + open.len_utf8()..];
            let Some(length) = inside.find(close) else {
                break;
            };
            let quoted = &inside[..length];
            if is_name(quoted) && !found.iter().any(|(_, text)| *text == quoted) {
                found.push((kind, quoted));
            }
            rest = &inside[length + close.len_utf8()..];
        }
    }
}

fn is_name(quoted: &str) -> bool {
    let chars = quoted.chars().count();
    (2..=NAME_MAX_CHARS).contains(&chars)
        && quoted.trim() == quoted
        && quoted.contains(char::is_alphanumeric)
        && quoted.split_whitespace().count() <= NAME_MAX_WORDS
}
