//! Tools for journals: an agent's own notes. In an agent's schema there is no argument for an owner; the lead and operators may name one.

use futures_util::FutureExt as _;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    Refusal, Role,
    arguments::{NoArguments, schema},
    memory::{list, owner, read, write},
    pages::ToolAnswer,
    tool::{Access, Call, DEFAULT_TIMEOUT, Tool},
};
use crate::domain::memory::{Kind, New};

pub(super) const TOOLS: &[Tool] = &[
    Tool {
        name: "journals_list",
        description: "Lists the entries of your journal, the newest first, without their texts. The lead and operators see those of all agents.",
        who: Access::Everybody,
        in_pages: true,
        timeout: DEFAULT_TIMEOUT,
        schema: |role| match role {
            Role::Agent => schema::<NoArguments>(),
            Role::Lead | Role::Operator => schema::<OfAnybody>(),
        },
        run: |call| list_some(call).boxed(),
    },
    Tool {
        name: "journals_read",
        description: "Reads one entry of your journal.",
        who: Access::Everybody,
        in_pages: true,
        timeout: DEFAULT_TIMEOUT,
        schema: |role| match role {
            Role::Agent => schema::<OwnEntry>(),
            Role::Lead | Role::Operator => schema::<AnybodysEntry>(),
        },
        run: |call| read_one(call).boxed(),
    },
    Tool {
        name: "journals_write",
        description: "Writes an entry into your journal: notes for your later conversations. Entries cannot be changed; write another one to correct it.",
        who: Access::Agents,
        in_pages: false,
        timeout: DEFAULT_TIMEOUT,
        schema: |_| schema::<Entry>(),
        run: |call| add(call).boxed(),
    },
];

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OfAnybody {
    /// Only the journal of this agent.
    agent: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OwnEntry {
    /// Name of the entry, as journals_list shows it.
    name: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AnybodysEntry {
    /// Name of the entry, as journals_list shows it.
    name: String,
    /// Agent whose journal it is; your own unless you say otherwise.
    agent: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Entry {
    /// Lower-case letters, digits, - and _. Without one, the entry is named after the time.
    name: Option<String>,
    /// One line that says what it is about.
    title: String,
    /// Text of the entry.
    text: String,
}

async fn list_some(call: Call<'_>) -> Result<ToolAnswer, Refusal> {
    let OfAnybody { agent } = match call.caller.role() {
        Role::Agent => {
            let NoArguments {} = call.read()?;
            OfAnybody { agent: None }
        }
        Role::Lead | Role::Operator => call.read()?,
    };
    let owner = owner(&call, agent.as_deref());
    list(&call, Kind::Journal, owner.as_deref()).await
}

async fn read_one(call: Call<'_>) -> Result<ToolAnswer, Refusal> {
    let AnybodysEntry { name, agent } = match call.caller.role() {
        Role::Agent => {
            let OwnEntry { name } = call.read()?;
            AnybodysEntry { name, agent: None }
        }
        Role::Lead | Role::Operator => call.read()?,
    };
    let owner = owner(&call, agent.as_deref());
    read(&call, Kind::Journal, owner.as_deref(), &name).await
}

async fn add(call: Call<'_>) -> Result<ToolAnswer, Refusal> {
    let Entry { name, title, text } = call.read()?;
    let new = New {
        kind: Kind::Journal,
        owner: None,
        name: name.as_deref(),
        title: &title,
        body: &text,
        expires_at: None,
        expected_version: None,
        is_imported: false,
    };
    write(&call, &new).await
}
