//! What people wrote in folded turns, in numbers.

use serde::Serialize;

use super::Compaction;

/// How much of what people wrote is still shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct KeptPrompts {
    /// Prompts that stand there word for word.
    pub kept: usize,
    /// Those of them whose middle is in the archive.
    pub shortened: usize,
    /// Prompts that are in the archive alone.
    pub archived: u64,
    /// Sentences of those that stand there word for word.
    pub sentences: usize,
}

impl Compaction {
    /// `None`: it was made before any was kept, or was refused.
    pub fn kept_prompts(&self) -> Option<KeptPrompts> {
        let prompts = self.prompts.as_ref()?;
        let list = |key: &str| prompts[key].as_array().map_or(&[][..], Vec::as_slice);
        let is_shortened = |prompt: &&serde_json::Value| prompt["is_shortened"] == true;
        Some(KeptPrompts {
            kept: list("kept").len(),
            shortened: list("kept").iter().filter(is_shortened).count(),
            archived: prompts["archived"].as_u64().unwrap_or(0),
            sentences: list("sentences").len(),
        })
    }
}
