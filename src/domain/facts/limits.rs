//! The limits of facts, for the reference.

use super::{ATTRIBUTE_MAX_CHARS, Error, TEXT_MAX_CHARS, users::NAME_MAX_CHARS};
use crate::domain::limits::{
    LimitEffect::{Refused, Sentence},
    LimitEntry,
};

pub const LIMITS: &[LimitEntry] = &[
    LimitEntry::fixed(
        "characters of the name of a user",
        NAME_MAX_CHARS as u64,
        Refused(Error::BAD_USER.code),
    ),
    LimitEntry::fixed(
        "characters of the attribute of a fact",
        ATTRIBUTE_MAX_CHARS as u64,
        Refused(Error::BAD_FACT.code),
    ),
    LimitEntry::fixed(
        "characters of the text of a fact",
        TEXT_MAX_CHARS as u64,
        Refused(Error::BAD_FACT.code),
    ),
    LimitEntry::setting(
        "valid facts about a user",
        "facts.user_max",
        (1, None),
        Refused(Error::FULL.code),
    ),
    LimitEntry::setting(
        "facts of an answer of a model, and of a turn of an agent that writes them",
        "facts.answer_max",
        (1, None),
        Sentence(
            "Further facts of an answer are dropped; those of a turn are refused: `facts_full`.",
        ),
    ),
    LimitEntry::setting(
        "bytes of facts in a task of an agent with `told_facts`",
        "facts.told_max_bytes",
        (1, None),
        Sentence("Older facts are left out."),
    ),
];
