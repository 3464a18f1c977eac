//! Output of commands: tables and sentences for people, JSON for programs.

use std::{
    borrow::Cow,
    io::{IsTerminal as _, Write as _},
};

use serde::Serialize;
use serde_json::json;

use super::Failure;
use crate::causes::causes;

/// Width of wrapped output: that of the narrowest common terminal.
const COLUMNS: usize = 80;

#[derive(Debug, Clone, Copy)]
pub(super) struct Output {
    json: bool,
}

impl Output {
    pub(super) fn new(json: bool) -> Self {
        Self { json }
    }

    pub(super) fn is_json(self) -> bool {
        self.json
    }

    /// Prints data: `value` as JSON, or `text`.
    pub(super) fn print_data(self, value: &impl Serialize, text: impl FnOnce() -> String) {
        let shown = match self.json {
            true => serde_json::to_string_pretty(value).unwrap_or_default(),
            false => text(),
        };
        self.print_text(&shown);
    }

    /// Prints a list that has no headings. An empty one is named on stderr, where a table would print its headings.
    pub(super) fn print_list<T: Serialize>(
        self,
        items: &[T],
        noun: &str,
        format: impl Fn(&T) -> String,
    ) {
        match items.is_empty() && !self.json {
            true => self.print_note(&format!("no {noun}")),
            false => self.print_data(&items, || items.iter().map(format).collect()),
        }
    }

    /// Prints data that has one form only.
    pub(super) fn print_text(self, text: &str) {
        let mut out = std::io::stdout();
        let text = text.trim_end();
        // Escapes text for a terminal, because a model's text must not move the cursor or rename the window. A file
        // gets the text unchanged.
        let shown = if out.is_terminal() { escape_control(text) } else { Cow::Borrowed(text) };
        // A closed reader (`| head`) is not an error.
        let _ = writeln!(out, "{shown}");
    }

    /// Prints bytes as they are, without a newline at the end.
    pub(super) fn print_bytes(self, bytes: &[u8]) {
        let _ = std::io::stdout().write_all(bytes);
    }

    /// Prints the result of a command; an empty text prints nothing.
    pub(super) fn print_result(self, value: &impl Serialize, text: impl FnOnce() -> String) {
        match self.json {
            true => self.print_data(value, String::new),
            false => {
                Some(text()).filter(|text| !text.is_empty()).iter().for_each(|t| self.print_text(t))
            }
        }
    }

    /// Prints the progress of a waiting command: JSON lines on stdout, or notes on stderr.
    pub(super) fn print_progress(self, value: &impl Serialize, text: impl FnOnce() -> String) {
        match self.json {
            true => self.print_text(&serde_json::to_string(value).unwrap_or_default()),
            false => {
                let _ = writeln!(std::io::stderr(), "{}", escape_control(&text()));
            }
        }
    }

    /// Prints a note to stderr.
    pub(super) fn print_note(self, text: &str) {
        let _ = writeln!(std::io::stderr(), "{}", escape_control(text));
    }

    /// Prints a part of a note to stderr.
    pub(super) fn print_piece(self, text: &str) {
        let mut err = std::io::stderr();
        let _ = write!(err, "{}", escape_control(text));
        let _ = err.flush();
    }

    /// Replaces the previous note on a terminal.
    pub(super) fn rewrite_note(self, text: &str) {
        let mut err = std::io::stderr();
        // Moves to the first column and clears the line.
        let _ = write!(err, "\r\u{1b}[K{}", escape_control(text));
        let _ = err.flush();
    }

    /// Returns true if stdout and stderr are the same terminal or two terminals.
    pub(super) fn is_terminal(self) -> bool {
        std::io::stdout().is_terminal() && std::io::stderr().is_terminal()
    }

    /// Prints the result after lines of [`Self::print_progress`], as one line in JSON.
    pub(super) fn print_last(self, value: &impl Serialize, text: impl FnOnce() -> String) {
        match self.json {
            true => self.print_text(&serde_json::to_string(value).unwrap_or_default()),
            false => self.print_result(value, text),
        }
    }

    pub(super) fn print_failure(self, failure: &Failure) {
        let mut err = std::io::stderr();
        let shown = match self.json {
            true => failure_as_json(failure),
            false => escape_control(&failure_as_text(failure)).into_owned(),
        };
        // JSON gets the text unchanged, unless stderr is a terminal.
        let shown = if err.is_terminal() { escape_control(&shown) } else { Cow::Borrowed(&*shown) };
        let _ = writeln!(err, "{shown}");
    }
}

fn failure_as_json(failure: &Failure) -> String {
    let mut value = json!({
        "code": failure.exit.code(),
        "retryable": failure.exit.is_retryable(),
        "error": causes(&*failure.error),
    });
    if let Some(advice) = failure.advice {
        value["next"] = advice.into();
    }
    value.to_string()
}

