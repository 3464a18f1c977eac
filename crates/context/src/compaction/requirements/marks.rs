//! Marks that people put in front of a requirement.

/// Marks at the beginning of a line, with or without a list's dash in front, in upper or lower case.
const MARKS: [&str; 10] = [
    "pin:",
    "must:",
    "requirement:",
    "standing requirement:",
    "rule:",
    "standing rule:",
    "regel:",
    "vorgabe:",
    "anforderung:",
    "muss:",
];

/// Returns the text behind the mark of a line, if it has one.
pub fn text_after_mark(line: &str) -> Option<&str> {
    let line = line.trim_start_matches(['-', '*', ' ', '\t']).trim_end();
    let rest = MARKS.iter().find_map(|mark| {
        let head = line.get(..mark.len())?;
        head.eq_ignore_ascii_case(mark).then(|| line[mark.len()..].trim())
    })?;
    (!rest.is_empty()).then_some(rest)
}
