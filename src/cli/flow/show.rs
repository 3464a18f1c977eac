//! The text of a flow: its steps with the critical path.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::{
    cli::{
        output::{Table, format_fields, format_wrapped, short_id},
        words::{first_line, format_duration, time, time_or_dash},
    },
    domain::flows::{CriticalPath, FlowDetail, StepTask, critical_path},
};

/// Formats a flow with its steps. Those of the critical path are marked, and named in a line of their own.
pub(super) fn format_flow(shown: &FlowDetail, now: DateTime<Utc>) -> String {
    let flow = &shown.flow;
    let critical = critical_path(&shown.steps, now);
    let list = [
        ("flow", flow.id.to_string()),
        ("template", flow.template.clone()),
        ("state", flow.state.as_str().to_owned()),
        ("campaign", flow.campaign_id.to_string()),
        ("created", time(flow.created_at)),
        ("ended", time_or_dash(flow.ended_at)),
        ("inputs", first_line(&flow.inputs.to_string(), 200)),
    ];
    let names: BTreeMap<Uuid, &str> =
        shown.steps.iter().map(|step| (step.task_id, step.step.as_str())).collect();
    let row = |(place, step): (usize, &StepTask)| {
        // A step that is repeated has several tasks and one name.
        let mut after: Vec<&str> = Vec::new();
        for name in step.after.iter().filter_map(|id| names.get(id).copied()) {
            if !after.contains(&name) {
                after.push(name);
            }
        }
        [
            step.step.clone(),
            step.state.as_str().to_owned(),
            short_id(step.task_id),
            format!("{}/{}", step.agent, step.instance),
            after.join(", "),
            (if critical.contains(place) { "critical" } else { "" }).to_owned(),
        ]
    };
    let head = ["STEP", "STATE", "TASK", "AGENT", "AFTER", "PATH"];
    let path = format_path(&critical, &shown.steps);
    let table = Table::new(&head);
    let table = if path.is_some() { table } else { table.hides("PATH") };
    let steps = table.format(shown.steps.iter().enumerate().map(row));
    format!("{}\n{steps}{}", format_fields(&list), path.unwrap_or_default())
}

/// Names the steps of the critical path and how long they take. `None`: it has one step, or none.
fn format_path(critical: &CriticalPath, steps: &[StepTask]) -> Option<String> {
    if critical.places.len() < 2 {
        return None;
    }
    let names: Vec<&str> = critical.places.iter().map(|place| &*steps[*place].step).collect();
    let took = match critical.took {
        Some(took) if critical.is_estimate => format!("about {}", format_duration(took)),
        Some(took) => format_duration(took),
        None => "time unknown until a step has ended".to_owned(),
    };
    let words = format!("{}, {took}", names.join(" → "));
    Some(format!("\n{}", format_wrapped("Critical path: ", &words)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_steps_of_the_critical_path_are_marked_and_named_with_their_time() {
        let id = Uuid::from_u128;
        let step = |n: u128, after: &[u128], ended: Option<&str>| {
            json!({
                "step": format!("step-{n}"), "task_id": id(n), "agent": "writer", "instance": "main",
                "state": if ended.is_some() { "done" } else { "running" },
                "after": after.iter().copied().map(id).collect::<Vec<_>>(),
                "started_at": "2026-11-29T12:00:00Z", "ended_at": ended.map(|at| format!("2026-11-29T12:00:{at}Z")),
            })
        };
        let mut flow = json!({
            "id": id(7), "campaign_id": id(8), "template": "article-series", "state": "running", "inputs": {}, "tasks": 4, "done": 3,
            "failed": 0, "cancelled": 0, "open": 1, "added_by": null, "created_at": "2026-11-29T12:00:00Z", "paused_at": null,
            "ended_at": null,
            "steps": [
                step(1, &[], Some("10")), step(2, &[1], Some("50")), step(3, &[1], Some("20")), step(4, &[2, 3], None),
            ],
        });
        let now: DateTime<Utc> = "2026-11-29T12:00:05Z".parse().unwrap();
        let format = |flow: &serde_json::Value| {
            format_flow(&serde_json::from_value(flow.clone()).unwrap(), now)
        };
        let text = format(&flow);
        let marked = text.lines().filter(|line| line.ends_with("  critical"));
        let marked: Vec<_> = marked.filter_map(|line| line.split_whitespace().next()).collect();
        assert_eq!(marked, ["step-1", "step-2", "step-4"], "{text}");
        let path = "\nCritical path: step-1 → step-2 → step-4, about 1m05s\n";
        assert!(text.ends_with(path), "{text}");
        flow["steps"] = json!([step(1, &[], Some("10"))]);
        let one = format(&flow).to_lowercase();
        assert!(one.contains("step-1") && !one.contains("critical"), "{one}");
    }
}
