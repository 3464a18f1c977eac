//! One row of a session's transcript together with what was measured of it when it was written.

use std::sync::{Arc, OnceLock};

use uuid::Uuid;

use crate::{
    context::{digest::Digest, weight::Weight, xml::FenceSeed},
    transcript::Message,
};

/// `weight` and `digest` depend on the message alone: they are stored beside it, so that a turn measures
/// and hashes what it adds and not what it continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub id: Uuid,
    /// Rises by time of commit within the session; gaps are allowed.
    pub seq: i64,
    pub message: Arc<Message>,
    pub weight: Weight,
    pub digest: Digest,
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
        Self { id, seq, message, weight, digest, rendering: Rendering::default() }
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
