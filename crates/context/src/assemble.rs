//! Puts the parts of one call in their order.

use std::sync::Arc;

use crate::{
    calibration::Calibration,
    conversation,
    manifest::{ContextText, Ledger, Manifest},
    parts::Parts,
    system_part,
    transcript::Message,
    weight::Weight,
    xml::{FenceSeed, Scope},
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssembledContext {
    pub system: String,
    /// Roles are user, assistant and tool only; the last message is the user's and holds the task.
    /// Shared with the entries they were made from.
    pub messages: Vec<Arc<Message>>,
    /// Text for a provider that keeps the conversation itself: the messages after the last one that it received, and the task.
    pub unheard: Option<String>,
    pub manifest: Manifest,
    /// Texts of the manifest that no row has.
    pub texts: Vec<ContextText>,
    /// Weight of everything sent. Together with the provider's count it makes the next [`super::Checkpoint`].
    pub weight: Weight,
    pub system_weight: Weight,
    /// Weight of the files of the task.
    pub task_files_weight: Weight,
    /// Weight of the files of all prompts. Their tokens are estimated less exactly than those of texts.
    pub files_weight: Weight,
}

/// Assembles one call. Drops nothing for lack of space: [`super::Budget`] tells if the call fits, and compaction makes it fit.
pub fn assemble(
    parts: &Parts<'_>,
    seed: &FenceSeed,
    calibration: &Calibration,
) -> AssembledContext {
    let mut ledger = Ledger::new(calibration);
    let system = system_part::render(parts, &seed.fence(Scope::System), &mut ledger);
    let system_weight = ledger.weight();
    let conversation::RenderedConversation { messages, unheard, task_files, all_files } =
        conversation::render(parts, seed, &mut ledger);
    let weight = ledger.weight();
    let (manifest, texts) = ledger.finish();
    let manifest = Manifest { heard_to_seq: parts.heard_to_seq, ..manifest };
    AssembledContext {
        system,
        messages,
        unheard,
        manifest,
        texts,
        weight,
        system_weight,
        task_files_weight: task_files,
        files_weight: all_files,
    }
}
