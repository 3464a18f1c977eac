//! The limits of tasks, for the reference.

use super::{
    add::{MAX_ATTACHMENTS, MAX_BYTES, MAX_KEY_CHARS},
    bulk::MAX_TASKS,
    error::Error,
    filter::MAX_TEXT_CHARS,
    links::{MAX_CHILDREN, MAX_FLOW_TEMPLATES, MAX_PREDECESSORS},
    search::MAX_READ,
};
use crate::domain::{
    class::BAD_ARGUMENT,
    limits::{
        LimitEffect::{Refused, Sentence},
        LimitEntry,
    },
    task_files::attachments,
    text,
};

pub const LIMITS: &[LimitEntry] = &[
    LimitEntry::setting(
        "bytes of a prompt",
        "tasks.max_prompt_bytes",
        (1, None),
        Refused(text::Error::TOO_LONG.code),
    ),
    LimitEntry::fixed(
        "characters of an idempotency key of a task",
        MAX_KEY_CHARS as u64,
        Refused(Error::BAD_KEY.code),
    ),
    LimitEntry::fixed(
        "tasks that a task depends on",
        MAX_PREDECESSORS as u64,
        Refused(Error::TOO_MANY_PREDECESSORS.code),
    ),
    LimitEntry::fixed("children of one request", MAX_CHILDREN as u64, Refused(BAD_ARGUMENT.code)),
    LimitEntry::fixed("tasks of one request in bulk", MAX_TASKS as u64, Refused("too_many_tasks")),
    LimitEntry::fixed(
        "flow templates that a task lists",
        MAX_FLOW_TEMPLATES as u64,
        Refused(Error::BAD_FLOW_TEMPLATES.code),
    ),
    LimitEntry::fixed(
        "characters of the search text of a filter",
        MAX_TEXT_CHARS as u64,
        Refused(Error::BAD_FILTER.code),
    ),
    LimitEntry::fixed(
        "tasks whose prompts one page of a filter with a search text reads",
        MAX_READ as u64,
        Sentence("The page has fewer items, and still a `next`."),
    ),
    LimitEntry::setting(
        "further turns of a task whose answer does not match its result schema",
        "tasks.max_corrections",
        (0, None),
        Sentence("The task fails."),
    ),
    LimitEntry::setting(
        "waiting tasks of the installation",
        "queue.max_waiting",
        (0, None),
        Sentence("New tasks are refused: `queue_full`, except in SQL. 0: no limit."),
    ),
];

/// Those of attachments.
pub const ATTACHMENT_LIMITS: &[LimitEntry] = &[
    LimitEntry::setting(
        "attachments of a task",
        "tasks.max_attachments",
        (0, Some(MAX_ATTACHMENTS as u64)),
        Refused(attachments::Error::INVALID.code),
    ),
    LimitEntry::setting(
        "bytes of an attachment",
        "tasks.max_attachment_bytes",
        (0, Some(MAX_BYTES)),
        Refused(attachments::Error::TOO_LARGE.code),
    ),
    LimitEntry::setting(
        "bytes of all attachments of a task",
        "tasks.max_attachments_bytes",
        (0, Some(MAX_BYTES)),
        Refused(attachments::Error::TOO_LARGE.code),
    ),
];
