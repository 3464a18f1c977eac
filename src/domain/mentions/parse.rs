//! Parsing the names that a text mentions.
//! ```text
//! @ann, ask @bea/2.           ann · bea/2
//! @all                        all
//! ann@example.com @ex.com     none: addresses and domains
//! \@ann  `@ann`  ``` … ```    none: escaped, and code as in Markdown
//! //host/@ann  @ann@host      none: parts of something longer
//! ```
//!
//! A name ends where its letters, digits, `-` and `_` end, so `@anna` is never `ann`. Names are not checked for existence here. Takes
//! time linear in the length of the text.

use std::collections::HashMap;

/// Returns the name behind each mentioning `@`, in order, with repetitions.
pub(super) fn names(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for paragraph in paragraphs(text) {
        for prose in without_code_spans(paragraph) {
            mentioned_in(prose, &mut found);
        }
    }
    found
}

/// Returns the stretches between blank lines and fences, without fenced code. An unclosed fence reaches to the end.
fn paragraphs(text: &str) -> Vec<&str> {
    let (mut found, mut from, mut at) = (Vec::new(), 0, 0);
    let mut fence: Option<&str> = None;
    for line in text.split_inclusive('\n') {
        let end = at + line.len();
        match fence {
            Some(open) if closes(line, open) => (fence, from) = (None, end),
            Some(_) => {}
            None => {
                let opened = opens(line);
                if opened.is_some() || line.trim().is_empty() {
                    found.push(&text[from..at]);
                    (fence, from) = (opened, end);
                }
            }
        }
        at = end;
    }
    if fence.is_none() {
        found.push(&text[from..]);
    }
    found
}

/// Returns the marks of a line that opens a fence.
fn opens(line: &str) -> Option<&str> {
    let unindented = line.trim_start_matches(' ');
    let mark = unindented.chars().next().filter(|mark| ['`', '~'].contains(mark))?;
    let behind = unindented.trim_start_matches(mark);
    let marks = &unindented[..unindented.len() - behind.len()];
    let is_span = mark == '`' && behind.contains('`');
    (marks.len() >= 3 && line.len() - unindented.len() <= 3 && !is_span).then_some(marks)
}

fn closes(line: &str, marks: &str) -> bool {
    let line = line.trim();
    line.len() >= marks.len() && line.chars().all(|c| marks.starts_with(c))
}

/// Returns the stretches between code spans. A run of backticks without a second one of its length is text.
fn without_code_spans(paragraph: &str) -> Vec<&str> {
    let runs = backtick_runs(paragraph);
    let mut next_of_length = HashMap::new();
    let mut partners: Vec<Option<usize>> = vec![None; runs.len()];
    for (place, (_, length)) in runs.iter().enumerate().rev() {
        partners[place] = next_of_length.insert(*length, place);
    }
    let (mut found, mut from, mut place) = (Vec::new(), 0, 0);
    while place < runs.len() {
        let (at, _) = runs[place];
        place = match partners[place].filter(|_| !is_escaped(&paragraph[..at])) {
            Some(partner) => {
                found.push(&paragraph[from..at]);
                from = runs[partner].0 + runs[partner].1;
                partner + 1
            }
            None => place + 1,
        };
    }
    found.push(&paragraph[from..]);
    found
}

/// Returns the start and the length of each run of backticks.
fn backtick_runs(text: &str) -> Vec<(usize, usize)> {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for (at, _) in text.match_indices('`') {
        match runs.last_mut() {
            Some((from, length)) if *from + *length == at => *length += 1,
            _ => runs.push((at, 1)),
        }
    }
    runs
}

fn mentioned_in<'a>(prose: &'a str, found: &mut Vec<&'a str>) {
    let mut last_end = None;
    for (at, _) in prose.match_indices('@') {
        let before = &prose[..at];
        // `@ann/@bea` mentions two; behind any other slash it is part of a path.
        let is_second = before.ends_with('/') && last_end == Some(at - 1);
        let Some(name) = name_at(&prose[at + 1..]) else { continue };
        if is_second || is_boundary(before) {
            found.push(name);
            last_end = Some(at + 1 + name.len());
        }
    }
}

