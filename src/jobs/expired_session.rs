//! The summary of an expired session, built from the rows that are kept of it.

use uuid::Uuid;

use crate::{
    context::{
        Calibration, Entry,
        compaction::{Prompts, expiry, pins::Pin},
    },
    domain::session_summaries::{Excerpt, SessionSummary, SummaryText},
    transcript::Message,
};

/// Renders the summary so that it fits into `window_tokens`.
pub fn render(
    kept: &SessionSummary,
    window_tokens: u64,
    calibration: &Calibration,
) -> Option<SummaryText> {
    // Unreadable pins, of another version of the service, are dropped; the summary stays.
    let carried: Vec<Pin> = serde_json::from_value(kept.pins.clone()).unwrap_or_default();
    let prompts: Prompts =
        kept.prompts.clone().and_then(|it| serde_json::from_value(it).ok()).unwrap_or_default();
    let since: Vec<Entry> = kept.excerpts.iter().map(entry).collect();
    let memory = expiry::build_memory(
        kept.summary.as_deref(),
        &carried,
        &since,
        window_tokens,
        calibration,
    )?;
    let tokens = memory.tokens + calibration.tokens(prompts.weight());
    Some(SummaryText {
        summary: memory.summary,
        pins: serde_json::to_value(&memory.pins).unwrap_or_else(|_| serde_json::json!([])),
        tokens: i64::try_from(tokens).unwrap_or(i64::MAX),
    })
}

fn entry(excerpt: &Excerpt) -> Entry {
    let message = Message {
        role: excerpt.role,
        text: excerpt.text.clone(),
        tool_calls: Vec::new(),
        tool_call_id: None,
        tool_name: excerpt.by.clone(),
        media: Vec::new(),
    };
    Entry::new(Uuid::nil(), excerpt.seq, message)
}
