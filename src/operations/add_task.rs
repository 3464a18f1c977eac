//! Adds a task.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::{
    Call, Fields, FormFile, Operation, Refusal, Spec, Success, flows::flow_templates,
    intake::Question, operation::described, producer::Producer,
};
use crate::domain::{
    agents::{AgentInstance, LookupError, MAIN, SessionMode},
    amount::{self, Limit},
    campaigns,
    class::{BAD_ARGUMENT, BAD_VALUE, NUL_IN_TEXT, QUEUE_FULL},
    flows,
    keys::Scope,
    labels, objects, parameters, result_schemas,
    task_files::attachments::{self, NewAttachment},
    tasks::{self, AddResult, Error, Line, OnFailure, Task, TaskLink},
    text, timestamp,
};

/// Reason why adding tasks writes no line to the audit log.
pub(super) const NAMES_ITS_CALLER: &str = "each task names its caller";

/// Adds a task for an agent.
///
/// The same Idempotency-Key and question give the same task again, with 200; another question under the key is a conflict. Keys belong
/// to a campaign and an API key, by its name; everything without an API key is one caller.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewTask, example = json!({ "agent": "copywriter", "prompt": "Write part one." }))]
pub struct AddTask {
    /// The campaign
    pub id: Uuid,
    /// The name of its file. `curator_2` and `curator/2` mean instance 2 of `curator`.
    #[schema(pattern = "^[a-z0-9][a-z0-9_-]{0,63}(/[a-z0-9][a-z0-9_-]{0,63})?$")]
    pub agent: String,
    #[serde(default = "main")]
    #[schema(pattern = "^[a-z0-9][a-z0-9_-]{0,63}$")]
    pub instance: String,
    #[schema(min_length = 1)]
    pub prompt: String,
    /// The node of the task: the name of a node file. By default the current node of the session.
    #[schema(pattern = "^[a-z0-9][a-z0-9_-]{0,63}$")]
    pub node: Option<String>,
    /// The flow templates that the agent may start in the task; an empty list: none. By default those of the agent's file.
    #[schema(max_items = 100)]
    pub flow_templates: Option<Vec<String>>,
    pub session: Option<SessionMode>,
    #[serde(default, deserialize_with = "objects::object")]
    pub budget: Limit,
    #[schema(minimum = 0, maximum = 32767)]
    pub priority: Option<i32>,
    #[serde(default, deserialize_with = "timestamp::optional")]
    pub run_at: Option<DateTime<Utc>>,
    /// It runs when all of these tasks have ended, with their results in its prompt.
    #[serde(default)]
    #[schema(max_items = 1000)]
    pub depends_on: Vec<TaskLink>,
    /// If one of those has failed or was cancelled.
    #[serde(default)]
    pub on_failure: OnFailure,
    /// Short names to find it by. An idempotency key does not compare them.
    #[serde(default)]
    #[schema(schema_with = labels::tags_schema)]
    pub tags: Vec<String>,
    /// Keys and values to find it by; at most 4096 bytes of JSON. An idempotency key does not compare them.
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

#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct AddedTask {
    #[serde(flatten)]
    pub task: Task,
    #[serde(default)]
    pub tags: Vec<String>,
    #[serde(default)]
    #[schema(value_type = Object)]
    pub metadata: Map<String, Value>,
    /// False: an earlier call with the same idempotency key made it.
    pub created: bool,
}

