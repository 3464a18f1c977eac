//! Tools for edicts: rules for all agents of the campaign.

use futures_util::FutureExt as _;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{
    Refusal,
    arguments::{NoArguments, schema},
    change::{BeginResult, Change},
    memory::{author, list, read, time, write},
    pages::ToolAnswer,
    tool::{Access, Call, DEFAULT_TIMEOUT, Tool},
};
use crate::domain::memory::{self, Kind, New};

pub(super) const TOOLS: &[Tool] = &[
    Tool {
        name: "edicts_list",
        description: "Lists the valid edicts of this campaign, without their texts. Edicts are standing orders for all of its agents.",
        who: Access::Everybody,
        in_pages: true,
        timeout: DEFAULT_TIMEOUT,
        schema: |_| schema::<NoArguments>(),
        run: |call| list_all(call).boxed(),
    },
    Tool {
        name: "edicts_read",
        description: "Reads one edict, if your instructions show only its name.",
        who: Access::Everybody,
        in_pages: true,
        timeout: DEFAULT_TIMEOUT,
        schema: |_| schema::<EdictName>(),
        run: |call| read_one(call).boxed(),
    },
    Tool {
        name: "edicts_publish",
        description: "Publishes an edict, or a new version of the one with this name. From the next turn on every agent of the campaign sees it.",
        who: Access::Lead,
        in_pages: false,
        timeout: DEFAULT_TIMEOUT,
        schema: |_| schema::<NewEdict>(),
        run: |call| publish(call).boxed(),
    },
    Tool {
        name: "edicts_revoke",
        description: "Revokes an edict: agents no longer see it.",
        who: Access::Lead,
        in_pages: false,
        timeout: DEFAULT_TIMEOUT,
        schema: |_| schema::<EdictName>(),
        run: |call| revoke(call).boxed(),
    },
];

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EdictName {
    /// Name of the edict, as edicts_list shows it.
    name: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewEdict {
    /// Lower-case letters, digits, - and _: `tone-of-voice`.
    name: String,
    /// One line that says what it is about.
    title: String,
    /// The order, in few words: every agent reads it with every call.
    text: String,
    /// Time at which it expires, such as 2027-01-31T12:00:00Z; never unless you say otherwise.
    expires_at: Option<String>,
    /// The version that you have read, if you change what an existing edict says.
    expected_version: Option<i32>,
}

async fn list_all(call: Call<'_>) -> Result<ToolAnswer, Refusal> {
    let NoArguments {} = call.read()?;
    list(&call, Kind::Edict, None).await
}

async fn read_one(call: Call<'_>) -> Result<ToolAnswer, Refusal> {
    let EdictName { name } = call.read()?;
    read(&call, Kind::Edict, None, &name).await
}

async fn publish(call: Call<'_>) -> Result<ToolAnswer, Refusal> {
    let asked: NewEdict = call.read()?;
    let new = New {
        kind: Kind::Edict,
        owner: None,
        name: Some(&asked.name),
        title: &asked.title,
        body: &asked.text,
        expires_at: time(asked.expires_at.as_deref())?,
        expected_version: asked.expected_version,
        is_imported: false,
    };
    write(&call, &new).await
}

async fn revoke(call: Call<'_>) -> Result<ToolAnswer, Refusal> {
    let EdictName { name } = call.read()?;
    let mut change = match Change::begin(&call).await? {
        BeginResult::AlreadyMade(said) => return Ok(said),
        BeginResult::Started(change) => change,
    };
    let (label, campaign_id) = (call.caller.label(), call.caller.campaign_id());
    let (named, by) = ((Kind::Edict, None, name.as_str()), author(call.caller, &label));
    let item = memory::revoke(change.conn(), campaign_id, named, &by, call.now()).await?;
    let told = json!({ "name": item.name, "version": item.version, "holds": false });
    change.commit(item.for_audit(), &told).await
}
