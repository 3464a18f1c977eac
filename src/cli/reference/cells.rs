//! Texts in the cells of tables.

/// Writes a text as full sentences in a cell of a table: help texts of one sentence have no full stop.
pub(super) fn sentences(text: &str) -> String {
    let text = cell(text);
    let is_closed = text.is_empty() || text.ends_with(['.', ':', '?', '…']);
    if is_closed { text } else { text + "." }
}

/// Writes code in a cell of a table.
pub(super) fn code(text: &str) -> String {
    format!("`{}`", text.replace('|', "\\|"))
}

/// Escapes a text for a cell of a table.
pub(super) fn cell(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut in_code = false;
    let escape = |c: char| {
        in_code ^= c == '`';
        match c {
            '|' => "\\|".to_owned(),
            '<' if !in_code => "\\<".to_owned(),
            c => c.to_string(),
        }
    };
    text.chars().map(escape).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_stay_in_their_table() {
        assert_eq!(cell("a | b\n  <c> `<d>`"), "a \\| b \\<c> `<d>`");
        assert_eq!(
            (code("<a|b>"), sentences("Lists keys")),
            ("`<a\\|b>`".into(), "Lists keys.".into())
        );
    }
}
