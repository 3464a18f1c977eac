//! Events of turns.

use super::{EventKind, Field, FieldType, TURN};

const NUMBER: Field = Field::integer("turn", "Number of the turn in its session, counted from 1.");

pub(super) const STARTED: EventKind = EventKind {
    when: "A turn has begun: its session is locked, its budget is reserved, and the call of the provider follows.",
    ids: TURN,
    fields: &[
        NUMBER,
        Field::text("provider", "Name of the provider."),
        Field::text("model", "Name of the model."),
    ],
};

pub(super) const PROGRESS: EventKind = EventKind {
    when: "A running turn has more text, another state or an ended tool. Written about once a second at most, and at the end of each tool. The whole answer is the `result` of the task.",
    ids: TURN,
    fields: &[
        NUMBER,
        Field::new(
            "status",
            FieldType::OneOf(&["thinking", "answering"]),
            "State of the model, as far as the provider tells it.",
        )
        .or_null(),
        Field::text("tool", "Tool that the model is calling. Null: none.").or_null(),
        Field::new(
            "ended_tools",
            FieldType::List(&[
                Field::text("name", "Name of the tool."),
                Field::integer("took_ms", "Its duration in milliseconds."),
                Field::boolean("is_error", "It has answered with an error."),
            ]),
            "Tools that have ended since the last event, in this order.",
        ),
        Field::integer(
            "bytes",
            "Size of the answer so far, in bytes. Begins again with each call of the turn.",
        ),
        Field::boolean(
            "cut",
            "`text` lacks the end of the new text: it has at most 2,000 characters.",
        ),
        Field::text("text", "New text of the answer since the last event."),
    ],
};

pub(super) const DONE: EventKind = EventKind {
    when: "A turn has ended with an answer, and its task is done.",
    ids: TURN,
    fields: &[
        NUMBER,
        Field::integer("input_tokens", "Tokens of all prompts of the turn, cached ones included. Null: the provider reported none.").or_null(),
        Field::integer("output_tokens", "Tokens of all answers of the turn. Null: the provider reported none.").or_null(),
        Field::integer("calls", "Calls of the provider. Null on Claude, whose CLI makes them itself.").or_null(),
        Field::integer("tools", "Tool calls that the service ran. Null on Claude.").or_null(),
        Field::new(
            "began",
            FieldType::OneOf(&["new", "resumed", "restored", "rewritten"]),
            "On Claude: state of the transcript at the begin. `restored`: it was missing or damaged; `rewritten`: it was lost and made again from the messages. Null elsewhere.",
        )
        .or_null(),
        Field::boolean("ahead", "On Claude: the CLI was started before the turn. Null elsewhere.").or_null(),
        Field::new("result_json", FieldType::Json, "Structured result of a task with a result schema.").optional(),
        Field::integer("files", "Number of output files, if there are any.").optional(),
    ],
};

pub(super) const FAILED: EventKind = EventKind {
    when: "A turn has failed. With `again` the task continues; otherwise it has failed.",
    ids: TURN,
    fields: &[
        NUMBER,
        Field::text("error", "Error, with its causes."),
        Field::boolean("again", "The task gets another turn: a retry, a correction of its structured result, or a turn with a smaller context."),
        Field::text("rebuild", "Reason for which the next turn opens a new session; null if it continues this one. Only of retries.")
            .or_null()
            .optional(),
        Field::boolean("rejected", "The provider rejects the prompt, so the next task is told that it was not answered. Only without `again`.")
            .optional(),
    ],
};

pub(super) const INTERRUPTED: EventKind = EventKind {
    when: "A running turn was stopped: its task was cancelled, its worker shuts down, or an attempt was cut off.",
    ids: TURN,
    fields: &[
        NUMBER,
        Field::text("because", "Reason in words."),
        Field::boolean("again", "The task gets another turn. `false`: it was cancelled."),
    ],
};

pub(super) const SNOOZED: EventKind = EventKind {
    when: "A turn has ended without an answer and is tried again later, without using up an attempt.",
    ids: TURN,
    fields: &[
        NUMBER,
        Field::text("because", "Reason in words."),
        Field::new(
            "again_after_secs",
            FieldType::Number,
            "Seconds until then. Missing if a budget has to have space first.",
        )
        .optional(),
    ],
};
