//! The limits of operations, for the reference.

use super::{
    add_many_tasks::{MAX_PREFIX_CHARS, MAX_WRONG},
    fields::NAME_MAX_CHARS,
    keyed_calls::{BAD_KEY, MAX_KEY_CHARS},
    listing::MAX_LIMIT,
    webhooks::MAX_OVERLAP_SECS,
};
use crate::domain::{
    audit,
    limits::{
        LimitEffect::{Refused, Sentence},
        LimitEntry,
    },
};

pub const LIMITS: &[LimitEntry] = &[
    LimitEntry::fixed("items of a page (`limit`)", MAX_LIMIT as u64, Refused("bad_query")),
    LimitEntry::fixed("characters of a name in a path", NAME_MAX_CHARS as u64, Refused("bad_name")),
    LimitEntry::fixed(
        "characters of an idempotency key",
        MAX_KEY_CHARS as u64,
        Refused(BAD_KEY.code),
    ),
    LimitEntry::fixed(
        "of these, for tasks in bulk, whose keys add their number",
        MAX_PREFIX_CHARS as u64,
        Refused(BAD_KEY.code),
    ),
    LimitEntry::fixed(
        "wrong tasks of a request in bulk that `errors` names",
        MAX_WRONG as u64,
        Sentence("Further ones are named when these are correct."),
    ),
    LimitEntry::fixed(
        "characters of a text in the data of the audit log",
        audit::WORDS_MAX_CHARS as u64,
        Sentence("The text is cut."),
    ),
    LimitEntry::fixed(
        "seconds for which two secrets of a webhook sign (`overlap_secs`)",
        MAX_OVERLAP_SECS as u64,
        Refused("bad_field"),
    ),
];
