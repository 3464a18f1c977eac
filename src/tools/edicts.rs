//! Tools for edicts: rules for all agents of the campaign.

use futures_util::FutureExt as _;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{
    Refusal,
    arguments::{Nothing, schema},
    change::{Begun, Change},
    memory::{list, read, time, who, write},
    pages::Said,
    tool::{Call, QUICKLY, Tool, Who},
};
use crate::domain::memory::{self, Kind, New};

pub(super) const TOOLS: &[Tool] = &[
    Tool {
        name: "edicts_list",
        description: "Lists the valid edicts of this campaign, without their texts. Edicts are standing orders for all of its agents.",
        who: Who::Everybody,
        in_pages: true,
        timeout: QUICKLY,
        schema: |_| schema::<Nothing>(),
        run: |call| list_all(call).boxed(),
    },
    Tool {
        name: "edicts_read",
        description: "Reads one edict, if your instructions show only its name.",
        who: Who::Everybody,
        in_pages: true,
        timeout: QUICKLY,
        schema: |_| schema::<EdictName>(),
        run: |call| read_one(call).boxed(),
    },
    Tool {
        name: "edicts_publish",
        description: "Publishes an edict, or a new version of the one with this name. From the next turn on every agent of the campaign sees it.",
        who: Who::Lead,
        in_pages: false,
        timeout: QUICKLY,
        schema: |_| schema::<NewEdict>(),
        run: |call| publish(call).boxed(),
    },
    Tool {
        name: "edicts_revoke",
        description: "Revokes an edict: agents no longer see it.",
        who: Who::Lead,
        in_pages: false,
        timeout: QUICKLY,
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

async fn list_all(call: Call<'_>) -> Result<Said, Refusal> {
    let Nothing {} = call.read()?;
    list(&call, Kind::Edict, None).await
}

async fn read_one(call: Call<'_>) -> Result<Said, Refusal> {
    let EdictName { name } = call.read()?;
    read(&call, Kind::Edict, None, &name).await
}

async fn publish(call: Call<'_>) -> Result<Said, Refusal> {
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

async fn revoke(call: Call<'_>) -> Result<Said, Refusal> {
    let EdictName { name } = call.read()?;
    let mut change = match Change::begin(&call).await? {
        Begun::Before(said) => return Ok(said),
        Begun::Now(change) => change,
    };
    let (label, campaign_id) = (call.caller.label(), call.caller.campaign_id());
    let (named, by) = ((Kind::Edict, None, name.as_str()), who(call.caller, &label));
    let item = memory::revoke(change.conn(), campaign_id, named, &by, call.now()).await?;
    let told = json!({ "name": item.name, "version": item.version, "holds": false });
    change.commit(item.for_audit(), &told).await
}
