//! The reference of events and webhook messages, from their catalogues.

use super::cells::{cell, code};
use crate::domain::{
    feed::{EventKind, Field, FieldType, Kind},
    webhooks::MESSAGES,
};

const HEAD: &str = "\
# Events

The feed has an event for each thing that happens. `dalsegno feed` follows it, `GET /v1/feed` streams it as server-sent events, and
`GET /v1/tasks/{id}/events` streams the events of one task. Both replay from any id, so a reader that reconnects misses none. `--kinds` (`kinds`) selects
kinds, with commas between them; `--agent`, `--session` and `--campaign` (`agent`, `session_id`, `campaign_id`) select by origin.

| field of an event | type | meaning |
|---|---|---|
| `id` | whole number | Place in the feed. Some numbers are never used. |
| `created_at` | time | Time at which it was written. |
| `kind` | text | One of the kinds below. |
| `campaign_id`, `task_id`, `session_id` | UUID or null | Things that it is about. |
| `agent` | text or null | Agent that it is about. |
| `instance` | text or null | Its instance. Null: all instances of the agent. |
| `data` | object | Fields of the kind, as listed below. |

- Newer versions may add kinds and fields: ignore those that you do not know. Events that an older version wrote may lack newer fields.
- Events contain no prompts, and of answers only what `turn.progress` and a structured result show.
- The nightly cleanup removes events after `sessions.keep_feed_days`; an erasure removes those of its campaign.
- Streams also send `begin` (where the stream of the feed begins, after a restore or a failover) and `end` (the task, at the end of the stream of a task).

[openapi.json](openapi.json) has a JSON Schema for the data of each kind, such as `TurnDoneData`.
";

const WEBHOOKS: &str = "
## Messages to webhooks

A [webhook](../how-to/enqueue.md#webhooks) gets a request per message, with a JSON object of `type` (the kind), `timestamp` (time of the event, RFC 3339) and
`data`. It can subscribe to the kinds `task.done`, `task.failed`, `task.cancelled` and `budget.warning`.
";

/// Writes the reference.
pub(super) fn markdown() -> String {
    let mut text = HEAD.to_owned();
    let mut noun = "";
    for kind in Kind::ALL {
        let name = kind.as_str();
        let first = name.split('.').next().unwrap_or(name);
        if first != noun {
            noun = first;
            text += &format!("\n## {noun}\n");
        }
        let EventKind { when, ids, fields } = kind.about();
        text += &format!("\n### {name}\n\n{when}");
        if !ids.is_empty() {
            let ids: Vec<String> = ids.iter().map(|id| code(id)).collect();
            text += &format!(" Always has {}.", ids.join(", "));
        }
        text += &format!("\n\n{}", table(fields));
    }
    text += WEBHOOKS;
    for message in MESSAGES {
        text += &format!(
            "\n### {}\n\n{}\n\n{}",
            message.kinds.join(", "),
            message.when,
            table(message.fields)
        );
    }
    text
}

fn table(fields: &[Field]) -> String {
    let mut text = String::from("| field of `data` | type | meaning |\n|---|---|---|\n");
    for field in fields {
        add_row(field, "", &mut text);
    }
    text
}

/// Adds the row of a field, and those of the fields of its objects.
fn add_row(field: &Field, prefix: &str, text: &mut String) {
    let name = format!("{prefix}{}", field.name);
    let mut value = field.value.describe();
    if field.is_nullable && !matches!(field.value, FieldType::Json) {
        value += " or null";
    }
    let optional = if field.is_optional { " (optional)" } else { "" };
    *text += &format!("| `{name}`{optional} | {value} | {} |\n", cell(field.meaning));
    for inner in field.value.fields() {
        let separator = if value.starts_with("list") { "[]." } else { "." };
        add_row(inner, &format!("{name}{separator}"), text);
    }
}
