//! Events of sessions and their compactions.

use super::{EventKind, Field, FieldType, SESSION, TURN};

pub(super) const OPENED: EventKind = EventKind {
    when: "The turn that begins has opened the first session of its conversation, or a session that no later task continues.",
    ids: TURN,
    fields: &[Field::boolean(
        "ephemeral",
        "The session belongs to this task alone (`session_mode` `none`).",
    )],
};

pub(super) const REBUILT: EventKind = EventKind {
    when: "The turn that begins has opened a new session for a conversation that had one before.",
    ids: TURN,
    fields: &[
        Field::new(
            "because",
            FieldType::OneOf(&[
                "new",
                "prompt_changed",
                "model_changed",
                "provider_changed",
                "context_full",
                "expired",
                "reset",
                "lost",
                "poisoned",
                "fresh",
                "ended",
                "campaign_closed",
            ]),
            "Reason for the new session: `lost`: the provider no longer has the old one; `poisoned`: it rejects the old conversation; `ended`: the old one was made for one task.",
        ),
        Field::integer("inherited_messages", "Messages that the new session has taken over."),
        Field::boolean("inherited_summary", "It has taken over a summary."),
        Field::new(
            "left_out",
            FieldType::Object(&[
                Field::integer("messages", "Number of messages."),
                Field::integer("first_turn", "First of their turns."),
                Field::integer("last_turn", "Last of their turns."),
            ]),
            "Older messages that were too long to be taken over. Null: none.",
        )
        .or_null(),
    ],
};

pub(super) const FORKED: EventKind = EventKind {
    when: "A new conversation has begun from a turn of another one.",
    ids: SESSION,
    fields: &[
        Field::uuid("forked_from_session", "Session that it was made from."),
        Field::integer("forked_at_turn", "Last turn that it has taken over."),
        Field::text("agent", "Agent of the new conversation."),
        Field::text("instance", "Its instance."),
        Field::integer("inherited_messages", "Messages that it has taken over."),
        Field::boolean("inherited_summary", "It has taken over a summary."),
    ],
};

pub(super) const RESET: EventKind = EventKind {
    when: "A person has requested that the next task of a session opens a successor.",
    ids: SESSION,
    fields: &[Field::boolean("fresh", "The successor begins empty.")],
};

pub(super) const CONVERSATION_MOVED: EventKind = EventKind {
    when: "Another model of the agent's chain has taken over a conversation, or has given it back. `session.rebuilt` follows.",
    ids: TURN,
    fields: &[
        Field::text("to", "New entry of the chain: `provider/model`."),
        Field::new(
            "skipped",
            FieldType::List(&[
                Field::text("entry", "Entry of the chain: `provider/model`."),
                Field::text("because", "Reason in words."),
                Field::new(
                    "usable_at",
                    FieldType::Time,
                    "Time from which it is tried again. Null: unknown, or only this turn skips it.",
                )
                .or_null(),
            ]),
            "Earlier entries of the chain that this turn has skipped.",
        ),
    ],
};

pub(super) const NODE_ENTERED: EventKind = EventKind {
    when: "A session has received the instructions of a node.",
    ids: TURN,
    fields: &[
        Field::text("node", "Name of the node."),
        Field::boolean(
            "said_again",
            "The session was at this node before, and its successor or its next turn gets the instructions again.",
        ),
    ],
};

const CAUSE: Field = Field::new(
    "cause",
    FieldType::OneOf(&["auto", "overflow", "manual", "inherited"]),
    "`auto`: the context exceeds the threshold; `overflow`: the provider refused the prompt as too long; `manual`: a person; `inherited`: of the predecessor.",
);
const STEP: &str = "Step that wrote the summary: `first`, `retry`, `alternate` (another model) or `extract` (no model). Null: unknown.";
const GENERATION: &str = "Number of the compaction in its session, counted from 1.";

pub(super) const COMPACTED: EventKind = EventKind {
    when: "The context of a session shows a summary in place of older messages from now on.",
    ids: SESSION,
    fields: &[
        Field::integer("generation", GENERATION),
        Field::integer("parent", "Generation that it continues. 0: none."),
        CAUSE,
        Field::text("rung", STEP).or_null(),
        Field::integer("tokens_before", "Tokens of the history before."),
        Field::integer("tokens_after", "Tokens after. Null: unknown.").or_null(),
        Field::new(
            "prompts",
            FieldType::Object(&[
                Field::integer("kept", "Prompts that are kept word for word."),
                Field::integer("shortened", "Kept prompts whose middle is in the archive only."),
                Field::integer("archived", "Prompts that are in the archive only."),
                Field::integer("sentences", "Sentences of archived prompts that are kept word for word."),
            ]),
            "Prompts of people that the context still has. Null: the compaction is older than this count.",
        )
        .or_null(),
    ],
};

pub(super) const UNCOMPACTED: EventKind = EventKind {
    when: "A person has undone the compaction that a session shows.",
    ids: SESSION,
    fields: &[Field::integer("generation", "Generation that the session shows now. 0: none.")],
};

pub(super) const COMPACTION_NOT_NEEDED: EventKind = EventKind {
    when: "A person asked for a compaction, and the session has nothing to compact.",
    ids: SESSION,
    fields: &[
        CAUSE,
        Field::text("because", "Reason in words."),
        Field::integer("job_id", "Job of the request."),
    ],
};

pub(super) const COMPACTION_REFUSED: EventKind = EventKind {
    when: "At least one summary of a compaction was refused by the checks, also if another one was accepted.",
    ids: SESSION,
    fields: &[
        Field::integer("generation", GENERATION),
        CAUSE,
        Field::new(
            "refused",
            FieldType::List(&[
                Field::text(
                    "rung",
                    "Step that wrote the summary: `first`, `retry`, `alternate` or `extract`.",
                ),
                Field::new(
                    "refusals",
                    FieldType::Texts,
                    "Faults: `no_answer`, `empty`, `declined`, `missing_sections`, `lost_pins`, `too_long`.",
                ),
            ]),
            "The refused summaries.",
        ),
        Field::text(
            "accepted",
            "Step whose summary was accepted. Null: none, and a person has to decide.",
        )
        .or_null(),
    ],
};
