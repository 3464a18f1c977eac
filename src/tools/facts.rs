//! Tool for facts about the user for whom the campaign works.

use futures_util::FutureExt as _;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{
    Caller, Refusal,
    arguments::schema,
    change::{BeginResult, Change},
    pages::ToolAnswer,
    tool::{Access, Call, DEFAULT_TIMEOUT, Tool},
};
use crate::domain::{
    facts::{self, WritingTurn},
    memory,
};

pub(super) const TOOLS: &[Tool] = &[Tool {
    name: "facts_write",
    description: "Remembers a fact about the user for whom the campaign works, in all campaigns of this user. A new fact about an attribute \
                  replaces the earlier one. Write only what the user has said or confirmed, never a guess; recall finds known facts.",
    who: Access::FactWriters,
    in_pages: false,
    timeout: DEFAULT_TIMEOUT,
    schema: |_| schema::<NewFact>(),
    run: |call| write(call).boxed(),
}];

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewFact {
    /// Attribute of the user in one or two words, such as `Diet`. Use the attribute that recall shows, if there is one.
    attribute: String,
    /// The fact in one sentence of at most 400 characters: `Eats no meat.`
    text: String,
}

async fn write(call: Call<'_>) -> Result<ToolAnswer, Refusal> {
    let NewFact { attribute, text } = call.read()?;
    let Caller::Turn(turn) = call.caller else {
        return Err(Refusal::of_text("only agents write facts with this tool"));
    };
    let mut change = match Change::begin(&call).await? {
        BeginResult::AlreadyMade(said) => return Ok(said),
        BeginResult::Started(change) => change,
    };
    let agent = turn.reader();
    let by = WritingTurn {
        campaign_id: turn.campaign_id,
        session_id: turn.session_id,
        turn: turn.turn,
        task_id: turn.task_id,
        agent: &agent,
    };
    let settings = &call.tools.settings;
    let rules = (&settings.facts, settings.memory.language.as_str());
    let fact = (attribute.trim(), text.trim());
    let written = facts::write(change.conn(), &by, fact, rules, call.now()).await?;
    if written.is_new {
        memory::request_embeddings(change.conn(), &settings.memory).await?;
    }
    let told = json!({ "fact_id": written.fact.id, "changed": written.is_new });
    change.commit(written.fact.for_audit(), &told).await
}
