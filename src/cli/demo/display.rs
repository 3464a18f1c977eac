//! Output of the running demo: one line per event, and on a terminal a status line below them.

use std::{
    io::{IsTerminal as _, Write as _},
    time::Duration,
};

use tokio::time::Instant;

use crate::settings::Environment;

/// Narrower than common terminals: a status that wraps cannot be erased.
const STATUS_MAX_CHARS: usize = 76;
const WIPE_LINE: &str = "\r\x1b[2K";

#[derive(Debug)]
pub(super) struct Display {
    mode: Mode,
    started: Instant,
    /// Text of the status line.
    status: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Live,
    Lines,
    /// Lines go to stderr, because stdout is reserved for the JSON object at the end.
    Aside,
}

impl Display {
    pub(super) fn new(json: bool, environment: &Environment) -> Self {
        let is_plain = environment.get("NO_COLOR").is_some()
            || environment.get("TERM").is_none_or(|term| term == "dumb");
        let mode = match json {
            true => Mode::Aside,
            false if is_plain || !std::io::stdout().is_terminal() => Mode::Lines,
            false => Mode::Live,
        };
        Self { mode, started: Instant::now(), status: String::new() }
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Prints a line that stays on the screen.
    pub(super) fn line(&mut self, text: &str) {
        let line = format!("  {}  {text}", clock(self.elapsed()));
        match self.mode {
            Mode::Live => {
                show(&format!("{WIPE_LINE}{line}\n{}", self.status));
            }
            Mode::Lines => show(&format!("{line}\n")),
            // A closed stderr is not an error.
            Mode::Aside => _ = writeln!(std::io::stderr(), "{line}"),
        }
    }

    /// Replaces the status line; shown on a terminal only.
    pub(super) fn status(&mut self, text: &str) {
        if self.mode != Mode::Live {
            return;
        }
        let status: String =
            format!("  {}  {text}", clock(self.elapsed())).chars().take(STATUS_MAX_CHARS).collect();
        if status != self.status {
            show(&format!("{WIPE_LINE}{status}"));
            self.status = status;
        }
    }

    /// Erases the status line, so that other output can follow.
    pub(super) fn end(&mut self) {
        if self.mode == Mode::Live && !std::mem::take(&mut self.status).is_empty() {
            show(WIPE_LINE);
        }
    }
}

/// Draws a progress bar: `[####....]`.
pub(super) fn bar(done: usize, all: usize) -> String {
    format!("[{}{}]", "#".repeat(done), ".".repeat(all.saturating_sub(done)))
}

fn show(text: &str) {
    let mut stdout = std::io::stdout().lock();
    // A closed stdout is not an error.
    let _ = stdout.write_all(text.as_bytes());
    let _ = stdout.flush();
}

fn clock(elapsed: Duration) -> String {
    let secs = elapsed.as_secs();
    format!("{}:{:02}", secs / 60, secs % 60)
}
