//! Child tasks: a task adds children, and its agent continues when they have ended.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{
    Call, Operation, Refusal, Spec, Success, add_many_tasks::refusal_of_tasks,
    add_task::NAMES_ITS_CALLER, flows::flow_templates,
};
use crate::domain::{
    agents::LookupError,
    amount, campaigns,
    class::{BAD_ARGUMENT, BAD_VALUE, QUEUE_FULL},
    flows,
    keys::Scope,
    tasks::{self, BAD_ITEMS, BulkTask, Error, FanOut, Line, New, child_key},
};

/// Adds children to a task; its agent continues when all of them have ended.
///
/// All of it is added or nothing. The continuation is a task of the same agent and instance; it is told what each child came to, failures
/// included, in the order of the request. Cancelling the task cancels its children and its continuation. The same
/// Idempotency-Key and question give the same tasks again, with 200; a child without a key of its own gets one of that. An API key
/// with the scope `enqueue` alone hands out from tasks that keys of its name have added.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewChildren, example = json!({
    "children": [
        { "agent": "copywriter", "instance": "part_1", "prompt": "Write part one." },
        { "agent": "copywriter", "instance": "part_2", "prompt": "Write part two." },
    ],
    "continuation": { "prompt": "Put the parts together." },
}))]
pub struct HandOut {
    /// The task: one that runs or is done
    pub id: Uuid,
    #[schema(min_items = 1, max_items = 1000)]
    pub children: Vec<Line>,
    pub continuation: Continuation,
}

/// The question to the agent of the task, in its own conversation, when all children have ended.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Continuation {
    #[schema(min_length = 1)]
    pub prompt: String,
}

#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct HandedOut {
    /// In the order of the request.
    pub children: Vec<BulkTask>,
    pub continuation: BulkTask,
}

impl Operation for HandOut {
    const SPEC: Spec = Spec::change("hand_out", "/v1/tasks/{id}/children", "task children")
        .tag("tasks")
        .needs(&[Scope::Enqueue])
        .answers(Success::Created)
        .keyed(190)
        .takes_many()
        .unaudited(NAMES_ITS_CALLER)
        .refuses(&[
            Error::UNKNOWN,
            LookupError::UNKNOWN_AGENT,
            LookupError::UNKNOWN_NODE,
            flows::Error::NO_TEMPLATE,
            Error::NO_PREDECESSOR,
            Error::NO_PARENT,
            campaigns::Error::CLOSED,
            amount::Refusal::CLASS,
            LookupError::BROKEN_AGENT,
            LookupError::BROKEN_NODE,
            flows::Error::BAD_TEMPLATES,
            BAD_ITEMS,
            BAD_ARGUMENT,
            BAD_VALUE,
            QUEUE_FULL,
        ]);
    type Output = HandedOut;

    async fn run(mut self, call: &Call) -> Result<HandedOut, Refusal> {
        let (catalogue, added_by) = (call.catalogue()?, call.actor.label());
        let key = call.idempotency_key.as_deref();
        if let Some(key) = key {
            for (place, child) in self.children.iter_mut().enumerate() {
                child.idempotency_key.get_or_insert_with(|| child_key(key, place));
            }
        }
        let parent = tasks::get(&call.pool, self.id).await?;
        let only_of = call.reach.only_of();
        if self.children.iter().any(|child| child.flow_templates.is_some()) {
            let templates = flow_templates(call).await?;
            for names in self.children.iter().filter_map(|child| child.flow_templates.as_ref()) {
                flows::check_names(&templates, names)?;
            }
        }
        let children = self.children.iter();
        let children: Vec<New<'_>> = children
            .map(|child| child.to_new_task(parent.campaign_id, &catalogue, &added_by, only_of))
            .collect::<Result<_, _>>()?;
        let what = FanOut {
            parent: &parent,
            agent: catalogue.agent(&parent.agent)?,
            children: &children,
            continuation: &self.continuation.prompt,
            idempotency_key: key,
            added_by: Some(&added_by),
        };
        let room = call.admit(children.len() as u64 + 1).await?;
        let mut transaction = call.begin().await?;
        let made = tasks::fan_out(&mut transaction, &call.config.tasks, &what, call.now).await;
        let pointer = |place| match place < children.len() {
            true => format!("/children/{place}"),
            // The item after the children is the continuation.
            false => "/continuation".to_owned(),
        };
        let made = made.map_err(|error| refusal_of_tasks(error, pointer))?;
        transaction.commit().await?;
        let output = HandedOut { children: made.children, continuation: made.continuation };
        room.mark_used(output.n_created() as u64);
        Ok(output)
    }

    fn is_replay(handed_out: &HandedOut) -> bool {
        handed_out.n_created() == 0
    }
}

impl HandedOut {
    pub fn n_created(&self) -> usize {
        self.children.iter().chain([&self.continuation]).filter(|one| one.created).count()
    }
}
