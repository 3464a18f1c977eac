//! Text output of a provider's own transcript.

use super::show::{format_message, section, title};
use crate::{
    cli::output::format_wrapped_fields,
    operations::{ProviderTranscript, ProviderTranscriptState},
};

pub(super) fn format_transcript(read: &ProviderTranscript) -> String {
    let mut fields = vec![
        ("session", read.session_id.to_string()),
        ("turn", read.turn.to_string()),
        ("model", format!("{} on {}", read.model, read.provider)),
        ("file", read.file.clone()),
        ("entries", read.entries.len().to_string()),
        ("state", state(read.state).to_owned()),
    ];
    fields.extend(read.problem.iter().map(|problem| ("problem", problem.clone())));
    let mut text = format_wrapped_fields(&fields);
    for (at, entry) in read.entries.iter().enumerate() {
        let added = if entry.added { ", added by the provider's program" } else { "" };
        let title = format!("{}: {}{added}", at + 1, title(&entry.message));
        text.push_str(&section(&title, &format_message(&entry.message)));
    }
    text
}

fn state(state: ProviderTranscriptState) -> &'static str {
    match state {
        ProviderTranscriptState::Equal => "equal to the stored messages, word for word",
        ProviderTranscriptState::Differs => "differs from the stored messages",
        ProviderTranscriptState::NotCompared => "not compared",
    }
}
