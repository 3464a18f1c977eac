//! Events of tasks outside of their turns.

use super::{EventKind, Field, FieldType, TASK};

pub(super) const QUEUED: EventKind = EventKind {
    when: "A task was added, in any way, or was put on the queue again.",
    ids: TASK,
    fields: &[
        Field::text("agent", "Agent of a new task. Missing if it was put on the queue again.")
            .optional(),
        Field::text("instance", "Its instance, with the agent.").optional(),
        Field::boolean(
            "again",
            "`true`: the task had ended and is retried. Missing for a new task.",
        )
        .optional(),
    ],
};

pub(super) const WAITING: EventKind = EventKind {
    when: "The turn of a task may not begin yet: its agent or flow is paused, its provider is busy, or a budget or rate limit has no space. Written once, until the turn begins or the task ends. Also written once for a turn that has begun, when it waits for a message batch.",
    ids: TASK,
    fields: &[Field::text("because", "Reason in words.")],
};

pub(super) const INTERRUPTED: EventKind = EventKind {
    when: "A person has interrupted the running turn of a task. `turn.interrupted` or another end follows.",
    ids: &["campaign_id", "task_id", "session_id"],
    fields: &[
        Field::new(
            "how",
            FieldType::OneOf(&["soft", "hard"]),
            "`hard`: at once; `soft`: at the next point at which nothing is cut in two.",
        ),
        Field::text("reason", "Reason, as the person gave it."),
    ],
};

pub(super) const CANCELLED: EventKind = EventKind {
    when: "A task was cancelled while no turn of it ran.",
    ids: TASK,
    fields: &[
        Field::text("reason", "Reason of the cancellation by a person, a program or another task.")
            .optional(),
        Field::text(
            "because",
            "In place of `reason`: a worker found the task cancelled, or its job had ended.",
        )
        .optional(),
    ],
};

pub(super) const FAILED: EventKind = EventKind {
    when: "A task has failed outside of a turn: no turn of it can begin, or its worker was lost in the last attempt.",
    ids: TASK,
    fields: &[
        Field::text("error", "Error of the task, if its turn could not begin.").optional(),
        Field::text("because", "In place of `error`: error of the job that was lost.").optional(),
    ],
};
