//! One row of a session's transcript together with what was measured of it when it was written.

use uuid::Uuid;

use crate::{
    context::{digest::Digest, weight::Weight},
    transcript::Message,
};

/// `weight` and `digest` depend on the message alone: they are stored beside it, so that a turn measures
/// and hashes what it adds and not what it continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub id: Uuid,
    /// Rises by time of commit within the session; gaps are allowed.
    pub seq: i64,
    pub message: Message,
    pub weight: Weight,
    pub digest: Digest,
}

impl Entry {
    pub fn new(id: Uuid, seq: i64, message: Message) -> Self {
        let weight = Weight::of_message(&message);
        let digest = Digest::of_message(&message);
        Self { id, seq, message, weight, digest }
    }
}
