//! Events of flows.

use super::{CAMPAIGN, EventKind, Field, FieldType};

const ID: Field = Field::uuid("flow_id", "Id of the flow.");
const TEMPLATE: Field = Field::text("template", "Name of its template.");

pub(super) const STARTED: EventKind = EventKind {
    when: "A flow was started, and its tasks were added.",
    ids: CAMPAIGN,
    fields: &[ID, TEMPLATE, Field::integer("tasks", "Number of its tasks.")],
};

pub(super) const PAUSED: EventKind = EventKind {
    when: "A person has paused a flow: none of its waiting tasks begins.",
    ids: CAMPAIGN,
    fields: &[ID, TEMPLATE],
};

pub(super) const RESUMED: EventKind = EventKind {
    when: "A person has resumed a paused flow.",
    ids: CAMPAIGN,
    fields: &[ID, TEMPLATE],
};

pub(super) const RETRIED: EventKind = EventKind {
    when: "A flow runs again from one of its steps.",
    ids: CAMPAIGN,
    fields: &[
        ID,
        TEMPLATE,
        Field::text("from", "Name of the step."),
        Field::integer("tasks", "Number of tasks that were added again."),
    ],
};

pub(super) const ENDED: EventKind = EventKind {
    when: "The last open task of a flow has ended. After a retry the flow ends again.",
    ids: CAMPAIGN,
    fields: &[
        ID,
        TEMPLATE,
        Field::new(
            "state",
            FieldType::OneOf(&["done", "failed", "cancelled"]),
            "State of the flow: `failed` if one of its tasks has failed, otherwise `cancelled` if one was cancelled.",
        ),
        Field::integer("done", "Tasks that are done."),
        Field::integer("failed", "Tasks that have failed."),
        Field::integer("cancelled", "Tasks that were cancelled."),
    ],
};
