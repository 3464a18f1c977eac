//! Progress bars on stderr, if it is a terminal, and the wait for actions of workers.

use std::{io::IsTerminal as _, time::Duration};

use chrono::TimeDelta;
use clap::Args;
use tokio::time::{Instant, sleep};

use super::{Exit, Failure, output::Output, words::parse_period};

const BAR_CELLS: u64 = 24;
/// Pause between two drawings, for sources that report often.
const REDRAW: Duration = Duration::from_millis(100);
/// Pause between two looks at an action of a worker.
const POLL: Duration = Duration::from_millis(300);

/// The option to wait for an action of a worker.
#[derive(Debug, Default, Args)]
pub(super) struct WaitFlag {
    /// Waits for the end, at most this time: 30s, 10m, 2h. On a terminal a bar shows the progress.
    ///
    /// The exit code is 6 if the time ran out. The action goes on then.
    #[arg(long, value_name = "DURATION", value_parser = parse_period)]
    pub(super) wait: Option<TimeDelta>,
}

/// Progress of something that is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Progress {
    pub(super) done: u64,
    /// 0: unknown.
    pub(super) total: u64,
}

/// A line that is drawn again with each change. It is erased when it is dropped.
pub(super) struct ProgressBar {
    output: Output,
    name: &'static str,
    is_seen: bool,
    started: Instant,
    drawn: Option<Instant>,
}

impl ProgressBar {
    pub(super) fn new(name: &'static str, output: Output) -> Self {
        let is_seen = std::io::stderr().is_terminal();
        Self { output, name, is_seen, started: Instant::now(), drawn: None }
    }

    pub(super) fn show(&mut self, progress: Progress) {
        let is_due = self.drawn.is_none_or(|drawn| drawn.elapsed() >= REDRAW);
        if self.is_seen && is_due {
            let line = format_progress(self.name, progress, self.started.elapsed());
            self.output.rewrite_note(&line);
            self.drawn = Some(Instant::now());
        }
    }
}

impl Drop for ProgressBar {
    fn drop(&mut self) {
        if self.drawn.is_some() {
            self.output.rewrite_note("");
        }
    }
}

fn format_progress(name: &str, Progress { done, total }: Progress, took: Duration) -> String {
    let secs = took.as_secs();
    if total == 0 {
        return format!("{name}  {done}  {secs} s");
    }
    let share =
        |of: u64| u64::try_from(u128::from(done.min(total)) * u128::from(of) / u128::from(total));
    let n_full = usize::try_from(share(BAR_CELLS).unwrap_or_default()).unwrap_or_default();
    let n_empty = usize::try_from(BAR_CELLS).unwrap_or_default() - n_full;
    let percent = share(100).unwrap_or_default();
    let bar = format!("{}{}", "█".repeat(n_full), "░".repeat(n_empty));
    format!("{name}  {bar}  {percent} %  {done} of {total}  {secs} s")
}

/// Looks at an action of a worker until it has ended, or until the time has run out.
///
/// `look` returns the state, the progress, and true after the end.
pub(super) async fn wait_for_end<T>(
    name: &'static str,
    limit: TimeDelta,
    output: Output,
    look: impl AsyncFn() -> Result<(T, Progress, bool), Failure>,
) -> Result<(T, Exit), Failure> {
    let mut bar = ProgressBar::new(name, output);
    let limit = limit.to_std().unwrap_or_default();
    let started = Instant::now();
    loop {
        let (state, progress, has_ended) = look().await?;
        if has_ended {
            return Ok((state, Exit::Ok));
        }
        if started.elapsed() >= limit {
            return Ok((state, Exit::TimedOut));
        }
        bar.show(progress);
        sleep(POLL).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_shows_the_share_and_ends_at_its_total() {
        let format = |done, total| {
            format_progress("tasks", Progress { done, total }, Duration::from_secs(3))
        };
        assert_eq!(format(6, 24), "tasks  ██████░░░░░░░░░░░░░░░░░░  25 %  6 of 24  3 s");
        assert_eq!(format(30, 24), "tasks  ████████████████████████  100 %  30 of 24  3 s");
        assert_eq!(format(7, 0), "tasks  7  3 s");
    }
}
