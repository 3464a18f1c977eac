//! Cuts a text into sentences.

use std::ops::Range;

/// Abbreviations: a full stop after them ends no sentence.
const ABBREVIATIONS: [&str; 28] = [
    "approx", "bspw", "bzw", "ca", "dr", "e.g", "etc", "evtl", "fr", "ggf", "hr", "i.e", "inc",
    "inkl", "max", "min", "mr", "mrs", "ms", "no", "nr", "prof", "st", "str", "usw", "vgl", "vs",
    "z.b",
];

const MONTHS: [&str; 13] =
    ["Jan", "Jän", "Feb", "März", "Apr", "Mai", "Jun", "Jul", "Aug", "Sep", "Okt", "Nov", "Dez"];

/// Returns the positions of the sentences, without the blanks and the list marks around them. A line break ends a sentence.
pub(super) fn sentences(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let mut start = 0;
        for (end, mark) in line.char_indices().filter(|(_, it)| matches!(it, '.' | '!' | '?' | '…'))
        {
            let end = end + mark.len_utf8();
            if ends_sentence(&line[start..end], &line[end..]) {
                let end = end + closing(&line[end..]);
                push(&mut found, line, start..end, at);
                start = end;
            }
        }
        push(&mut found, line, start..line.len(), at);
        at += line.len();
    }
    found
}

fn ends_sentence(sentence: &str, rest: &str) -> bool {
    let rest = &rest[closing(rest)..];
    if !rest.is_empty() && !rest.starts_with(char::is_whitespace) {
        return false;
    }
    let Some(before) = sentence.strip_suffix('.') else { return true };
    let word = before.rsplit(|c: char| c.is_whitespace() || c == '(').next().unwrap_or_default();
    let next = rest.trim_start();
    let goes_on = is_number(word) && (before.trim() == word || is_month(next))
        || word.chars().count() == 1 && word.chars().all(char::is_alphabetic)
        || ABBREVIATIONS.contains(&word.to_lowercase().as_str())
        || next.starts_with(char::is_lowercase);
    !goes_on || next.is_empty()
}

fn is_number(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|c| c.is_ascii_digit())
}

/// Returns true if a German month follows: German puts a full stop behind the day.
fn is_month(rest: &str) -> bool {
    MONTHS.iter().any(|month| rest.starts_with(month))
}

/// Returns the length of quotation marks and brackets that close behind a sentence.
fn closing(rest: &str) -> usize {
    rest.len() - rest.trim_start_matches(['"', '”', '“', '’', '»', ')', '*']).len()
}

fn push(found: &mut Vec<Range<usize>>, line: &str, range: Range<usize>, at: usize) {
    let text = &line[range.clone()];
    let bare = text.trim_start_matches(|c: char| c.is_whitespace() || "-*•–>#".contains(c));
    let start = at + range.start + (text.len() - bare.len());
    let bare = bare.trim_end();
    if !bare.is_empty() {
        found.push(start..start + bare.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str) -> Vec<&str> {
        sentences(text).into_iter().map(|range| &text[range]).collect()
    }

    #[test]
    fn full_stops_of_abbreviations_and_dates_end_no_sentence() {
        let text =
            "Only Dr. Weber may speak. Ab dem 4. März gilt das, z. B. hier! \"Really?\" Yes.";
        let expected = [
            "Only Dr. Weber may speak.",
            "Ab dem 4. März gilt das, z. B. hier!",
            "\"Really?\"",
            "Yes.",
        ];
        assert_eq!(cut(text), expected);
    }

    #[test]
    fn lines_and_list_items_are_sentences() {
        assert_eq!(
            cut("Rules\n- no emojis\n* Costs 4.50 EUR.\n\n"),
            ["Rules", "no emojis", "Costs 4.50 EUR."]
        );
    }
}
