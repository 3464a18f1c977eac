//! Changes of budgets in the audit log: the amounts before and after, with their units.

use maud::{Markup, html};
use serde_json::Value;

use super::parts::View;
use crate::domain::{
    amount::OnLimit,
    audit::{Action, Entry},
};

/// The places of limits in a line, with their names. The line of a task has them without a group.
const LIMITS: [(&str, &str); 7] = [
    ("/limit/micros", "Limit"),
    ("/limit/tokens", "Limit"),
    ("/micros", "Limit"),
    ("/tokens", "Limit"),
    ("/soft/micros", "Soft limit"),
    ("/soft/tokens", "Soft limit"),
    ("/experiments_micros", "For reruns"),
];
/// The field with the limits before the change. Lines of older versions do not have it.
const BEFORE: &str = "before";

/// Lists the limits that a line has changed. `None`: the line is about something else, changes none, or does not name the limits before it.
pub(super) fn changes(view: &View, entry: &Entry) -> Option<Vec<(&'static str, Markup)>> {
    let is_budget = [Action::BudgetSet, Action::CampaignLimit, Action::TaskLimit]
        .iter()
        .any(|action| action.as_str() == entry.action);
    let before = entry.data.get(BEFORE).filter(|_| is_budget)?;
    let amount = |data: &Value, place: &str| {
        let n = data.pointer(place).and_then(Value::as_i64);
        n.map_or_else(
            || "none".to_owned(),
            |n| match place.ends_with("micros") {
                true => view.money(n),
                false => format!("{n} tokens"),
            },
        )
    };
    let effect = |data: &Value| data.get("on_limit").and_then(Value::as_str).map(str::to_owned);
    let mut rows: Vec<_> = LIMITS
        .iter()
        .map(|(place, name)| (*name, amount(before, place), amount(&entry.data, place)))
        .collect();
    if let Some(new) = effect(&entry.data) {
        let old = effect(before).unwrap_or_else(|| OnLimit::Wait.as_str().to_owned());
        rows.push(("At the limit", format!("tasks {old}"), format!("tasks {new}")));
    }
    rows.retain(|(_, old, new)| old != new);
    let shown = rows.into_iter().map(|(name, old, new)| (name, html! { (old) " → " (new) }));
    Some(shown.collect()).filter(|shown: &Vec<_>| !shown.is_empty())
}
