//! Printing: tables and sentences for people, JSON for programs.

use std::io::Write as _;

use serde::Serialize;
use serde_json::json;

use super::Failure;

#[derive(Debug, Clone, Copy)]
pub(super) struct Output {
    json: bool,
}

impl Output {
    pub(super) fn new(json: bool) -> Self {
        Self { json }
    }

    /// Data: `value` as JSON, or else `text`.
    pub(super) fn data(self, value: &impl Serialize, text: impl FnOnce() -> String) {
        let shown = match self.json {
            true => serde_json::to_string_pretty(value).unwrap_or_default(),
            false => text(),
        };
        self.text(&shown);
    }

    /// Data that has one form only.
    pub(super) fn text(self, text: &str) {
        // A reader that has gone (`| head`) is not an error.
        let _ = writeln!(std::io::stdout(), "{}", text.trim_end());
    }

    pub(super) fn failure(self, failure: &Failure) {
        let shown = match self.json {
            true => json!({
                "code": failure.exit.code(),
                "retryable": failure.exit.is_retryable(),
                "error": format!("{:#}", failure.error),
            })
            .to_string(),
            false => {
                let mut text = format!("error: {}", failure.error);
                for cause in failure.error.chain().skip(1).map(|cause| cause.to_string()) {
                    // Many errors repeat their cause in their own words.
                    if !text.contains(&cause) {
                        text.push_str(&format!("\n  because: {cause}"));
                    }
                }
                text
            }
        };
        let _ = writeln!(std::io::stderr(), "{shown}");
    }
}

/// Columns as wide as their widest cell.
pub(super) fn table<const N: usize>(
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
