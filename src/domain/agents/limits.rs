//! The limits of agent files, skills and nodes, for the reference.

use super::{agent::PROMPT_MAX_BYTES, node::ENTRY_MAX_BYTES, skill::TEXT_MAX_BYTES};
use crate::domain::{
    files::{MAX_BYTES, NAME_MAX_BYTES},
    limits::{LimitEffect::Sentence, LimitEntry},
};

const REFUSED: &str = "`agent check` reports the file, and the agent gets no new tasks.";

pub const LIMITS: &[LimitEntry] = &[
    LimitEntry::fixed(
        "bytes of the file of an agent, a skill, a node or a flow template",
        MAX_BYTES,
        Sentence("The check reports the file, which is not used."),
    ),
    LimitEntry::fixed(
        "characters of the name of an agent, an instance, a skill, a node or a flow template",
        NAME_MAX_BYTES as u64,
        Sentence("A file is reported by its check, a request is refused."),
    ),
    LimitEntry::fixed(
        "bytes of the system prompt in an agent file",
        PROMPT_MAX_BYTES as u64,
        Sentence(REFUSED),
    ),
    LimitEntry::fixed("bytes of the text of a skill", TEXT_MAX_BYTES as u64, Sentence(REFUSED)),
    LimitEntry::fixed(
        "bytes of the instructions of a node with its required readings",
        ENTRY_MAX_BYTES as u64,
        Sentence("`agent check` reports the file, and the node cannot be used."),
    ),
    LimitEntry::setting(
        "calls of the model in a turn (except on Claude)",
        "agents.max_rounds",
        (1, None),
        Sentence("The last call has no tools, so the turn ends with text."),
    ),
    LimitEntry::setting(
        "identical tool calls in a turn",
        "agents.max_same_calls",
        (1, None),
        Sentence("The next one is refused; after one more the turn ends with text."),
    ),
    LimitEntry::setting(
        "seconds of a tool call",
        "agents.tool_timeout_secs",
        (1, None),
        Sentence("The turn continues without the result."),
    ),
    LimitEntry::setting(
        "characters of a tool result that the model is shown at once",
        "agents.tool_result_max_chars",
        (256, None),
        Sentence("The model can request the next page."),
    ),
    LimitEntry::setting(
        "failures in a row before the next model of a chain",
        "agents.fallback_after",
        (1, None),
        Sentence("The conversation continues with the next model."),
    ),
];
