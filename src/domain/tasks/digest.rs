//! Digest of a task's request, which the queue compares under an idempotency key.
//!
//! The comment of `dalsegno.digest_of_task` in the database defines the form; `tests/data/task_digests.json` has examples that both
//! implementations must match. Keys are kept for weeks, and versions run side by side during an upgrade, so every version must give the
//! same digest.

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::{New, add::mode_of};
use crate::domain::{agents::SessionMode as Mode, task_files::attachments};

/// Hashes the parts of the request with SHA-256, in hex. Each part has its length in front, so that two requests never share a byte
/// stream.
pub(super) fn of(new: &New<'_>) -> String {
    let campaign = new.campaign_id.to_string();
    let [micros, tokens] = [new.budget.micros, new.budget.tokens].map(limit);
    let limits = format!("{} {micros} {tokens}", session(mode_of(new)));
    let links = new.links.digest_text();
    let node = new.node.map(|node| format!("node {}", node.name));
    let flows = new.links.flow_templates.map(|names| format!("flows {}", names.join(",")));
    let parameters = new.parameters.filter(|it| !it.is_empty());
    let parameters = parameters.map(|it| format!("parameters {}", Value::Object(it.clone())));
    let schema = new.result_schema.map(|schema| format!("result_schema {schema}"));
    let within = new.within_secs.map(|secs| format!("within {secs}"));
    let parts = [&campaign, &new.agent.name, new.instance, new.prompt, &limits];
    // Left out if absent, so that keys from before they existed still match their requests.
    let files = attachments::digest_text(new.attachments);
    let more = [links, node, flows, parameters, schema, files, within];
    of_parts(parts.into_iter().chain(more.iter().filter_map(Option::as_deref)))
}

fn of_parts<'a>(parts: impl Iterator<Item = &'a str>) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part.as_bytes());
    }
    hex::encode(hasher.finalize())
}

/// Spells the session mode in the form, which differs from the setting.
fn session(mode: Mode) -> &'static str {
    match mode {
        Mode::Continue => "Continue",
        Mode::Fresh => "Fresh",
        Mode::None => "None",
    }
}

/// Spells a limit in the form.
fn limit(limit: Option<i64>) -> String {
    limit.map_or_else(|| "None".to_owned(), |limit| format!("Some({limit})"))
}
