//! The digest of a question, which the queue compares under an idempotency key.
//!
//! The comment of `dalsegno.digest_of_task` in the database defines the form; `tests/data/task_digests.json` has examples that both ways
//! are held to. Keys are kept for weeks, and versions run side by side during an upgrade, so the same question has the same digest in
//! each version.

use sha2::{Digest as _, Sha256};

use super::{New, add::mode_of};
use crate::domain::agents::SessionMode as Mode;

/// SHA-256 in hex over the parts of the question, each with its length in front, so that no two questions share a byte stream.
pub(super) fn of(new: &New<'_>) -> String {
    let campaign = new.campaign_id.to_string();
    let [micros, tokens] = [new.budget.micros, new.budget.tokens].map(limit);
    let limits = format!("{} {micros} {tokens}", session(mode_of(new)));
    let links = new.links.words();
    let node = new.node.map(|node| format!("node {}", node.name));
    let parts = [&campaign, &new.agent.name, new.instance, new.prompt, &limits];
    // Left out where there are none: keys that were used before there were links and nodes mean the same question.
    of_parts(parts.into_iter().chain(links.as_deref()).chain(node.as_deref()))
}

fn of_parts<'a>(parts: impl Iterator<Item = &'a str>) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part.as_bytes());
    }
    hex::encode(hasher.finalize())
}

/// Part of the form: other words than those of the setting.
fn session(mode: Mode) -> &'static str {
    match mode {
        Mode::Continue => "Continue",
        Mode::Fresh => "Fresh",
        Mode::None => "None",
    }
}

/// Part of the form.
fn limit(limit: Option<i64>) -> String {
    limit.map_or_else(|| "None".to_owned(), |limit| format!("Some({limit})"))
}
