//! Output of `--follow`: events and streamed text on stderr, the result on stdout.

use crate::{
    cli::{output::Output, words::time},
    domain::{
        feed::{Event, Kind},
        statuses::tool_name,
        tasks::Task,
    },
};

pub(super) struct EventPrinter {
    output: Output,
    /// Text of the current turn that has been printed.
    shown: String,
    is_mid_line: bool,
    /// The tool that the turn is calling.
    tool: Option<String>,
}

impl EventPrinter {
    pub(super) fn new(output: Output) -> Self {
        Self { output, shown: String::new(), is_mid_line: false, tool: None }
    }

    pub(super) fn print_event(&mut self, event: &Event) {
        if event.kind == Kind::TurnProgress.as_str() && !self.output.is_structured() {
            let text = event.data["text"].as_str().unwrap_or_default();
            self.output.print_piece(text);
            self.shown.push_str(text);
            self.is_mid_line = !self.shown.is_empty() && !self.shown.ends_with('\n');
            self.print_tool(event.data["tool"].as_str().map(tool_name));
            return;
        }
        if event.kind == Kind::TurnStarted.as_str() {
            self.shown.clear();
        }
        self.end_line();
        self.output.print_progress(event, || format_event(event));
    }

    /// Prints the result, unless its text was just streamed to the same terminal.
    pub(super) fn end(&mut self, task: &Task) {
        self.end_line();
        let result = task.result.as_deref().unwrap_or_default();
        if self.output.is_structured()
            || !self.output.is_terminal()
            || self.shown.trim() != result.trim()
        {
            self.output.print_item(task, || result.to_owned());
        }
    }

    /// Prints a line when the turn begins to call a tool.
    fn print_tool(&mut self, tool: Option<String>) {
        if let Some(name) = tool.as_ref().filter(|_| tool != self.tool) {
            self.end_line();
            self.output.print_note(&format!("calling {name}"));
        }
        self.tool = tool;
    }

    fn end_line(&mut self) {
        if std::mem::take(&mut self.is_mid_line) {
            self.output.print_piece("\n");
        }
    }
}

pub(in crate::cli) fn format_event(event: &Event) -> String {
    let mut text = format!("{}  {}", time(event.created_at), event.kind);
    let told = event.data.as_object().into_iter().flatten();
    for (key, value) in told.filter(|(_, value)| !value.is_null()) {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        text.push_str(&format!("  {key}={value}"));
    }
    text
}
