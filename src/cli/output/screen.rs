//! The output of `--watch`: on a terminal a screen that is drawn again, elsewhere each changed output.

use std::{
    io::{self, IsTerminal as _, Write as _},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use super::{
    escape_control, failure_as_text,
    style::{paint, rows, style},
};
use crate::{
    cli::{Failure, words::time},
    clock::{Clock as _, SystemClock},
};

/// Opens a second screen without a cursor, whose lines are cut at the edge.
const OPEN: &str = "\u{1b}[?1049h\u{1b}[?25l\u{1b}[?7l";
const CLOSE: &str = "\u{1b}[?7h\u{1b}[?25h\u{1b}[?1049l";
const HOME: &str = "\u{1b}[H";
const CLEAR_LINE: &str = "\u{1b}[K";
const CLEAR_BELOW: &str = "\u{1b}[J";

/// Texts that a command has printed since the last [`Screen::show`].
static KEPT: Mutex<String> = Mutex::new(String::new());

pub(super) fn keep(text: &str) {
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    kept.push_str(text);
    kept.push('\n');
}

/// The screen of a watched command. The terminal is as before when it is dropped.
pub(in crate::cli) struct Screen {
    is_terminal: bool,
    every: Duration,
    shown: Option<String>,
}

impl Screen {
    pub(in crate::cli) fn open(every: Duration) -> Self {
        let is_terminal = io::stdout().is_terminal();
        if is_terminal {
            // The first draw reports an error.
            let _ = print(OPEN);
        }
        Self { is_terminal, every, shown: None }
    }

    /// Shows what the command has printed since the last call. Fails if the reader of the output has gone.
    pub(in crate::cli) fn show(&mut self) -> io::Result<()> {
        let kept = std::mem::take(&mut *KEPT.lock().unwrap_or_else(PoisonError::into_inner));
        if self.is_terminal {
            return self.draw(&kept);
        }
        if self.shown.as_ref() != Some(&kept) {
            print(&kept)?;
            self.shown = Some(kept);
        }
        Ok(())
    }

    /// Shows a failure after which the command is tried again.
    pub(in crate::cli) fn show_failure(&self, failure: &Failure) -> io::Result<()> {
        let is_coloured = self.is_terminal && style().is_coloured();
        let text = escape_control(&failure_as_text(failure, is_coloured)).into_owned();
        match self.is_terminal {
            true => self.draw(&paint(&text)),
            false => writeln!(io::stderr(), "{text}"),
        }
    }

    fn draw(&self, text: &str) -> io::Result<()> {
        let every = self.every.as_secs();
        let now = time(SystemClock.now());
        let head = format!("Every {every} s, at {now} UTC; Ctrl-C ends it");
        let n_lines = rows().saturating_sub(1);
        let lines = [head.as_str(), ""].into_iter().chain(text.lines()).take(n_lines);
        let lines: String = lines.map(|line| format!("{line}{CLEAR_LINE}\r\n")).collect();
        print(&format!("{HOME}{lines}{CLEAR_BELOW}"))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        if self.is_terminal {
            let _ = print(CLOSE);
        }
    }
}

fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout();
    out.write_all(text.as_bytes())?;
    out.flush()
}