impl Operation for AddTask {
    const SPEC: Spec = Spec::change("add_task", "/v1/campaigns/{id}/tasks", "task add")
        .tag("tasks")
        .needs(&[Scope::Enqueue])
        .answers(Success::Created)
        .located("/v1/tasks/{id}")
        .keyed(195)
        .takes_files()
        .unaudited(NAMES_ITS_CALLER)
        .refuses(&[
            LookupError::UNKNOWN_AGENT,
            LookupError::UNKNOWN_NODE,
            flows::Error::NO_TEMPLATE,
            campaigns::Error::UNKNOWN,
            Error::NO_PREDECESSOR,
            Error::KEY_TAKEN,
            campaigns::Error::CLOSED,
            amount::Refusal::CLASS,
            LookupError::BROKEN_AGENT,
            LookupError::BROKEN_NODE,
            flows::Error::BAD_TEMPLATES,
            text::Error::TOO_LONG,
            text::Error::EMPTY,
            NUL_IN_TEXT,
            Error::BAD_KEY,
            Error::BAD_INSTANCE,
            Error::BAD_FLOW_TEMPLATES,
            Error::EMPTY_BUDGET,
            Error::TOO_MANY_PREDECESSORS,
            labels::Error::BAD_TAGS,
            labels::Error::METADATA_TOO_LONG,
            parameters::Error::INVALID,
            result_schemas::Error::INVALID,
            attachments::Error::UNKNOWN,
            attachments::Error::TOO_LARGE,
            attachments::Error::INVALID,
            BAD_ARGUMENT,
            BAD_VALUE,
            QUEUE_FULL,
        ]);
    type Output = AddedTask;

    async fn run(self, call: &Call) -> Result<AddedTask, Refusal> {
        let catalogue = call.catalogue()?;
        let AgentInstance { agent, instance } =
            catalogue.resolve_addressee(&self.agent, &self.instance)?;
        let node = self.node.as_deref().map(|node| catalogue.node(node)).transpose()?;
        if let Some(names) = &self.flow_templates {
            flows::check_names(&flow_templates(call).await?, names)?;
        }
        let (agent, instance, node) =
            (Arc::clone(agent), instance.to_owned(), node.map(Arc::clone));
        let (campaign_id, producer) = (self.id, Producer::begin(call));
        let (tags, metadata) = (self.tags.clone(), self.metadata.clone());
        let question = Question {
            campaign_id,
            agent,
            instance,
            node,
            line: self.into_line(call.idempotency_key.clone()),
            added_by: call.actor.label(),
            traceparent: producer.traceparent(),
            only_of: call.reach.only_of().map(str::to_owned),
        };
        let room = call.admit(1).await?;
        let added = call.intake.add(call, question).await?;
        room.mark_used(added.created.into());
        producer.end(&added.task);
        let AddResult { task, created } = added;
        if created {
            return Ok(AddedTask { task, tags, metadata, created });
        }
        let mut transaction = call.begin_read().await?;
        let tasks::Detail { tags, metadata, .. } = tasks::detail(&mut transaction, task.id).await?;
        Ok(AddedTask { task, tags, metadata, created })
    }

    fn read(fields: &Fields) -> Result<Self, Refusal> {
        let task: Self = fields.read(&described::<Self>)?;
        let of_form = fields.files.iter().map(NewAttachment::from);
        Ok(Self { attachments: task.attachments.into_iter().chain(of_form).collect(), ..task })
    }

    fn is_replay(added: &AddedTask) -> bool {
        !added.created
    }
}

impl From<&FormFile> for NewAttachment {
    fn from(FormFile { name, media_type, content }: &FormFile) -> Self {
        Self { media_type: media_type.clone(), ..Self::upload(name.as_str(), content.clone()) }
    }
}

impl AddTask {
    fn into_line(self, idempotency_key: Option<String>) -> Line {
        Line {
            agent: self.agent,
            instance: self.instance,
            prompt: self.prompt,
            node: self.node,
            flow_templates: self.flow_templates,
            session: self.session,
            budget: self.budget,
            priority: self.priority,
            run_at: self.run_at,
            depends_on: self.depends_on,
            on_failure: self.on_failure,
            idempotency_key,
            tags: self.tags,
            metadata: self.metadata,
            parameters: self.parameters,
            result_schema: self.result_schema,
            attachments: self.attachments,
            within_secs: self.within_secs,
        }
    }
}

fn main() -> String {
    MAIN.to_owned()
}
