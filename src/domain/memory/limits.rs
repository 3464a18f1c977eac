//! The limits of memory, for the reference.

use super::{
    BODY_MAX_BYTES, Error, TITLE_MAX_CHARS, config::MAX_QUESTION_MS, import::MAX_ENTRIES,
    name::MAX_CHARS, publish::MAX_VERSIONS, size_limits::MAX_EDICTS,
};
use crate::domain::{
    limits::{
        LimitEffect::{Refused, Sentence},
        LimitEntry,
    },
    text,
};

pub const LIMITS: &[LimitEntry] = &[
    LimitEntry::setting(
        "bytes of an edict, a record or an entry of a journal",
        "memory.item_max_bytes",
        (1, Some(BODY_MAX_BYTES as u64)),
        Refused(text::Error::TOO_LONG.code),
    ),
    LimitEntry::fixed(
        "characters of a title",
        TITLE_MAX_CHARS as u64,
        Refused(Error::BAD_TITLE.code),
    ),
    LimitEntry::fixed(
        "characters of the name of an item",
        MAX_CHARS as u64,
        Refused(Error::BAD_NAME.code),
    ),
    LimitEntry::fixed(
        "versions of an item",
        MAX_VERSIONS as u64,
        Refused(Error::TOO_MANY_VERSIONS.code),
    ),
    LimitEntry::fixed(
        "edicts of a campaign",
        MAX_EDICTS as u64,
        Refused(Error::TOO_MANY_EDICTS.code),
    ),
    LimitEntry::fixed("items of an import", MAX_ENTRIES as u64, Refused(Error::BAD_ITEMS.code)),
    LimitEntry::setting(
        "bytes that one agent may store per campaign",
        "memory.agent_max_bytes",
        (1, None),
        Sentence("The write is refused, and the agent is told the limit."),
    ),
    LimitEntry::setting(
        "bytes of edicts in the system part of a call",
        "memory.edicts_max_bytes",
        (0, None),
        Sentence("Further edicts are shown by name only."),
    ),
    LimitEntry::setting(
        "milliseconds that a search waits for the embedding of its query",
        "memory.embeddings_timeout_ms",
        (1, Some(MAX_QUESTION_MS)),
        Sentence("The search uses full-text search only."),
    ),
];
