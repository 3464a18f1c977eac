//! Tools for the campaign's blackboard, as far as the agent's file grants access to it.

use futures_util::FutureExt as _;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    Caller, Refusal,
    arguments::{NoArguments, schema},
    change::{BeginResult, Change},
    pages::ToolAnswer,
    tool::{Access, Call, DEFAULT_TIMEOUT, Tool},
};
use crate::domain::{
    blackboard::{self, ChangeAuthor},
    transaction,
};

pub(super) const TOOLS: &[Tool] = &[
    Tool {
        name: "blackboard_read",
        description: "Reads the campaign's blackboard, a JSON document that its people and agents share: the parts that you may see.",
        who: Access::BlackboardReaders,
        in_pages: true,
        timeout: DEFAULT_TIMEOUT,
        schema: |_| schema::<NoArguments>(),
        run: |call| read(call).boxed(),
    },
    Tool {
        name: "blackboard_write",
        description: "Changes the campaign's blackboard: the patch is merged into it, key by key; null removes a key.",
        who: Access::BlackboardWriters,
        in_pages: false,
        timeout: DEFAULT_TIMEOUT,
        schema: |_| schema::<Patch>(),
        run: |call| write(call).boxed(),
    },
];

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Patch {
    /// Keys to change, nested as in the document.
    patch: Map<String, Value>,
    /// The version that you have read, if the change is right only for that one.
    expected_version: Option<i64>,
}

async fn read(call: Call<'_>) -> Result<ToolAnswer, Refusal> {
    let NoArguments {} = call.read()?;
    let (mut tx, campaign_id) = (call.begin().await?, call.caller.campaign_id());
    let found = match call.caller {
        Caller::Turn(turn) => blackboard::get_for(&mut *tx, campaign_id, &turn.agent).await?,
        Caller::Operator(_) => blackboard::get(&mut *tx, campaign_id).await?,
    };
    transaction::commit(tx).await?;
    ToolAnswer::json(&json!({ "version": found.version, "document": found.document }))
}

async fn write(call: Call<'_>) -> Result<ToolAnswer, Refusal> {
    let asked: Patch = call.read()?;
    let patch = Value::Object(asked.patch);
    let wanted =
        blackboard::Change::Patch { patch: &patch, expected_version: asked.expected_version };
    let label = call.caller.label();
    let by = match call.caller {
        Caller::Turn(turn) => ChangeAuthor::Agent {
            agent: &turn.agent,
            instance: &turn.instance,
            task_id: turn.task_id,
            turn: turn.turn,
        },
        Caller::Operator(_) => ChangeAuthor::Operator { label: &label },
    };
    let mut change = match Change::begin(&call).await? {
        BeginResult::AlreadyMade(said) => return Ok(said),
        BeginResult::Started(change) => change,
    };
    let (campaign_id, now) = (call.caller.campaign_id(), call.now());
    let written = blackboard::change(change.conn(), campaign_id, &wanted, &by, now).await?;
    let told = json!({ "version": written.blackboard.version, "changed": written.changed });
    change.commit(told.clone(), &told).await
}
