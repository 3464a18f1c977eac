//! The sections that every summary has.

/// Titles with the contents of their sections, in order.
pub const SECTIONS: [(&str, &str); 7] = [
    ("Goal", "what the conversation is for, in one or two sentences"),
    ("Standing requirements", "every rule that still holds, word for word, one per line"),
    ("Decisions", "what was decided, and why"),
    ("Done", "what has been finished, with its outcome"),
    ("Open", "what is unfinished, unanswered or promised"),
    ("Facts and identifiers", "every name, number, address, file and identifier, word for word"),
    ("Dead ends", "what was tried and does not work"),
];

pub const GOAL: &str = SECTIONS[0].0;
pub const REQUIREMENTS: &str = SECTIONS[1].0;
pub const DECISIONS: &str = SECTIONS[2].0;
pub const DONE: &str = SECTIONS[3].0;
pub const OPEN: &str = SECTIONS[4].0;
pub const FACTS: &str = SECTIONS[5].0;

/// Returns the titles that have no heading of their own in `text`.
pub fn missing(text: &str) -> Vec<&'static str> {
    SECTIONS
        .iter()
        .map(|(title, _)| *title)
        .filter(|title| !text.lines().any(|line| is_heading(line, title)))
        .collect()
}

/// Returns the lines under a heading, up to the next one.
pub fn body<'a>(text: &'a str, title: &str) -> impl Iterator<Item = &'a str> {
    text.lines()
        .skip_while(move |line| !is_heading(line, title))
        .skip(1)
        .take_while(|line| !is_any_heading(line))
        .filter(|line| !line.trim().is_empty())
}

pub(super) fn is_any_heading(line: &str) -> bool {
    SECTIONS.iter().any(|(title, _)| is_heading(line, title))
}

/// Returns true if a line is the heading of `title`. Models mark headings in different ways: any number of `#`, bold, a colon.
pub(super) fn is_heading(line: &str, title: &str) -> bool {
    line.starts_with(['#', '*'])
        && line
            .trim_matches(|c: char| c == '#' || c == '*' || c == ':' || c.is_whitespace())
            .eq_ignore_ascii_case(title)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_are_found_in_their_usual_markup() {
        let text = "## Goal\nwin\n**Open:**\n- a\n- b\n### done ###\n";
        let missing = missing(text);
        assert_eq!(missing.len(), 4);
        assert!(!missing.contains(&"Done"));
        assert_eq!(body(text, OPEN).collect::<Vec<_>>(), ["- a", "- b"]);
        assert_eq!(body(text, FACTS).count(), 0);
    }
}
