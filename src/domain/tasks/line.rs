//! Tasks as written in bulk requests and files: one JSON object each.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::{Links, New, OnFailure, TaskLink};
use crate::domain::{
    agents::SessionMode as Mode,
    agents::{self, AgentInstance, Catalogue},
    amount::Limit,
    labels::{self, Labels},
    objects::{self, ObjectError},
    task_files::attachments::NewAttachment,
    timestamp,
};

/// One task of a bulk request.
#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = BulkTask, example = json!({ "agent": "copywriter", "prompt": "Write part one.", "idempotency_key": "part-1" }))]
pub struct Line {
    /// Name of the agent's file. `curator_2` and `curator/2` mean instance 2 of `curator`.
    #[schema(pattern = "^[a-z0-9][a-z0-9_-]{0,63}(/[a-z0-9][a-z0-9_-]{0,63})?$")]
    pub agent: String,
    #[serde(default = "super::recurring::main")]
    #[schema(pattern = "^[a-z0-9][a-z0-9_-]{0,63}$")]
    pub instance: String,
    #[schema(min_length = 1)]
    pub prompt: String,
    /// Node that the task belongs to: the name of the node's file. By default the session stays at its node.
    #[schema(pattern = "^[a-z0-9][a-z0-9_-]{0,63}$")]
    pub node: Option<String>,
    /// The flow templates that the agent may start in the task; an empty list: none. By default those of the agent's file.
    #[schema(max_items = 100)]
    pub flow_templates: Option<Vec<String>>,
    /// Session mode. The default comes from the agent's file.
    pub session: Option<Mode>,
    #[serde(default, deserialize_with = "objects::object")]
    pub budget: Limit,
    /// Priority; 0 is the most urgent.
    #[schema(minimum = 0, maximum = 32767)]
    pub priority: Option<i32>,
    #[serde(default, deserialize_with = "timestamp::optional")]
    pub run_at: Option<DateTime<Utc>>,
    /// Tasks to wait for. The task runs when all of them have ended, and gets their results.
    #[serde(default)]
    #[schema(max_items = 1000)]
    pub depends_on: Vec<TaskLink>,
    /// Reaction to a failed or cancelled task in `depends_on`.
    #[serde(default)]
    pub on_failure: OnFailure,
    /// Idempotency key: the same request under the same key returns the same task.
    #[schema(max_length = 195, min_length = 1)]
    pub idempotency_key: Option<String>,
    /// Short names to find the task by.
    #[serde(default)]
    #[schema(schema_with = labels::tags_schema)]
    pub tags: Vec<String>,
    /// Keys and values to find the task by; at most 4096 bytes of JSON.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub metadata: Map<String, Value>,
    /// Named values that its calls contain, such as `{"agent_mode": "plan"}`; at most 32 and 4096 bytes of JSON. They win over those of the
    /// campaign.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub parameters: Map<String, Value>,
    /// JSON Schema that the answer has to match, at most 32768 bytes. The result is then JSON, too. By default that of the agent's file.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub result_schema: Option<Value>,
    /// Files that the task is given with its prompt: images, PDF or text, or files of other tasks of the campaign.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<NewAttachment>,
    /// Seconds that the answer may take, from now, from `run_at` or from the end of the tasks that it waits for: 3600 to 604800. Providers with
    /// a batch API are then asked for it at a lower price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 3600, maximum = 604800)]
    pub within_secs: Option<i32>,
}

/// The reason why a text is not a valid task.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub struct BadLine {
    /// JSON Pointer to the wrong part; empty for the whole.
    pub pointer: String,
    pub detail: String,
}

impl Line {
    pub fn read(text: &str) -> Result<Self, BadLine> {
        objects::read(text.as_bytes())
            .map_err(|ObjectError { pointer, detail, .. }| BadLine { pointer, detail })
    }

    /// Builds the task to add. `only_of`: see [`Links::only_of`].
    pub fn to_new_task<'a>(
        &'a self,
        campaign_id: Uuid,
        catalogue: &'a Catalogue,
        added_by: &'a str,
        only_of: Option<&'a str>,
    ) -> Result<New<'a>, agents::LookupError> {
        let AgentInstance { agent, instance } =
            catalogue.resolve_addressee(&self.agent, &self.instance)?;
        let node = self.node.as_deref().map(|node| catalogue.node(node)).transpose()?;
        Ok(New {
            node: node.map(|node| &**node),
            campaign_id,
            agent,
            instance,
            prompt: &self.prompt,
            session_mode: self.session,
            budget: self.budget,
            idempotency_key: self.idempotency_key.as_deref(),
            priority: self.priority,
            run_at: self.run_at,
            added_by: Some(added_by),
            links: Links {
                depends_on: &self.depends_on,
                on_failure: self.on_failure,
                only_of,
                flow_templates: self.flow_templates.as_deref(),
                ..Links::default()
            },
            traceparent: None,
            labels: Labels { tags: &self.tags, metadata: Some(&self.metadata) },
            parameters: Some(&self.parameters),
            result_schema: self.result_schema.as_ref(),
            attachments: &self.attachments,
            within_secs: self.within_secs,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_field_of_a_line_is_located() {
        let bad = |text: &str| Line::read(text).unwrap_err();
        assert_eq!(
            bad(r#"{"agent":"a","prompt":"b","budget":{"tokens":"x"}}"#).pointer,
            "/budget/tokens"
        );
        assert!(bad(r#"{"agent":"a"}"#).detail.contains("missing field `prompt`"));
        assert!(bad(r#"{"agent":"a","prompt":"b"} {}"#).detail.contains("trailing"));
        assert!(bad("{").pointer.is_empty());
    }
}
