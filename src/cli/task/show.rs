//! Text output of tasks and turns.

use serde_json::Value;

use super::{files::format_files, run_worker::RunWorker};
use crate::{
    cli::{
        output::{Table, format_fields, text_cell, time_cell, time_cell_or_dash},
        words::{first_line, label_fields, time, time_or_dash},
    },
    clock::{Clock as _, SystemClock},
    domain::{
        agents::Catalogue,
        amount::format_money,
        audit::describe_label,
        batches,
        prompt_versions::describe_version,
        tasks::{Detail, State, Task, TaskWaits, WaitedFor, retry_command},
        turns::{self, Turn},
    },
};

/// Formats a task. `because` explains why it waits, `worker` is that of its present or last run.
pub(super) fn format_task(
    detail: &Detail,
    because: Option<&str>,
    worker: Option<&RunWorker>,
    catalogue: &Catalogue,
) -> String {
    let Detail { task, node, added_by, turns, .. } = detail;
    let mut list = vec![
        ("task", task.id.to_string()),
        ("state", task.state.as_str().to_owned()),
        ("campaign", task.campaign_id.to_string()),
        ("agent", catalogue.format_name(&task.agent, &task.instance)),
        ("job", task.job_id.to_string()),
        ("priority", detail.priority.to_string()),
        ("created", time(task.created_at)),
        ("started", time_or_dash(task.started_at)),
        ("ended", time_or_dash(task.ended_at)),
    ];
    list.extend(worker.into_iter().flat_map(RunWorker::fields));
    list.extend(detail.prompt_hash.iter().flat_map(|hash| {
        let [version, command] = describe_version(&task.agent, hash);
        [("version", version), ("its prompt", command)]
    }));
    list.extend([("spent", spent(task)), ("prompt", first_line(task.subject(), 100))]);
    if let Some(session) = task.session_id {
        list.insert(4, ("session", session.to_string()));
    }
    list.extend(because.map(|because| ("waits", because.to_owned())));
    let start = detail.run_at.filter(|at| *at > SystemClock.now());
    list.extend(start.map(|at| ("not before", time(at))));
    list.extend(node.iter().map(|node| ("node", node.clone())));
    list.extend(detail.flow_templates.as_ref().map(|names| {
        let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        ("flow templates", names)
    }));
    if let Some(added_by) = added_by {
        list.push(("added by", describe_label(added_by)));
    }
    list.extend(label_fields(&detail.tags, &detail.metadata));
    for (name, id) in [("parent", detail.parent_id), ("continues", detail.continues_id)] {
        list.extend(id.map(|id| (name, id.to_string())));
    }
    if let (Some(flow), Some(step)) = (detail.flow_id, &detail.step) {
        list.push(("flow", format!("{flow}, step {step}")));
        if matches!(task.state, State::Failed | State::Cancelled) {
            let command = retry_command(task.id, Some((flow, step.as_str())));
            list.push(("to retry", format!("`{command}`")));
        }
    }
    if let Some(waiting) = &detail.waiting {
        list.push((if waiting.waits { "waits for" } else { "has waited for" }, others(waiting)));
    }
    if let Some(reason) = &detail.cancelled_because {
        list.push(("cancelled", reason.clone()));
    }
    if !detail.parameters.is_empty() {
        list.push(("parameters", Value::Object(detail.parameters.clone()).to_string()));
    }
    if let Some(schema) = &detail.result_schema {
        list.push(("result schema", schema.to_string()));
    }
    let is_open = task.ended_at.is_none();
    if let Some(fault) = detail.result_fault.as_ref().filter(|_| is_open) {
        list.push(("to correct", fault.clone()));
    }
    if let Some(secs) = detail.within_secs {
        list.push(("within", batches::format_within(secs)));
    }
    if let Some(batch) = &detail.batch {
        list.push(("batch", batch.describe()));
    }
    if let Some(value) = &task.result_json {
        list.push(("result as JSON", value.to_string()));
    }
    if let Some(error) = &task.error {
        list.push(("error", error.clone()));
    }
    let mut text = format_fields(&list);
    if !turns.is_empty() {
        text.push_str(&format!("\n{}", format_turns(turns)));
    }
    if !detail.files.is_empty() {
        text.push_str(&format!("\n{}", format_files(&detail.files)));
    }
    if let Some(result) = &task.result {
        text.push_str(&format!("\n{result}\n"));
    }
    text
}

/// Most tasks that are named.
const MAX_OTHERS: usize = 5;

fn others(waiting: &TaskWaits) -> String {
    let name = |other: &WaitedFor| {
        let WaitedFor { task_id, agent, instance, state } = other;
        format!("{task_id} of {agent}/{instance} ({})", state.as_str())
    };
    let all = &waiting.depends_on;
    let mut text = all.iter().take(MAX_OTHERS).map(name).collect::<Vec<_>>().join(", ");
    if all.len() > MAX_OTHERS {
        text.push_str(&format!(" and {} more", all.len() - MAX_OTHERS));
    }
    if waiting.waits {
        text.push_str(&format!("; {} of {} have not ended", waiting.n_open(), all.len()));
    }
    text
}

/// Formats the attempts of a task, or the turns of a session.
pub(in crate::cli) fn format_turns(turns: &[Turn]) -> String {
    let row = |turn: &Turn| {
        let tokens_in = turn.input_tokens + turn.cache_read_tokens + turn.cache_creation_tokens;
        // Flags first, because they are short and an error may fill the line.
        let flags = turn.flags.iter().filter(|flag| *flag != turns::PUT_OFF);
        let mut why = flags.cloned().chain(turn.error.clone());
        [
            turn.number.to_string(),
            turn.state_word().to_owned(),
            turn.attempt.to_string(),
            time_cell(turn.started_at),
            time_cell_or_dash(turn.ended_at),
            tokens_in.to_string(),
            turn.output_tokens.to_string(),
            format_money(turn.cost_micros),
            text_cell(&why.by_ref().collect::<Vec<_>>().join("; ")),
        ]
    };
    let head = [
        "TURN",
        "STATE",
        "ATTEMPT",
        "STARTED (UTC)",
        "ENDED (UTC)",
        "TOKENS IN",
        "TOKENS OUT",
        "COST",
        "",
    ];
    Table::new(&head).leaves_out(&["ATTEMPT", "ENDED (UTC)"]).format(turns.iter().map(row))
}

pub(in crate::cli) fn spent(task: &Task) -> String {
    let mut text = format!("{}, {} tokens", format_money(task.spent_micros), task.spent_tokens);
    if let Some(micros) = task.budget_micros {
        let left = micros.saturating_sub(task.spent_micros).max(0);
        text.push_str(&format!(", at most {} ({} left)", format_money(micros), format_money(left)));
    }
    if let Some(tokens) = task.budget_tokens {
        let left = tokens.saturating_sub(task.spent_tokens).max(0);
        text.push_str(&format!(", at most {tokens} tokens ({left} left)"));
    }
    text
}
