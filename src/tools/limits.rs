//! The limits of tool calls, for the reference.

use super::{arguments, board, concurrency, tasks, wait};
use crate::domain::limits::{LimitEffect::Sentence, LimitEntry};

const REFUSED: &str = "The call is refused, and the agent is told the limit.";
const CUT: &str = "The answer has as many; another call continues.";

pub const LIMITS: &[LimitEntry] = &[
    LimitEntry::fixed(
        "bytes of the arguments of a tool call",
        arguments::MAX_BYTES as u64,
        Sentence(REFUSED),
    ),
    LimitEntry::fixed(
        "tool calls of a turn at once",
        concurrency::MAX_CALLS as u64,
        Sentence(REFUSED),
    ),
    LimitEntry::fixed(
        "tasks of one call of `wait_for_results`",
        wait::MAX_TASKS as u64,
        Sentence(REFUSED),
    ),
    LimitEntry::fixed(
        "seconds of a call of `wait_for_results`",
        wait::LONGEST_SECS,
        Sentence("The answer says which tasks are still open."),
    ),
    LimitEntry::fixed(
        "posts of one call of `board_history`",
        board::MAX_POSTS as u64,
        Sentence(CUT),
    ),
    LimitEntry::fixed("tasks of one call of `tasks_list`", tasks::MAX_TASKS as u64, Sentence(CUT)),
];
