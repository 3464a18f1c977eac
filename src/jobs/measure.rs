//! Messages that are about to be added to a transcript.

use std::sync::Arc;

use uuid::Uuid;

use crate::{
    context::{Digest, Entry, Weight},
    domain::messages,
    transcript::Message,
};

/// Makes a message storable, then measures it.
pub(super) fn measure_message(id: Uuid, message: Message) -> messages::New {
    let entry = Entry::new(id, 0, messages::make_storable(message));
    messages::New {
        id,
        weight: i64::try_from(entry.weight.millitokens()).unwrap_or(i64::MAX),
        digest: *entry.digest.as_bytes(),
        message: Arc::unwrap_or_clone(entry.message),
        partial: false,
    }
}

/// Builds the entry of a message that is about to be stored.
pub(super) fn to_entry(new: &messages::New, seq: i64) -> Entry {
    Entry::from_measured(
        new.id,
        seq,
        new.message.clone(),
        Weight::from_millitokens(u64::try_from(new.weight).unwrap_or_default()),
        Digest::from_bytes(new.digest),
    )
}
