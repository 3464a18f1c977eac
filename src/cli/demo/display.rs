//! What is seen while the demo plays: lines of what happened, and on a terminal one line below them of what goes on.

use std::{
    io::{IsTerminal as _, Write as _},
    time::Duration,
};

use tokio::time::Instant;

use crate::settings::Environment;

/// Narrower than any terminal that people use, because a status that wraps cannot be wiped away.
const STATUS_MAX_CHARS: usize = 76;
const WIPE_LINE: &str = "\r\x1b[2K";

#[derive(Debug)]
pub(super) struct Display {
    mode: Mode,
    started: Instant,
    /// What the live line shows now.
    status: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Live,
    Lines,
    /// stdout belongs to the one JSON object at the end.
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

    /// Something that happened, and stays on the screen.
    pub(super) fn line(&mut self, text: &str) {
        let line = format!("  {}  {text}", clock(self.elapsed()));
        match self.mode {
            Mode::Live => {
                show(&format!("{WIPE_LINE}{line}\n{}", self.status));
            }
            Mode::Lines => show(&format!("{line}\n")),
            // A reader that has gone is not an error.
            Mode::Aside => _ = writeln!(std::io::stderr(), "{line}"),
        }
    }

    /// What goes on at this moment; shown on a terminal only.
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

    /// Leaves the cursor where other output may begin.
    pub(super) fn end(&mut self) {
        if self.mode == Mode::Live && !std::mem::take(&mut self.status).is_empty() {
            show(WIPE_LINE);
        }
    }
}

/// `[####....]`
pub(super) fn bar(done: usize, all: usize) -> String {
    format!("[{}{}]", "#".repeat(done), ".".repeat(all.saturating_sub(done)))
}

fn show(text: &str) {
    let mut stdout = std::io::stdout().lock();
    // A reader that has gone is not an error.
    let _ = stdout.write_all(text.as_bytes());
    let _ = stdout.flush();
}

fn clock(elapsed: Duration) -> String {
    let secs = elapsed.as_secs();
    format!("{}:{:02}", secs / 60, secs % 60)
}
