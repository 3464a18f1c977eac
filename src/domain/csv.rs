//! Comma-separated values, as RFC 4180 describes, with texts that spreadsheets do not run.

use std::borrow::Cow;

/// The characters with which formulas of spreadsheets begin. Some spreadsheets skip a tab or a carriage return before them.
const FORMULA_BEGINS: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];

/// Puts an apostrophe before a text that a spreadsheet would run as a formula, as OWASP advises. Cells with numbers need none.
pub fn escape_formula(text: &str) -> Cow<'_, str> {
    match text.starts_with(FORMULA_BEGINS) {
        true => Cow::Owned(format!("'{text}")),
        false => Cow::Borrowed(text),
    }
}

/// Joins cells to a line without its end, and quotes those that need it.
pub fn line<C: AsRef<str>>(cells: impl Iterator<Item = C>) -> String {
    cells.map(|cell| quote(cell.as_ref())).collect::<Vec<_>>().join(",")
}

fn quote(cell: &str) -> String {
    match cell.contains([',', '"', '\n', '\r']) || cell.trim() != cell {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_would_be_a_formula_begins_with_an_apostrophe() {
        for text in ["=1+2", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1"] {
            assert_eq!(escape_formula(text), format!("'{text}"));
        }
        for text in ["", "writer", "a=b", "'=1", "(4 others)", "2026-11-29"] {
            assert_eq!(escape_formula(text), text);
        }
    }

    #[test]
    fn cells_with_separators_quotes_and_blanks_at_an_end_are_quoted() {
        assert_eq!(
            line(["a", "b,c", "\"d\"", " e", "f\r\ng"].iter()),
            "a,\"b,c\",\"\"\"d\"\"\",\" e\",\"f\r\ng\""
        );
    }
}
