//! Output of commands: tables and sentences for people, structured formats for programs.

mod cells;
mod csv;
mod fields;
mod screen;
mod style;
mod table;
mod tree;
mod yaml;

use std::{
    borrow::Cow,
    io::{IsTerminal as _, Write as _},
    sync::{Mutex, PoisonError},
};

use clap::ValueEnum;
use serde::Serialize;
use serde_json::json;

pub(super) use self::{
    cells::{
        clock_cell, money_column, short_id, short_text, text_cell, time_cell, time_cell_or_dash,
    },
    fields::{format_fields, format_wrapped, format_wrapped_fields},
    screen::Screen,
    style::{Colours, Style},
    table::{Table, format_table, format_wrapped_table, time_head},
};
use self::{
    style::{Tint, paint, style, tint},
    tree::{Page, Tree},
};
use super::Failure;
use crate::causes::causes;

/// The columns of the last CSV item of a command that prints items one by one.
static CSV_HEAD: Mutex<String> = Mutex::new(String::new());

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(super) enum Format {
    /// Tables and sentences for people.
    #[default]
    Table,
    /// One object or one array; commands that follow something print one object per line.
    Json,
    /// One object per line.
    Jsonl,
    /// YAML; commands that follow something print one document per item.
    Yaml,
    /// One line per item below the names of the columns.
    Csv,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Output {
    format: Format,
    /// Output is kept for [`Screen`] instead of printed.
    is_kept: bool,
}

impl Output {
    pub(super) fn new(format: Format) -> Self {
        Self { format, is_kept: false }
    }

    /// Returns an output whose texts are kept until [`Screen`] shows them.
    pub(super) fn kept(self) -> Self {
        Self { is_kept: true, ..self }
    }

    /// Returns true if a program reads the output.
    pub(super) fn is_structured(self) -> bool {
        self.format != Format::Table
    }

    pub(super) fn is_csv(self) -> bool {
        self.format == Format::Csv
    }

    /// Prints data: `value` in the format of the command, or `text`.
    pub(super) fn print_data(self, value: &impl Serialize, text: impl FnOnce() -> String) {
        let shown = match self.format {
            Format::Table => text(),
            Format::Json => serde_json::to_string_pretty(value).unwrap_or_default(),
            Format::Yaml => yaml::format_yaml(&Tree::of(value)),
            Format::Jsonl | Format::Csv => {
                let Page { items, beside } = Tree::of(value).into_page();
                self.print_beside(&beside);
                if self.format == Format::Csv { csv::format_csv(items) } else { lines(&items) }
            }
        };
        // An empty list has no line.
        if !(shown.is_empty() && matches!(self.format, Format::Jsonl | Format::Csv)) {
            self.print_text(&shown);
        }
    }

    /// Prints a list that has no headings. An empty one is named on stderr, where a table would print its headings.
    pub(super) fn print_list<T: Serialize>(
        self,
        items: &[T],
        noun: &str,
        format: impl Fn(&T) -> String,
    ) {
        match items.is_empty() && !self.is_structured() {
            true => self.print_note(&format!("no {noun}")),
            false => self.print_data(&items, || items.iter().map(format).collect()),
        }
    }

    /// Prints a list as a table. Below the headings of an empty one, `none` says on stderr that there is nothing, and behind a colon how an
    /// entry begins. With a filter or behind a cursor there may be others, and the note says that none match.
    pub(super) fn print_rows<T: Serialize>(
        self,
        items: &[T],
        is_filtered: bool,
        none: &str,
        table: impl FnOnce() -> String,
    ) {
        self.print_data(&items, table);
        if items.is_empty() && !self.is_structured() {
            self.print_note(describe_none(is_filtered, none).trim_end());
        }
    }

    /// Prints data that has one form only.
    pub(super) fn print_text(self, text: &str) {
        self.print_ended(text.trim_end(), "\n");
    }

    /// Prints lines that end with CR LF. A file gets all of them so, and a terminal without the CR.
    pub(super) fn print_crlf_lines(self, lines: &str) {
        let end = if std::io::stdout().is_terminal() { "\n" } else { "\r\n" };
        self.print_ended(lines.strip_suffix("\r\n").unwrap_or(lines), end);
    }

    fn print_ended(self, text: &str, end: &str) {
        let mut out = std::io::stdout();
        // Escapes text for a terminal, because a model's text must not move the cursor or rename the window. A file
        // gets the text unchanged.
        let shown = if out.is_terminal() { escape_control(text) } else { Cow::Borrowed(text) };
        let shown = if style().is_coloured() { paint(&shown) } else { shown };
        match self.is_kept {
            true => screen::keep(&shown),
            // A closed reader (`| head`) is not an error.
            false => _ = write!(out, "{shown}{end}"),
        }
    }

    /// Prints bytes as they are, without a newline at the end.
    pub(super) fn print_bytes(self, bytes: &[u8]) {
        let _ = std::io::stdout().write_all(bytes);
    }

    /// Prints the result of a command; an empty text prints nothing.
    pub(super) fn print_result(self, value: &impl Serialize, text: impl FnOnce() -> String) {
        match self.is_structured() {
            true => self.print_data(value, String::new),
            false => {
                Some(text()).filter(|text| !text.is_empty()).iter().for_each(|t| self.print_text(t))
            }
        }
    }

    /// Prints the progress of a waiting command: an item on stdout, or a note on stderr.
    pub(super) fn print_progress(self, value: &impl Serialize, text: impl FnOnce() -> String) {
        match self.is_structured() {
            true => self.print_item(value, String::new),
            false => self.print_note(&text()),
        }
    }

    /// Prints one of several items that a command prints one by one.
    pub(super) fn print_item(self, value: &impl Serialize, text: impl FnOnce() -> String) {
        match self.format {
            Format::Table => self.print_result(value, text),
            Format::Json | Format::Jsonl => {
                self.print_text(&serde_json::to_string(value).unwrap_or_default());
            }
            Format::Yaml => {
                self.print_text(&format!("---\n{}", yaml::format_yaml(&Tree::of(value))));
            }
            Format::Csv => {
                let (head, row) = csv::format_csv_item(Tree::of(value));
                let mut last = CSV_HEAD.lock().unwrap_or_else(PoisonError::into_inner);
                // Items of another type have other columns.
                let is_same = std::mem::replace(&mut *last, head.clone()) == head;
                self.print_text(&if is_same { row } else { head + &row });
            }
        }
    }

    /// Prints a note to stderr.
    pub(super) fn print_note(self, text: &str) {
        match self.is_kept {
            // A file has only data, and the same note again and again would hide a new one.
            true if std::io::stdout().is_terminal() => screen::keep(&escape_control(text)),
            true => {}
            false => _ = writeln!(std::io::stderr(), "{}", escape_control(text)),
        }
    }

    /// Prints the fields beside the items of a list to stderr, as one JSON object, so that the lines of stdout are items only.
    fn print_beside(self, beside: &Tree) {
        if !beside.is_empty() && !self.is_kept {
            let mut err = std::io::stderr();
            let json = beside.to_json();
            // A file gets the text unchanged.
            let shown =
                if err.is_terminal() { escape_control(&json) } else { Cow::Borrowed(&*json) };
            let _ = writeln!(err, "{shown}");
        }
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

    /// Prints an error to stderr, as JSON with the JSON formats.
    pub(super) fn print_failure(self, failure: &Failure) {
        let mut err = std::io::stderr();
        let is_coloured = style().are_errors_coloured();
        let shown = match self.format {
            Format::Json | Format::Jsonl => failure_as_json(failure),
            _ => escape_control(&failure_as_text(failure, is_coloured)).into_owned(),
        };
        // JSON gets the text unchanged, unless stderr is a terminal.
        let shown = if err.is_terminal() { escape_control(&shown) } else { Cow::Borrowed(&*shown) };
        let shown = if is_coloured { paint(&shown) } else { shown };
        let _ = writeln!(err, "{shown}");
    }
}

/// Formats the note below an empty list.
fn describe_none(is_filtered: bool, none: &str) -> String {
    let noun = none.split(':').next().unwrap_or(none);
    let text = if is_filtered { format!("{noun} match") } else { none.to_owned() };
    format_wrapped("", &text)
}

/// Returns one line of JSON per item.
fn lines(items: &[Tree]) -> String {
    items.iter().map(|item| format!("{}\n", item.to_json())).collect()
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

fn failure_as_text(failure: &Failure, is_coloured: bool) -> String {
    let label = if is_coloured { tint("error:", Tint::Bad) } else { "error:".to_owned() };
    let mut text = format!("{label} {}", failure.error);
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

/// Replaces characters that control a terminal or change the order of a line. A CR before a line end is left out.
pub(in crate::cli) fn escape_control(text: &str) -> Cow<'_, str> {
    let obeyed = |c: char| c.is_control() && !matches!(c, '\n' | '\t') || is_bidi_control(c);
    match text.contains(obeyed) {
        true => Cow::Owned(text.replace("\r\n", "\n").replace(obeyed, "\u{fffd}")),
        false => Cow::Borrowed(text),
    }
}

/// Returns true for the characters that Unicode lists as `Bidi_Control`.
fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_note_of_an_empty_list_is_wrapped_and_knows_filters() {
        let none = "no flows: `dalsegno flow templates` lists what `dalsegno flow start` can start, and each start adds one";
        assert_eq!(describe_none(true, none), "no flows match\n");
        let note = describe_none(false, none);
        assert!(note.starts_with("no flows: `dalsegno flow templates` lists"), "{note}");
        assert!(note.lines().count() == 2 && note.lines().all(|line| line.len() <= 80), "{note}");
    }

    #[test]
    fn control_sequences_never_reach_the_terminal() {
        assert_eq!(escape_control("plain\ttext\n"), "plain\ttext\n");
        assert_eq!(escape_control("a,b\r\n1,2\r\n3\r4"), "a,b\n1,2\n3\u{fffd}4");
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
