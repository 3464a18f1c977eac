//! The messages to webhooks, as documented. The database writes their bodies.

use serde_json::{Value, json};

use crate::domain::feed::{Field, FieldType, WARNING_FIELDS, object_schema};

/// The description of a message. Several kinds may share one.
#[derive(Debug, Clone, Copy)]
pub struct MessageFormat {
    /// Values of `type`.
    pub kinds: &'static [&'static str],
    /// Name of the schema of the body.
    pub schema_name: &'static str,
    /// The moment at which it is sent, as a sentence.
    pub when: &'static str,
    /// The fields of `data`.
    pub fields: &'static [Field],
}

pub const MESSAGES: [MessageFormat; 3] = [
    MessageFormat {
        kinds: &["task.done", "task.failed", "task.cancelled"],
        schema_name: "TaskEndMessage",
        when: "A task has ended. A retried task ends again, with another message.",
        fields: &TASK_FIELDS,
    },
    MessageFormat {
        kinds: &["budget.warning"],
        schema_name: "BudgetWarningMessage",
        when: "A budget has reached its soft limit, once per period.",
        fields: &BUDGET_FIELDS,
    },
    MessageFormat {
        kinds: &["webhook.test"],
        schema_name: "WebhookTestMessage",
        when: "A person has requested a test (`dalsegno webhook test`). Every webhook gets it.",
        fields: &[Field::uuid("webhook_id", "Id of the webhook.")],
    },
];

const TASK_FIELDS: [Field; 16] = [
    Field::uuid("task_id", "Id of the task."),
    Field::uuid("campaign_id", "Id of its campaign."),
    Field::text("agent", "Name of its agent."),
    Field::text("instance", "Instance of the agent."),
    Field::new("state", FieldType::OneOf(&["done", "failed", "cancelled"]), "State of the task."),
    Field::uuid("session_id", "Session of its last turn. Null: it had none.").or_null(),
    Field::integer("turn", "Number of its last turn in the session. Null: it had none.").or_null(),
    Field::new("created_at", FieldType::Time, "Time at which it was added."),
    Field::new("started_at", FieldType::Time, "Time of its first turn. Null: it had none.").or_null(),
    Field::new("ended_at", FieldType::Time, "Time at which it ended."),
    Field::integer("spent_micros", "Cost of all its turns, in millionths of the currency."),
    Field::integer("spent_tokens", "Tokens of all its turns."),
    Field::text("result", "Answer, at most 65,536 characters. Null unless it is done.").or_null(),
    Field::new(
        "result_json",
        FieldType::Json,
        "Structured result of a task with a result schema. Null: none, or it has more than 65,536 bytes.",
    )
    .or_null(),
    Field::text("error", "Error of a failed task, at most 65,536 characters.").or_null(),
    Field::boolean(
        "truncated",
        "`result`, `result_json` or `error` is cut; `GET /v1/tasks/{id}` returns it as a whole.",
    ),
];

const BUDGET_FIELDS: [Field; 8] = {
    let [owner, key, period, spent, soft, limit] = WARNING_FIELDS;
    [
        owner,
        key,
        period,
        spent,
        soft,
        limit,
        Field::uuid("campaign_id", "Campaign of the call that reached it. Null: none.").or_null(),
        Field::uuid("task_id", "Task of this call. Null: none.").or_null(),
    ]
};

impl MessageFormat {
    /// Returns the JSON Schema of the body.
    pub fn schema(&self) -> Value {
        json!({
            "type": "object",
            "description": self.when,
            "required": ["type", "timestamp", "data"],
            "properties": {
                "type": { "type": "string", "enum": self.kinds },
                "timestamp": { "type": "string", "format": "date-time", "description": "Time of the event." },
                "data": object_schema(self.fields),
            },
        })
    }
}