fn failure_as_text(failure: &Failure) -> String {
    let mut text = format!("error: {}", failure.error);
    for cause in failure.error.chain().skip(1).map(|cause| cause.to_string()) {
        // Skips causes that the text contains: many errors repeat their cause.
        if !text.contains(&cause) {
            text.push_str(&format!("\n  because: {cause}"));
        }
    }
    if let Some(advice) = failure.advice {
        text.push_str(&format!("\n  next: {advice}"));
    }
    text
}

/// Formats names and values as aligned lines.
pub(super) fn format_fields(fields: &[(&str, String)]) -> String {
    let width = fields.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    fields.iter().map(|(name, value)| format!("{name:<width$}  {value}\n")).collect()
}

/// Replaces characters that control a terminal or change the order of a line.
fn escape_control(text: &str) -> Cow<'_, str> {
    let obeyed = |c: char| c.is_control() && !matches!(c, '\n' | '\t') || is_bidi_control(c);
    match text.contains(obeyed) {
        true => Cow::Owned(text.replace(obeyed, "\u{fffd}")),
        false => Cow::Borrowed(text),
    }
}

/// Returns true for the characters that Unicode lists as `Bidi_Control`.
fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Formats a table with columns as wide as their widest cell.
pub(super) fn format_table<const N: usize>(
    head: &[&str; N],
    rows: impl Iterator<Item = [String; N]>,
) -> String {
    let rows: Vec<[String; N]> = std::iter::once(head.map(str::to_owned)).chain(rows).collect();
    let width =
        |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..N).map(width).collect();
    let line = |row: &[String; N]| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        format!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
    };
    rows.iter().map(line).collect()
}

/// Formats a table whose last column is wrapped, so that its lines fit a terminal.
pub(super) fn format_wrapped_table<const N: usize>(
    head: &[&str; N],
    rows: impl Iterator<Item = ([String; N], String)>,
    last: &str,
) -> String {
    let head = (head.map(str::to_owned), last.to_owned());
    let rows: Vec<([String; N], String)> = std::iter::once(head).chain(rows).collect();
    let width =
        |column: usize| rows.iter().map(|(row, _)| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..N).map(width).collect();
    let line = |(row, last): &([String; N], String)| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}  "));
        format_wrapped(&cells.collect::<String>(), last)
    };
    rows.iter().map(line).collect()
}

/// Formats names and values as aligned lines, and wraps long values.
pub(super) fn format_wrapped_fields(fields: &[(&str, String)]) -> String {
    let width = fields.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    fields.iter().map(|(name, value)| format_wrapped(&format!("{name:<width$}  "), value)).collect()
}

/// Formats a text behind `prefix`. Lines break between words and are indented below the prefix.
pub(super) fn format_wrapped(prefix: &str, text: &str) -> String {
    let indent = prefix.chars().count();
    let (mut lines, mut column) = (prefix.to_owned(), indent);
    for word in text.split_whitespace() {
        let n_chars = word.chars().count();
        if column > indent && column + 1 + n_chars > COLUMNS {
            lines.push_str(&format!("\n{}", " ".repeat(indent)));
            column = indent;
        } else if column > indent {
            lines.push(' ');
            column += 1;
        }
        lines.push_str(word);
        column += n_chars;
    }
    format!("{}\n", lines.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_wrapped_below_their_beginning() {
        let text = format_wrapped("error  ", &"eleven char ".repeat(8));
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 2);
        assert!(lines[0].starts_with("error  eleven") && lines[1].starts_with("       eleven"));
        assert!(lines.iter().all(|line| line.len() <= COLUMNS), "{text}");
        assert_eq!(format_wrapped("a  ", ""), "a\n");
    }

    #[test]
    fn control_sequences_never_reach_the_terminal() {
        assert_eq!(escape_control("plain\ttext\n"), "plain\ttext\n");
        assert_eq!(escape_control("a\u{1b}]0;x\u{7}b\u{9b}c"), "a\u{fffd}]0;x\u{fffd}b\u{fffd}c");
    }

    #[test]
    fn a_line_is_shown_in_the_order_in_which_it_is_written() {
        for c in ['\u{61c}', '\u{200e}', '\u{200f}', '\u{202a}', '\u{202e}', '\u{2066}', '\u{2069}']
        {
            assert_eq!(escape_control(&format!("a{c}b")), "a\u{fffd}b", "{c:?}");
        }
        // Joiners of letters and emoji are text.
        assert_eq!(escape_control("a\u{200d}b\u{200c}c\u{feff}"), "a\u{200d}b\u{200c}c\u{feff}");
    }
}
