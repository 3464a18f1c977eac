//! Token counts of earlier calls, and if they apply to the next one.

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::{
    context::{Calibration, Checkpoint},
    domain::sessions::SessionRow,
    jobs::run_turn::load::assignment::Assignment,
    tools,
};

/// Drops the counts of calls that offered other tools. Definitions of tools are in every count, with an unknown size.
/// With fewer tools than before, the provider would seem to have lost part of the history.
pub fn forget_other_counts(session: &mut SessionRow, assignment: &Assignment<'_>) {
    let counted = session.checkpoint.as_ref().map(|counted| counted[OFFERED].as_str());
    let offered = digest_offered_tools(assignment);
    if counted.is_some_and(|counted| counted.unwrap_or_default() != offered) {
        session.checkpoint = None;
        session.calibration = serde_json::to_value(Calibration::cold()).ok();
    }
}

/// Encodes a count for storage.
pub fn checkpoint(counted: Checkpoint, assignment: &Assignment<'_>) -> Option<Value> {
    let mut stored = serde_json::to_value(counted).ok()?;
    stored[OFFERED] = digest_offered_tools(assignment).into();
    Some(stored)
}

const OFFERED: &str = "offered";

/// Returns a digest of everything that the agent's file offers to the model. Empty if it offers nothing.
fn digest_offered_tools(assignment: &Assignment<'_>) -> String {
    let granted = &assignment.agent.grants;
    let mut all = granted.built_in_tools();
    all.extend(granted.mcp_servers.names().map(|name| format!("mcp__{name}")));
    let own = tools::list_offered_to_agent(&assignment.agent, &assignment.task.instance);
    all.extend(own.iter().map(|tool| format!("mcp__{}__{}", tools::SERVER, tool.name)));
    if all.is_empty() || !assignment.route.provider.holds_session() {
        return String::new();
    }
    all.sort();
    all.extend([format!("{:?}", granted.disallowed_tools), granted.workspace.to_string()]);
    let digest = Sha256::digest(all.join("\n").as_bytes());
    hex::encode(&digest[..8])
}
