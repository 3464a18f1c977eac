//! Counts of the prompts that a compaction keeps.

use serde::Serialize;

use super::Compaction;

/// Counts of the prompts and sentences of people that a compaction still shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct KeptPrompts {
    /// Prompts that are kept word for word.
    pub kept: usize,
    /// Kept prompts whose middle is only in the archive.
    pub shortened: usize,
    /// Prompts that are only in the archive.
    pub archived: u64,
    /// Sentences of archived prompts that are kept word for word.
    pub sentences: usize,
}

impl Compaction {
    /// Counts the kept prompts. `None`: the compaction was refused, or made before prompts were kept.
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
