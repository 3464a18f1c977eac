//! The message about a budget that has reached its soft limit, made from the event.
//!
//! The database writes it in the transaction of the event, for webhooks only. The event has everything that the message has.

use serde_json::{Value, json};

use crate::domain::{feed::Event, webhooks::Kind};

/// Returns the body, byte for byte as the database writes it.
pub(super) fn warning_body(event: &Event) -> String {
    let mut data = event.data.clone();
    if let Some(fields) = data.as_object_mut() {
        fields.insert("campaign_id".to_owned(), json!(event.campaign_id));
        fields.insert("task_id".to_owned(), json!(event.task_id));
    }
    let at = event.created_at.format("%Y-%m-%dT%H:%M:%S%.6fZ").to_string();
    jsonb_text(&json!({ "type": Kind::BudgetWarning.as_str(), "timestamp": at, "data": data }))
}

/// Writes JSON as Postgres writes `jsonb`: shorter names first, and a blank after each colon and comma.
fn jsonb_text(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| (name.len(), name.as_bytes()));
            let field = |(name, value): (&String, &Value)| {
                format!("{}: {}", json!(name), jsonb_text(value))
            };
            format!("{{{}}}", fields.into_iter().map(field).collect::<Vec<_>>().join(", "))
        }
        Value::Array(items) => {
            format!("[{}]", items.iter().map(jsonb_text).collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}