/// Returns true if a mention may begin behind this text.
fn is_boundary(before: &str) -> bool {
    let is_part_of_more = |c: char| c.is_alphanumeric() || "@/\\+%=&#?".contains(c);
    // Emphasis is a boundary, unless it is within a word.
    let before = match before.trim_end_matches(['*', '_', '~']) {
        plain if plain.len() < before.len() => plain,
        _ if is_escaped(before) => return false,
        // An even number of backslashes escapes only backslashes.
        _ => before.trim_end_matches('\\'),
    };
    before.chars().next_back().is_none_or(|last| !is_part_of_more(last))
}

fn is_escaped(before: &str) -> bool {
    (before.len() - before.trim_end_matches('\\').len()) % 2 == 1
}

/// Returns the name at the beginning of the text, with its instance if it has one.
fn name_at(text: &str) -> Option<&str> {
    if !text.starts_with(char::is_alphanumeric) {
        return None;
    }
    let mut end = word_len(text);
    let instance = text[end..].strip_prefix('/').map_or(0, word_len);
    if instance > 0 {
        end += 1 + instance;
    }
    let mut behind = text[end..].chars();
    let goes_on = match behind.next() {
        Some('@') => true,
        Some('.') => behind.next().is_some_and(char::is_alphanumeric),
        Some('/') => instance > 0 && behind.next().is_some_and(char::is_alphanumeric),
        _ => false,
    };
    (!goes_on).then(|| &text[..end])
}

fn word_len(text: &str) -> usize {
    text.find(|c: char| !(c.is_alphanumeric() || c == '-' || c == '_')).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mentions_begin_and_end_at_word_boundaries() {
        assert_eq!(
            names("@ann, ask @bea. Then (@cid)! @dan's turn; \"@eve\""),
            ["ann", "bea", "cid", "dan", "eve"]
        );
        assert_eq!(names("@ann\n@bea\t@all"), ["ann", "bea", "all"]);
        assert_eq!(names("@ann-marie and @ann_2 are not @ann"), ["ann-marie", "ann_2", "ann"]);
        assert_eq!(
            names("**@ann** _@bea_ cc:@cid,@dan -@eve"),
            ["ann", "bea_", "cid", "dan", "eve"]
        );
        assert_eq!(names("@ann/@bea/2 @cid/ @dan/eu."), ["ann", "bea/2", "cid", "dan/eu"]);
        assert_eq!(names("@wörter @Ann"), ["wörter", "Ann"]);
    }

    #[test]
    fn parts_of_longer_words_are_not_mentions() {
        for text in [
            "ann@example.com",
            "ann@localhost",
            "a.b+c@ann",
            "write to x_@ann",
            "@example.com",
            "https://host/@ann",
            "https://host/?to=@ann",
            "@ann@host",
            "@@ann",
            "@a/b/c",
            "@",
            "@ ann",
            "@-",
            "ann @,",
        ] {
            assert_eq!(names(text), Vec::<&str>::new(), "{text}");
        }
    }

    #[test]
    fn escaped_text_and_code_contain_no_mentions() {
        assert_eq!(names(r"\@ann \\@bea \\\@cid"), ["bea"]);
        assert_eq!(names("`@ann` ``a ` @bea`` @cid"), ["cid"]);
        assert_eq!(names("a ` is a tick @ann"), ["ann"]);
        assert_eq!(names("a ` is\n\na tick @ann `"), ["ann"]);
        assert_eq!(names(r"\`@ann`"), ["ann"]);
        assert_eq!(names("@ann\n```sh\n@bea\n~~~\n```\n@cid"), ["ann", "cid"]);
        assert_eq!(names("~~~~\n@ann\n~~~\n@bea\n~~~~~\n@cid"), ["cid"]);
        assert_eq!(names("   ```\n@ann"), Vec::<&str>::new());
        assert_eq!(names("```@ann``` @bea"), ["bea"]);
    }

    #[test]
    fn parsing_a_megabyte_takes_no_time() {
        let ticks: String = (1..1400).map(|n| "`".repeat(n) + " ").collect();
        for text in [
            ticks,
            "@ann ".repeat(200_000),
            "\\".repeat(1 << 20) + "@ann",
            "@".repeat(1 << 20),
            "/@".repeat(1 << 19),
        ] {
            let started = std::time::Instant::now();
            names(&text);
            assert!(started.elapsed().as_secs() < 5, "{:.20}", text);
        }
    }
}
