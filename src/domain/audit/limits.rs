//! Changes of budgets in the log: the limits before and after, with their units.

use serde_json::Value;

use super::{Action, Entry};
use crate::domain::amount::OnLimit;

/// The name of a hard limit.
pub const LIMIT: &str = "limit";
/// The places of limits in a line, with their names. The line of a task has them without a group.
const LIMITS: [(&str, &str); 7] = [
    ("/limit/micros", LIMIT),
    ("/limit/tokens", LIMIT),
    ("/micros", LIMIT),
    ("/tokens", LIMIT),
    ("/soft/micros", "soft limit"),
    ("/soft/tokens", "soft limit"),
    ("/experiments_micros", "for reruns"),
];
/// The field with the limits before the change. Lines of older versions do not have it.
const BEFORE: &str = "before";

/// A limit before and after a change: `none`, `0.10`, `9000 tokens`, `tasks wait`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitStep {
    pub name: &'static str,
    pub before: String,
    pub after: String,
}

/// Lists the limits that a line has changed. `None`: the line is about something else, changes none, or does not name the limits before it.
/// `money` formats an amount.
pub fn limit_steps(entry: &Entry, money: &dyn Fn(i64) -> String) -> Option<Vec<LimitStep>> {
    let is_budget = [Action::BudgetSet, Action::CampaignLimit, Action::TaskLimit]
        .iter()
        .any(|action| action.as_str() == entry.action);
    let before = entry.data.get(BEFORE).filter(|_| is_budget)?;
    let amount = |data: &Value, place: &str| match data.pointer(place).and_then(Value::as_i64) {
        None => "none".to_owned(),
        Some(n) if place.ends_with("micros") => money(n),
        Some(n) => format!("{n} tokens"),
    };
    let effect = |data: &Value| data.get("on_limit").and_then(Value::as_str).map(str::to_owned);
    let step = |(place, name): (&str, &'static str)| LimitStep {
        name,
        before: amount(before, place),
        after: amount(&entry.data, place),
    };
    let mut steps: Vec<_> = LIMITS.into_iter().map(step).collect();
    if let Some(new) = effect(&entry.data) {
        let old = effect(before).unwrap_or_else(|| OnLimit::Wait.as_str().to_owned());
        steps.push(LimitStep {
            name: "at the limit",
            before: format!("tasks {old}"),
            after: format!("tasks {new}"),
        });
    }
    steps.retain(|step| step.before != step.after);
    Some(steps).filter(|steps| !steps.is_empty())
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use serde_json::json;

    use super::*;
    use crate::domain::amount::format_money;

    fn steps(action: &str, data: Value) -> Option<Vec<String>> {
        let entry = Entry {
            id: 1,
            at: DateTime::UNIX_EPOCH,
            actor_kind: "cli".to_owned(),
            actor: "ann".to_owned(),
            actor_id: None,
            action: action.to_owned(),
            subject_kind: "budget".to_owned(),
            subject: "day".to_owned(),
            peer: None,
            data,
        };
        let steps = limit_steps(&entry, &format_money)?;
        let words = steps.iter().map(|it| format!("{}: {} → {}", it.name, it.before, it.after));
        Some(words.collect())
    }

    #[test]
    fn a_change_of_limits_has_both_amounts_with_their_units() {
        let data = json!({
            "limit": { "micros": 100_000, "tokens": null }, "soft": { "micros": null, "tokens": null }, "on_limit": "fail",
            "before": { "limit": { "micros": null, "tokens": 9000 }, "soft": { "micros": null, "tokens": null } }
        });
        let words = steps("budget.set", data.clone()).unwrap();
        assert_eq!(
            words,
            [
                "limit: none → 0.10",
                "limit: 9000 tokens → none",
                "at the limit: tasks wait → tasks fail"
            ]
        );
        assert_eq!(steps("task.cancel", data), None);
        let of_task = json!({ "micros": 2_000_000, "tokens": null, "before": { "micros": 500_000, "tokens": null } });
        assert_eq!(steps("task.limit", of_task).unwrap(), ["limit: 0.50 → 2.00"]);
        assert_eq!(steps("budget.set", json!({ "limit": { "micros": 7 } })), None);
    }
}
