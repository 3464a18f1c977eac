//! Messages on their way into a transcript.

use std::sync::Arc;

use uuid::Uuid;

use crate::{
    context::{Digest, Entry, Weight},
    domain::messages,
    transcript::Message,
};

/// A message as it is stored: made storable first, then measured.
pub(super) fn measured(id: Uuid, message: Message) -> messages::New {
    let entry = Entry::new(id, 0, messages::storable(message));
    messages::New {
        id,
        weight: i64::try_from(entry.weight.millitokens()).unwrap_or(i64::MAX),
        digest: *entry.digest.as_bytes(),
        message: Arc::unwrap_or_clone(entry.message),
        partial: false,
    }
}

/// A message that is about to be stored, as it will be read.
pub(super) fn coming(new: &messages::New, seq: i64) -> Entry {
    Entry::measured(
        new.id,
        seq,
        new.message.clone(),
        Weight::from_millitokens(u64::try_from(new.weight).unwrap_or_default()),
        Digest::from_bytes(new.digest),
    )
}
