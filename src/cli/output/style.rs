//! The look of standard output: columns of the terminal, colours, `--wide`.

use std::{
    borrow::Cow,
    io::{IsTerminal as _, stdout},
    sync::OnceLock,
};

use clap::ValueEnum;

use crate::settings::Environment;

/// Width of wrapped output without a terminal: that of the narrowest common terminal.
pub(super) const DEFAULT_COLUMNS: usize = 80;
/// Longer lines of wrapped text are hard to read.
const MAX_TEXT_COLUMNS: usize = 120;

/// Set once, before the command runs. It belongs to the process as standard output does, and every formatter of a table would otherwise pass it on.
static STYLE: OnceLock<Style> = OnceLock::new();

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(in crate::cli) enum Colours {
    /// On a terminal, unless NO_COLOR is set.
    #[default]
    Auto,
    Always,
    Never,
}

#[derive(Debug, Clone, Copy, Default)]
pub(in crate::cli) struct Style {
    is_terminal: bool,
    is_wide: bool,
    is_coloured: bool,
    are_errors_coloured: bool,
}

/// A colour by its meaning. The terminal chooses the shade.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tint {
    Good,
    Bad,
    Waiting,
    Active,
    Over,
    Head,
}

/// A tint in a text that is still laid out. Unicode reserves these characters for the inside of programs, so they cannot be confused with
/// text, and the check for control characters leaves them alone.
const FIRST_MARK: u32 = 0xfdd0;
const END_MARK: char = '\u{fddf}';
const TINTS: [(Tint, &str); 6] = [
    (Tint::Good, "32"),
    (Tint::Bad, "31"),
    (Tint::Waiting, "33"),
    (Tint::Active, "36"),
    (Tint::Over, "2"),
    (Tint::Head, "1"),
];

impl Style {
    pub(in crate::cli) fn new(colours: Colours, is_wide: bool, environment: &Environment) -> Self {
        let is_terminal = stdout().is_terminal();
        let is_plain = environment.get("NO_COLOR").is_some_and(|value| !value.is_empty())
            || environment.get("TERM").is_some_and(|term| term == "dumb");
        let allows = |is_terminal: bool| match colours {
            Colours::Auto => is_terminal && !is_plain,
            Colours::Always => true,
            Colours::Never => false,
        };
        let is_coloured = allows(is_terminal);
        let are_errors_coloured = allows(std::io::stderr().is_terminal());
        Self { is_terminal, is_wide, is_coloured, are_errors_coloured }
    }

    /// Makes this the style of the process. The first one stays.
    pub(in crate::cli) fn set(self) {
        let _ = STYLE.set(self);
    }

    pub(super) fn is_wide(self) -> bool {
        self.is_wide
    }

    pub(super) fn is_coloured(self) -> bool {
        self.is_coloured
    }

    pub(super) fn are_errors_coloured(self) -> bool {
        self.are_errors_coloured
    }

    /// Times are relative only where a person reads them now. A file keeps exact times.
    pub(super) fn has_relative_times(self) -> bool {
        self.is_terminal && !self.is_wide
    }

    /// Returns the width that tables have to fit. `None`: any width.
    pub(super) fn table_columns(self) -> Option<usize> {
        (self.is_terminal && !self.is_wide).then(columns)
    }

    /// Returns the width at which text is wrapped.
    pub(super) fn text_columns(self) -> usize {
        if self.is_terminal { columns().min(MAX_TEXT_COLUMNS) } else { DEFAULT_COLUMNS }
    }
}

pub(super) fn style() -> Style {
    STYLE.get().copied().unwrap_or_default()
}

/// Reads the width of the terminal, which may have changed since the last output.
fn columns() -> usize {
    let size = rustix::termios::tcgetwinsize(stdout()).ok();
    size.map(|size| usize::from(size.ws_col)).filter(|n| *n > 0).unwrap_or(DEFAULT_COLUMNS)
}

/// Returns the rows of the terminal.
pub(super) fn rows() -> usize {
    let size = rustix::termios::tcgetwinsize(stdout()).ok();
    size.map(|size| usize::from(size.ws_row)).filter(|n| *n > 0).unwrap_or(24)
}

/// Marks a text for [`paint`].
pub(super) fn tint(text: &str, tint: Tint) -> String {
    let place = TINTS.iter().position(|(other, _)| *other == tint).unwrap_or_default();
    let place = u32::try_from(place).unwrap_or_default();
    let mark = char::from_u32(FIRST_MARK + place).unwrap_or(END_MARK);
    format!("{mark}{text}{END_MARK}")
}

/// Returns true for the characters that [`tint`] adds.
pub(super) fn is_mark(c: char) -> bool {
    ('\u{fdd0}'..=END_MARK).contains(&c)
}

/// Replaces the marks by the sequences of a terminal.
pub(super) fn paint(text: &str) -> Cow<'_, str> {
    if !text.contains(is_mark) {
        return Cow::Borrowed(text);
    }
    let sequence = |mark: char| {
        let place = usize::try_from(u32::from(mark) - FIRST_MARK).unwrap_or(usize::MAX);
        TINTS.get(place).map_or("0", |(_, code)| code)
    };
    let mut painted = String::with_capacity(text.len());
    for c in text.chars() {
        match is_mark(c) {
            true => painted.push_str(&format!("\u{1b}[{}m", sequence(c))),
            false => painted.push(c),
        }
    }
    Cow::Owned(painted)
}

/// Returns the tint of a state by its first word.
pub(super) fn tint_of_state(state: &str) -> Option<Tint> {
    let word = state.split([' ', ':', ',']).next().unwrap_or_default();
    Some(match word {
        "done" | "delivered" | "active" | "open" | "enabled" | "ok" | "finished" | "applied"
        | "ready" => Tint::Good,
        "failed" | "dead" | "lost" | "failing" | "broken" | "refused" | "rejected"
        | "unfinished" => Tint::Bad,
        "waiting" | "paused" | "held" | "disabled" | "queued" | "scheduled" | "pending"
        | "blocked" | "snoozed" | "retrying" | "rests" | "stopping" => Tint::Waiting,
        "running" | "working" | "runs" | "begun" => Tint::Active,
        "cancelled" | "closed" | "expired" | "erased" | "revoked" | "skipped" | "undone"
        | "gone" | "removed" => Tint::Over,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tinted_text_ends_with_the_plain_colour() {
        assert_eq!(paint(&tint("done", Tint::Good)), "\u{1b}[32mdone\u{1b}[0m");
        assert_eq!(paint("plain"), "plain");
    }

    #[test]
    fn a_state_with_a_reason_has_the_colour_of_the_state() {
        assert_eq!(tint_of_state("disabled: moving"), Some(Tint::Waiting));
        assert_eq!(tint_of_state("failing since 2026-11-28"), Some(Tint::Bad));
        assert_eq!(tint_of_state("-"), None);
    }
}
