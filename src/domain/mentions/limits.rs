//! The limits of mentions, for the reference.

use super::config::MAX_NAMES;
use crate::domain::limits::{LimitEffect::Sentence, LimitEntry};

const REPORTED: &str = "The chain stops, and a post on the board says so.";

pub const LIMITS: &[LimitEntry] = &[
    LimitEntry::setting(
        "answers in a chain before a person has to continue",
        "mentions.max_depth",
        (0, None),
        Sentence(REPORTED),
    ),
    LimitEntry::setting(
        "agents that one post may mention",
        "mentions.max_fan_out",
        (1, Some(MAX_NAMES as u64)),
        Sentence("The first ones count, and a post on the board names the others."),
    ),
    LimitEntry::setting(
        "tasks that one post of a person may cause, over all answers",
        "mentions.max_tasks",
        (1, None),
        Sentence(REPORTED),
    ),
    LimitEntry::setting(
        "identical answers of an agent that may mention others",
        "mentions.max_repeats",
        (1, None),
        Sentence(REPORTED),
    ),
];
