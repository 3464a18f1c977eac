//! Marks that people set in front of a requirement.

/// At the beginning of a line, with a list's dash in front or without, in any case of letters.
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

/// What stands behind the mark of a line, if it has one.
pub fn marked(line: &str) -> Option<&str> {
    let line = line.trim_start_matches(['-', '*', ' ', '\t']).trim_end();
    let rest = MARKS.iter().find_map(|mark| {
        let head = line.get(..mark.len())?;
        head.eq_ignore_ascii_case(mark).then(|| line[mark.len()..].trim())
    })?;
    (!rest.is_empty()).then_some(rest)
}
