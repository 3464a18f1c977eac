//! Events of campaigns, their board, blackboard and budgets.

use super::{CAMPAIGN, EventKind, Field, FieldType, TASK};

pub(super) const BLACKBOARD_CHANGED: EventKind = EventKind {
    when: "A person or an agent has changed the blackboard. `task_id` is that of the turn that changed it.",
    ids: CAMPAIGN,
    fields: &[
        Field::integer("version", "Version of the document after the change."),
        Field::text("agent", "Agent that changed it. Null for people and programs.").or_null(),
        Field::integer("paths", "Number of places that changed."),
    ],
};

pub(super) const BUDGET_REFUSED: EventKind = EventKind {
    when: "A task has failed, because a budget has no space for its next call. If a turn was running, `turn.failed` comes before, and `session_id` is that of the turn.",
    ids: TASK,
    fields: &[Field::text("error", "Error of the task: the budget, its limit and what is left.")],
};

const AMOUNT: &[Field] = &[
    Field::integer("micros", "Money in millionths of the currency.").or_null(),
    Field::integer("tokens", "Tokens.").or_null(),
];

/// Also the data of the webhook message, which has the ids beside them.
pub const WARNING_FIELDS: [Field; 6] = [
    Field::new(
        "owner",
        FieldType::OneOf(&["agent", "campaign", "day", "task", "user"]),
        "Owner of the budget.",
    ),
    Field::text(
        "key",
        "Id of the campaign or task, name of the agent or user, empty for the budget of a day.",
    ),
    Field::new(
        "period",
        FieldType::Date,
        "Day of a budget that begins again each day; otherwise null.",
    )
    .or_null(),
    Field::new("spent", FieldType::Object(AMOUNT), "Amount that is spent."),
    Field::new("soft", FieldType::Object(AMOUNT), "Soft limit. Null: none."),
    Field::new("limit", FieldType::Object(AMOUNT), "Limit. Null: none."),
];

pub(super) const BUDGET_WARNING: EventKind = EventKind {
    when: "A budget has reached its soft limit, once per period. `campaign_id` and `task_id` are those of the call that reached it.",
    ids: &[],
    fields: &WARNING_FIELDS,
};

pub(super) const EDITED: EventKind = EventKind {
    when: "Brief, client context or parameters of a campaign have a new version.",
    ids: CAMPAIGN,
    fields: &[Field::integer("version", "Number of the new version.")],
};

pub(super) const ERASING: EventKind = EventKind {
    when: "The erasure of a campaign has cancelled some of its open tasks. The erasure removes the event with the campaign.",
    ids: CAMPAIGN,
    fields: &[
        Field::integer("cancelled_tasks", "Tasks that were cancelled in this step."),
        Field::integer("open_tasks", "Tasks that have not ended yet."),
    ],
};

pub(super) const POST_ADDED: EventKind = EventKind {
    when: "A person, an agent or the service has posted on the board. `task_id` and `session_id` are those of the turn that posted.",
    ids: CAMPAIGN,
    fields: &[
        Field::uuid("id", "Id of the post."),
        Field::integer("seq", "Place on the board, counted from 1."),
        Field::text("sender", "Name on the board: an agent, `operator` or `system`."),
        Field::new(
            "origin",
            FieldType::OneOf(&["operator", "agent", "system"]),
            "A person or program (`operator`), a turn of an agent, or the service itself.",
        ),
        Field::new(
            "audience",
            FieldType::Texts,
            "Names that may read the post; `all` for everyone.",
        ),
        Field::uuid("reply_to", "Id of the post that it answers.").or_null(),
    ],
};
