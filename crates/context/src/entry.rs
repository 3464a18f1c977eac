//! One row of a session's transcript together with what was measured of it when it was written.

use std::sync::{Arc, OnceLock};

use uuid::Uuid;

use crate::{
    digest::Digest,
    transcript::{Message, Role},
    weight::Weight,
    xml::FenceSeed,
};

/// `weight` and `digest` depend on the message alone: they are stored beside it, so that a turn measures
/// and hashes what it adds and not what it continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub id: Uuid,
    /// Rises by time of commit within the session; gaps are allowed.
    pub seq: i64,
    pub message: Arc<Message>,
    /// An answer whose turn was interrupted.
    pub partial: bool,
    pub weight: Weight,
    pub digest: Digest,
    /// Of a prompt whose row says so; posts of agents say so themselves.
    is_by_agent: bool,
    rendering: Rendering,
}

impl Entry {
    pub fn new(id: Uuid, seq: i64, message: Message) -> Self {
        let weight = Weight::of_message(&message);
        let digest = Digest::of_message(&message);
        Self::measured(id, seq, message, weight, digest)
    }

    /// Of a message that was measured when it was written.
    pub fn measured(id: Uuid, seq: i64, message: Message, weight: Weight, digest: Digest) -> Self {
        let message = Arc::new(message);
        Self {
            id,
            seq,
            message,
            partial: false,
            weight,
            digest,
            is_by_agent: false,
            rendering: Rendering::default(),
        }
    }

    /// Its task was added by an agent.
    pub fn mark_as_by_agent(&mut self) {
        self.is_by_agent = true;
    }

    /// A prompt that a person, or a program of theirs, wrote.
    pub fn is_by_person(&self) -> bool {
        self.message.role == Role::User && self.message.asked_by().is_none() && !self.is_by_agent
    }

    pub fn broken_off(mut self, partial: bool) -> Self {
        self.partial = partial;
        self
    }

    /// As it is sent: what `render` makes of it the first time, and the same from then on.
    pub(super) fn rendered(&self, seed: &FenceSeed, render: impl Fn() -> Message) -> Arc<Message> {
        let (made_with, message) =
            self.rendering.0.get_or_init(|| (seed.clone(), Arc::new(render())));
        match made_with == seed {
            true => Arc::clone(message),
            // A session has one seed. Under another one its fences would be wrong.
            false => Arc::new(render()),
        }
    }

    /// About what it takes in memory.
    pub fn bytes(&self) -> usize {
        let rendered = self.rendering.0.get().map_or(0, |(_, message)| message.text.len());
        size_of::<Self>() + size_of::<Message>() + self.message.text.len() + rendered
    }
}

/// What an entry looks like in a prompt, which never changes: kept with it, because every later turn sends it again.
#[derive(Debug, Clone, Default)]
struct Rendering(OnceLock<(FenceSeed, Arc<Message>)>);

impl PartialEq for Rendering {
    /// It follows from the message.
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Rendering {}
