//! Tool that waits for tasks that were handed out.
//!
//! A waiting turn holds a slot of its worker, which the other tasks may need to begin. So a wait is short, and the answer shows the results
//! so far. For long work, `dispatch` has `then`, which needs no wait.

use std::time::Duration;

use futures_util::FutureExt as _;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    Caller, Refusal,
    arguments::{bad_cursor, schema, short},
    pages::ToolAnswer,
    tool::{Access, Call, Tool},
};
use crate::domain::{
    tasks::{self, Outcome},
    transaction,
};

pub(super) const TOOLS: &[Tool] = &[Tool {
    name: "wait_for_results",
    description: "Shows the results of tasks that were handed out, and waits some seconds for those that have not ended. For long work use `then` of dispatch instead, and end your turn.",
    who: Access::LeadAndNamed,
    in_pages: true,
    timeout: Duration::from_secs(30),
    schema: |_| schema::<Wait>(),
    run: |call| wait(call).boxed(),
}];

pub(super) const LONGEST_SECS: u64 = 20;
pub(super) const MAX_TASKS: usize = 50;
/// Maximum bytes of results read for one answer. A single result may have a megabyte, and a page shows 48,000 characters.
const MOST_BYTES: i64 = 256 * 1024;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Wait {
    /// Ids of the tasks, as dispatch has returned them.
    task_ids: Vec<String>,
    /// The longest wait in seconds: at most 20, which is the default. The service may wait less (two thirds of its
    /// `http.request_timeout_secs`). 0 looks and does not wait.
    #[schemars(range(min = 0, max = 20))]
    seconds: Option<u64>,
}

/// Returns the maximum wait, which ends well before the request that carries the call.
pub(super) fn longest(request_timeout_secs: u64) -> Duration {
    Duration::from_secs(LONGEST_SECS.min(request_timeout_secs.saturating_mul(2) / 3))
}

async fn wait(call: Call<'_>) -> Result<ToolAnswer, Refusal> {
    let asked: Wait = call.read()?;
    let ids = ids(&asked.task_ids)?;
    check_visible(&call, &ids).await?;
    let from = first(&call, ids.len())?;
    let longest = call.tools.settings.longest_wait;
    let limit = match call.goes_on {
        // A caller that reads on has waited already.
        true => Duration::ZERO,
        false => asked.seconds.map_or(longest, |secs| Duration::from_secs(secs).min(longest)),
    };
    // Runs outside of a transaction: it may take long, and looks at a few rows now and then.
    let n_open = tasks::wait_for_all(&call.tools.pool, &ids, limit).await?;
    let mut tx = call.begin().await?;
    let found = tasks::outcomes(&mut *tx, &ids[from..], MOST_BYTES).await?;
    transaction::commit(tx).await?;
    let behind = from + found.len();
    let next_place = (behind < ids.len() && !found.is_empty()).then(|| behind.to_string());
    let next = match n_open {
        0 => "All have ended.",
        _ => {
            "Some have not ended: call this again, or continue with the present results and say what is missing."
        }
    };
    let catalogue = call.tools.settings.agents.current();
    let line = |task: &Outcome| {
        let agent = catalogue.format_name(&task.agent, &task.instance);
        let mut line = json!({ "task_id": task.id, "agent": agent, "state": task.state, "result": task.result, "error": task.error });
        if let Some(value) = &task.result_json {
            line["result_json"] = value.clone();
        }
        line
    };
    let lines: Vec<Value> = found.iter().map(line).collect();
    ToolAnswer::list(&json!({ "results": lines, "not_ended": n_open, "next": next }), next_place)
}

/// Returns the position of the first task that is shown.
fn first(call: &Call<'_>, n_tasks: usize) -> Result<usize, Refusal> {
    let Some(place) = &call.place else { return Ok(0) };
    let place = place.parse::<usize>().ok().filter(|place| *place < n_tasks);
    place.ok_or_else(bad_cursor)
}

fn ids(texts: &[String]) -> Result<Vec<Uuid>, Refusal> {
    if texts.is_empty() || texts.len() > MAX_TASKS {
        let n_ids = texts.len();
        return Err(Refusal::of_text(format!(
            "`task_ids` has {n_ids} items, use 1 to {MAX_TASKS} in one call"
        )));
    }
    texts.iter().map(|text| text.parse().map_err(|_| not_yours(text))).collect()
}

/// Refuses tasks that the caller may not see. The lead and operators see all tasks of the campaign. Other agents see the tasks that their
/// own conversation has handed out.
async fn check_visible(call: &Call<'_>, ids: &[Uuid]) -> Result<(), Refusal> {
    let mut tx = call.begin().await?;
    let visible = match call.caller {
        Caller::Turn(turn) if !call.caller.sees_all() => {
            let own = (turn.campaign_id, turn.agent.name.as_str(), turn.instance.as_str());
            tasks::filter_children_of(&mut *tx, own, ids).await?
        }
        caller => tasks::filter_in_campaign(&mut *tx, caller.campaign_id(), ids).await?,
    };
    transaction::commit(tx).await?;
    match ids.iter().find(|id| !visible.contains(id)) {
        None => Ok(()),
        Some(id) => Err(not_yours(&id.to_string())),
    }
}

/// Refuses a task that does not exist in the same words as a task of others.
fn not_yours(id: &str) -> Refusal {
    let shown = short(id);
    Refusal::of_text(format!(
        "there is no task `{shown}` that you can wait for: use the ids from the answer of dispatch"
    ))
}
