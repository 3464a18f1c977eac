//! Events of agents, and of what they remember.

use super::{CAMPAIGN, EventKind, Field, FieldType, SESSION};

const PAUSE: &[Field] = &[
    Field::text("agent", "Name of the agent."),
    Field::text("reason", "Reason of the pause, as the person gave it."),
];

pub(super) const PAUSED: EventKind = EventKind {
    when: "A person has paused an agent: it begins no more turns in the campaign, or in all campaigns if `campaign_id` is null.",
    ids: &[],
    fields: PAUSE,
};

pub(super) const RESUMED: EventKind = EventKind {
    when: "A pause of an agent has ended: a person has resumed it.",
    ids: &[],
    fields: PAUSE,
};

const ITEM: &[Field] = &[
    Field::uuid("id", "Id of the item."),
    Field::new("kind", FieldType::OneOf(&["edict", "record", "journal"]), "Kind of the item."),
    Field::text("name", "Name of the item."),
    Field::text(
        "owner",
        "Owner of a journal, by its name on the board. Null for edicts and records.",
    )
    .or_null(),
    Field::integer("version", "Version of the item, counted from 1."),
    Field::text("author", "Person, program or agent that made the change."),
    Field::new(
        "origin",
        FieldType::OneOf(&["operator", "agent"]),
        "A person or program (`operator`), or a turn of an agent.",
    ),
];

pub(super) const MEMORY_PUBLISHED: EventKind = EventKind {
    when: "An edict, a record or an entry of a journal was written, or has a new version. `task_id` is that of the turn that wrote it.",
    ids: CAMPAIGN,
    fields: ITEM,
};

pub(super) const MEMORY_REVOKED: EventKind = EventKind {
    when: "An edict, a record or an entry of a journal was revoked, so that agents do not read it any more.",
    ids: CAMPAIGN,
    fields: ITEM,
};

const EXTRACTION: &[Field] = &[
    Field::integer("requests", "Prompts of the user that were read."),
    Field::integer("found", "Facts in the answer of the model."),
    Field::integer("new", "Facts that were not known before."),
    Field::integer(
        "too_many",
        "Facts that were not stored, because the user has as many as `facts.user_max` allows.",
    ),
    Field::integer(
        "unsaid",
        "Facts of the answer that were dropped, because the prompts do not say them.",
    ),
    Field::text("reason", "Reason for which the answer was refused. Null if it was accepted.")
        .or_null(),
];

pub(super) const FACTS_READ: EventKind = EventKind {
    when: "A model has read new prompts of a session for facts about its user.",
    ids: SESSION,
    fields: EXTRACTION,
};

pub(super) const FACTS_REFUSED: EventKind = EventKind {
    when: "A model was asked for facts about the user of a session, and none of its answers was valid.",
    ids: SESSION,
    fields: EXTRACTION,
};
