//! A row of a session's transcript, with the weight and digest measured when it was written.

use std::sync::{Arc, OnceLock};

use uuid::Uuid;

use crate::{
    digest::Digest,
    transcript::{Message, Role},
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
        let rendered = self.rendering.0.get().map_or(0, |(_, message)| message.text.len());
        size_of::<Self>() + size_of::<Message>() + self.message.text.len() + rendered
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
