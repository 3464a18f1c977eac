//! A row of a session's transcript, with the weight and digest measured when it was written.

use std::sync::{Arc, OnceLock};

use uuid::Uuid;

use crate::{
    attachments,
    digest::Digest,
    transcript::{Attachment, Message, Role},
    weight::Weight,
    xml::FenceSeed,
};

/// An entry of the transcript. `weight` and `digest` depend on the message alone. They are stored beside it, so that a
/// turn measures and hashes only new messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub id: Uuid,
    /// Position in the transcript. Rises by time of commit within the session; gaps are allowed.
    pub seq: i64,
    pub message: Arc<Message>,
    /// True for an answer whose turn was interrupted.
    pub partial: bool,
    pub weight: Weight,
    pub digest: Digest,
    /// True for a prompt whose row names an agent. Prompts that are posts of agents name the agent in the message.
    is_by_agent: bool,
    /// Files of the task whose prompt this is.
    attachments: Vec<Arc<Attachment>>,
    rendering: RenderedEntry,
}

impl Entry {
    pub fn new(id: Uuid, seq: i64, message: Message) -> Self {
        let weight = Weight::of_message(&message);
        let digest = Digest::of_message(&message);
        Self::from_measured(id, seq, message, weight, digest)
    }

    /// Creates an entry from a message that was measured when it was written.
    pub fn from_measured(
        id: Uuid,
        seq: i64,
        message: Message,
        weight: Weight,
        digest: Digest,
    ) -> Self {
        let message = Arc::new(message);
        Self {
            id,
            seq,
            message,
            partial: false,
            weight,
            digest,
            is_by_agent: false,
            attachments: Vec::new(),
            rendering: RenderedEntry::default(),
        }
    }

    /// Marks a prompt whose task was added by an agent.
    pub fn mark_as_by_agent(&mut self) {
        self.is_by_agent = true;
    }

    /// Returns true for a prompt that a person, or a person's program, wrote.
    pub fn is_by_person(&self) -> bool {
        self.message.role == Role::User
            && self.message.asking_agent().is_none()
            && !self.is_by_agent
    }

    /// Adds the files of the task whose prompt this is. Its weight includes them from then on.
    pub fn attach(&mut self, attachments: Vec<Arc<Attachment>>) {
        self.weight = self.text_weight() + attachments::weight_of(&attachments);
        self.attachments = attachments;
    }

    pub fn attachments(&self) -> &[Arc<Attachment>] {
        &self.attachments
    }

    /// Returns the weight without the files.
    pub fn text_weight(&self) -> Weight {
        match self.attachments.is_empty() {
            true => self.weight,
            false => self.weight.saturating_sub(attachments::weight_of(&self.attachments)),
        }
    }

    pub fn with_partial(mut self, partial: bool) -> Self {
        self.partial = partial;
        self
    }

    /// Returns the message as it is sent: the result of the first `render`, and the same from then on.
    pub(super) fn render_once(
        &self,
        seed: &FenceSeed,
        render: impl Fn() -> Message,
    ) -> Arc<Message> {
        let (made_with, message) =
            self.rendering.0.get_or_init(|| (seed.clone(), Arc::new(render())));
        match made_with == seed {
            true => Arc::clone(message),
            // A session has one seed. Under another one the cached fences would be wrong.
            false => Arc::new(render()),
        }
    }

    /// Returns the approximate size in memory.
    pub fn bytes(&self) -> usize {
        let rendered = self.rendering.0.get().map_or(0, |(_, message)| message.bytes());
        let files =
            self.attachments.iter().map(|file| file.content.as_ref().map_or(0, |it| it.len()));
        size_of::<Self>() + self.message.bytes() + rendered + files.sum::<usize>()
    }
}

/// The cached rendering of an entry. It never changes, and every later turn sends it again.
#[derive(Debug, Clone, Default)]
struct RenderedEntry(OnceLock<(FenceSeed, Arc<Message>)>);

impl PartialEq for RenderedEntry {
    /// Always equal: the rendering follows from the message.
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for RenderedEntry {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::ToolCall;

    #[test]
    fn the_size_of_an_entry_includes_its_calls_and_its_rendering() {
        let call = |thinking| ToolCall {
            id: "1".to_owned(),
            name: "write".to_owned(),
            arguments: serde_json::json!({ "lines": ["x".repeat(10_000), 1, null] }),
            thinking,
        };
        let bytes = |tool_calls| {
            let message = Message { tool_calls, ..Message::new(Role::Assistant, "Yes.") };
            Entry::new(Uuid::nil(), 1, message).bytes()
        };
        let (none, one) = (bytes(Vec::new()), bytes(vec![call(None)]));
        assert!((10_000..11_000).contains(&(one - none)), "{none} {one}");
        let thinking = serde_json::json!("y".repeat(10_000));
        assert!(bytes(vec![call(Some(thinking))]) - one >= 10_000);

        let message = Message { tool_calls: vec![call(None)], ..Message::new(Role::Assistant, "") };
        let entry = Entry::new(Uuid::nil(), 1, message);
        let before = entry.bytes();
        entry.render_once(&FenceSeed::from_bytes([7; 32]), || (*entry.message).clone());
        assert!(entry.bytes() - before >= 10_000);
    }
}
