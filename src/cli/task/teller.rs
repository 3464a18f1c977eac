//! What `--follow` shows: the news beside the data, the text as it comes, the result at the end.

use crate::{
    cli::{output::Output, words::time},
    domain::{
        feed::{Event, Kind},
        tasks::Task,
    },
};

pub(super) struct Teller {
    output: Output,
    /// What has been shown of the answer of the turn that runs.
    shown: String,
    is_mid_line: bool,
}

impl Teller {
    pub(super) fn new(output: Output) -> Self {
        Self { output, shown: String::new(), is_mid_line: false }
    }

    pub(super) fn tell(&mut self, event: &Event) {
        if event.kind == Kind::TurnProgress.as_str() && !self.output.is_json() {
            let text = event.data["text"].as_str().unwrap_or_default();
            self.output.piece(text);
            self.shown.push_str(text);
            self.is_mid_line = !self.shown.is_empty() && !self.shown.ends_with('\n');
            return;
        }
        if event.kind == Kind::TurnStarted.as_str() {
            self.shown.clear();
        }
        self.end_line();
        self.output.progress(event, || event_line(event));
    }

    /// The result, unless the person at the terminal has just read all of it.
    pub(super) fn end(&mut self, task: &Task) {
        self.end_line();
        let result = task.result.as_deref().unwrap_or_default();
        if self.output.is_json() || !self.output.is_seen() || self.shown.trim() != result.trim() {
            self.output.last(task, || result.to_owned());
        }
    }

    fn end_line(&mut self) {
        if std::mem::take(&mut self.is_mid_line) {
            self.output.piece("\n");
        }
    }
}

pub(in crate::cli) fn event_line(event: &Event) -> String {
    let mut text = format!("{}  {}", time(event.created_at), event.kind);
    let told = event.data.as_object().into_iter().flatten();
    for (key, value) in told.filter(|(_, value)| !value.is_null()) {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        text.push_str(&format!("  {key}={value}"));
    }
    text
}
