//! Tool that shows the state of the campaign and of its agents.

use futures_util::FutureExt as _;
use serde_json::{Value, json};

use super::{
    Caller, Refusal,
    arguments::{NoArguments, schema},
    pages::ToolAnswer,
    tool::{Access, Call, DEFAULT_TIMEOUT, Tool},
};
use crate::domain::{campaigns, statuses, transaction};

pub(super) const TOOLS: &[Tool] = &[Tool {
    name: "status",
    description: "Shows the state of the campaign, and the current work of each of its agents, with the tool that it is calling.",
    who: Access::Everybody,
    in_pages: true,
    timeout: DEFAULT_TIMEOUT,
    schema: |_| schema::<NoArguments>(),
    run: |call| status(call).boxed(),
}];

async fn status(call: Call<'_>) -> Result<ToolAnswer, Refusal> {
    let NoArguments {} = call.read()?;
    let catalogue = call.tools.settings.agents.current();
    let mut tx = call.begin().await?;
    let campaign_id = call.caller.campaign_id();
    let campaign = campaigns::get(&mut *tx, campaign_id).await?;
    let standings =
        statuses::list_with_pauses(&mut tx, campaign_id, &catalogue, call.now()).await?;
    transaction::commit(tx).await?;
    let agents: Vec<Value> = standings
        .iter()
        .map(|standing| {
            let status = &standing.status;
            json!({
                "agent": status.name(&catalogue), "state": status.state, "tool": status.tool, "waiting_tasks": status.waiting, "later_tasks": status.later, "until": status.until,
                "paused_because": standing.pause.as_ref().map(|pause| &pause.reason),
            })
        })
        .collect();
    let you = match call.caller {
        Caller::Turn(turn) => {
            let name = catalogue.format_name(&turn.agent.name, &turn.instance);
            json!({ "agent": name, "task_id": turn.task_id, "is_lead": turn.is_lead() })
        }
        Caller::Operator(_) => json!("operator"),
    };
    let campaign = json!({ "name": campaign.name, "status": campaign.status });
    ToolAnswer::json(&json!({ "campaign": campaign, "you": you, "agents": agents }))
}
