//! Text output of budgets: a table of all, the fields of one.

use std::cmp::Reverse;

use crate::{
    cli::{
        output::{Table, format_wrapped, format_wrapped_fields, time_cell},
        words::time,
    },
    domain::{
        Amount,
        amount::{Balance, Limit, OnLimit, format_money},
        budgets::{OwnedBudget, OwnerKind},
        tasks::Task,
        text::count,
    },
};

/// Stands for the begin of the next period of a budget that has none.
const NEVER: &str = "never: it counts all calls of all time";

/// Formats budgets: those that tasks wait for first, then those of which most is used.
pub(super) fn format_budgets(budgets: &[OwnedBudget]) -> String {
    let mut sorted: Vec<&OwnedBudget> = budgets.iter().collect();
    sorted.sort_by_key(|budget| Reverse((budget.waiting_tasks > 0, used_percent(budget))));
    let row = |budget: &OwnedBudget| {
        [
            budget.owner.as_str().to_owned(),
            name(budget),
            state(budget).to_owned(),
            used_percent(budget).map_or_else(dash, |percent| format!("{percent} %")),
            format_limit(budget.balance().left()).unwrap_or_else(dash),
            budget.waiting_tasks.to_string(),
            format_limit(budget.limit).unwrap_or_else(dash),
            format_amount(budget.spent, budget.limit),
            format_amount(budget.reserved, budget.limit),
            format_limit(budget.soft).unwrap_or_else(dash),
            budget.on_limit.as_str().to_owned(),
            budget.ends_at.map_or_else(|| "never".to_owned(), time_cell),
        ]
    };
    let head = [
        "OWNER",
        "NAME",
        "STATE",
        "USED",
        "LEFT",
        "WAITING",
        "LIMIT",
        "SPENT",
        "RESERVED",
        "WARNS AT",
        "AT THE LIMIT",
        "BEGINS AGAIN (UTC)",
    ];
    let least =
        ["BEGINS AGAIN (UTC)", "AT THE LIMIT", "RESERVED", "WARNS AT", "SPENT", "LIMIT", "WAITING"];
    Table::new(&head).leaves_out(&least).format(sorted.into_iter().map(row))
}

/// Formats a budget, and what is unexpected about it.
pub(super) fn format_one(budget: &OwnedBudget) -> String {
    let none = || "none".to_owned();
    let mut fields = vec![
        ("budget of", format!("{} {}", owner_word(budget.owner), name(budget))),
        ("limit", format_limit(budget.limit).unwrap_or_else(none)),
    ];
    if let Some(left) = format_limit(budget.balance().left()) {
        fields.push(("left", left));
    }
    if let Some(percent) = used_percent(budget) {
        fields.push(("used", format!("{percent} %")));
    }
    fields.extend([
        ("spent", both(budget.spent)),
        ("reserved", both(budget.reserved)),
        ("warns at", format_limit(budget.soft).unwrap_or_else(none)),
    ]);
    if let Some(at) = budget.warned_at {
        fields.push(("warned", format!("{} UTC", time(at))));
    }
    fields.extend([
        ("at the limit", format!("tasks {}", budget.on_limit.as_str())),
        ("waiting", count_waiting(budget.waiting_tasks)),
        ("begins again", begins_again(budget)),
    ]);
    format!("{}{}", format_wrapped_fields(&fields), format_notes(&budget.notes(&format_money)))
}

/// Formats the budget of a task, and what is unexpected about it.
pub(super) fn format_task_budget(task: &Task) -> String {
    let none = || "none".to_owned();
    let balance = task_balance(task);
    let mut fields = vec![
        ("budget of", format!("task {}", task.id)),
        ("limit", format_limit(balance.limit).unwrap_or_else(none)),
    ];
    if let Some(left) = format_limit(balance.left()) {
        fields.push(("left", left));
    }
    fields.extend([
        ("spent", both(balance.spent)),
        ("at the limit", "as `on_limit` in the agent's file says".to_owned()),
        ("begins again", NEVER.to_owned()),
    ]);
    format!("{}{}", format_wrapped_fields(&fields), format_notes(&balance.notes(&format_money)))
}

/// Nothing is reserved of the budget of a task. Its soft limits are not among its data.
fn task_balance(task: &Task) -> Balance {
    Balance {
        limit: Limit { micros: task.budget_micros, tokens: task.budget_tokens },
        soft: Limit::default(),
        spent: Amount { micros: task.spent_micros, tokens: task.spent_tokens },
        reserved: Amount::default(),
    }
}

/// Formats notes, each a paragraph of its own.
pub(in crate::cli) fn format_notes(notes: &[String]) -> String {
    notes.iter().map(|note| format_wrapped("note: ", note)).collect()
}

/// Says what tasks do at the limit of a campaign, and which calls count.
pub(in crate::cli) fn format_campaign_end(on_limit: OnLimit) -> String {
    format!("at the limit, tasks {}; this budget counts all calls of all time\n", on_limit.as_str())
}

fn owner_word(owner: OwnerKind) -> &'static str {
    match owner {
        OwnerKind::Day => "the day",
        other => other.as_str(),
    }
}

fn name(budget: &OwnedBudget) -> String {
    match (&budget.name, budget.period) {
        (Some(name), _) => name.clone(),
        (None, Some(day)) => day.to_string(),
        (None, None) => budget.key.clone(),
    }
}

/// Returns the state by the limits: the soft one leaves its trace until the budget begins again or another one is set.
fn state(budget: &OwnedBudget) -> &'static str {
    match budget.warned_at {
        _ if budget.balance().is_used_up() => "used up",
        Some(_) => "warned",
        None => "ok",
    }
}

fn begins_again(budget: &OwnedBudget) -> String {
    match (budget.next_period(), budget.owner) {
        (Some(next), _) => next,
        (None, OwnerKind::User) => {
            format!("{NEVER}; there is no daily limit of one user, only that of the day for all")
        }
        (None, _) => NEVER.to_owned(),
    }
}

fn count_waiting(n: i64) -> String {
    match usize::try_from(n).unwrap_or(0) {
        0 => "no task".to_owned(),
        n => count(n, "task", "tasks"),
    }
}

fn dash() -> String {
    "-".to_owned()
}

/// Returns how much of the tighter limit is spent or reserved, rounded down. `None`: there is no limit.
fn used_percent(budget: &OwnedBudget) -> Option<i128> {
    let OwnedBudget { limit, spent, reserved, .. } = budget;
    let percent = |limit: Option<i64>, spent: i64, reserved: i64| {
        let used = i128::from(spent) + i128::from(reserved);
        limit.map(|limit| used * 100 / i128::from(limit.max(1)))
    };
    let money = percent(limit.micros, spent.micros, reserved.micros);
    money.max(percent(limit.tokens, spent.tokens, reserved.tokens))
}

/// Formats an amount in the units of the limit; in money without one.
fn format_amount(amount: Amount, limit: Limit) -> String {
    match (limit.micros, limit.tokens) {
        (Some(_), Some(_)) => both(amount),
        (None, Some(_)) => format!("{} tokens", amount.tokens),
        (_, None) => format_money(amount.micros),
    }
}

fn both(amount: Amount) -> String {
    format!("{}, {} tokens", format_money(amount.micros), amount.tokens)
}

/// Formats a limit, or what is left of it. `None`: there is none.
fn format_limit(limit: Limit) -> Option<String> {
    match (limit.micros, limit.tokens) {
        (None, None) => None,
        (Some(micros), None) => Some(format_money(micros)),
        (None, Some(tokens)) => Some(format!("{tokens} tokens")),
        (Some(micros), Some(tokens)) => Some(format!("{}, {tokens} tokens", format_money(micros))),
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;

    fn budget(name: &str, limit: Limit, micros: i64, waiting_tasks: i64) -> OwnedBudget {
        OwnedBudget {
            owner: OwnerKind::Agent,
            key: name.to_owned(),
            name: None,
            period: None,
            time_zone: None,
            ends_at: None,
            limit,
            soft: Limit { micros: None, tokens: None },
            spent: Amount { micros, tokens: 50 },
            reserved: Amount { micros: 0, tokens: 40 },
            on_limit: OnLimit::Wait,
            warned_at: None,
            waiting_tasks,
            has_campaign: None,
        }
    }

    fn money(micros: i64) -> Limit {
        Limit { micros: Some(micros), tokens: None }
    }

    #[test]
    fn budgets_that_tasks_wait_for_come_first_then_those_of_which_most_is_used() {
        let tokens = Limit { micros: Some(2_000_000), tokens: Some(100) };
        let none = Limit { micros: None, tokens: None };
        let budgets = [
            budget("free", none, 1_999_999, 0),
            budget("half", money(2_000_000), 1_000_000, 0),
            budget("most", tokens, 0, 0),
            budget("waits", money(2_000_000), 500_000, 1),
        ];
        let text = format_budgets(&budgets);
        let cells = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let rows: Vec<_> = text.lines().skip(1).map(cells).collect();
        let firsts: Vec<String> =
            rows.iter().map(|row| format!("{} {}", row[1], row[3..5].join(" "))).collect();
        assert_eq!(firsts, ["waits 25 %", "most 90 %", "half 50 %", "free - -"], "{text}");
        assert!(text.contains("2.00, 10 tokens") && text.contains("0.00, 40 tokens"), "{text}");
        assert_eq!(rows[2][5..8], ["1.00", "0", "2.00"], "left, waiting, limit: {text}");
    }

    #[test]
    fn a_soft_limit_that_was_reached_and_a_limit_that_is_used_up_are_states() {
        let warned = OwnedBudget {
            warned_at: Some(DateTime::UNIX_EPOCH),
            ..budget("writer", money(2_000_000), 1_900_000, 0)
        };
        assert_eq!(state(&warned), "warned");
        assert_eq!(state(&OwnedBudget { limit: money(1_900_000), ..warned.clone() }), "used up");
        assert_eq!(state(&budget("writer", money(2_000_000), 1_900_000, 0)), "ok");
        assert!(format_one(&warned).contains("warned        1970-01-01 00:00:00 UTC\n"));
    }

    #[test]
    fn the_budget_of_a_task_is_shown_as_fields_with_what_is_left() {
        let task = Task {
            budget_micros: Some(2_000_000),
            spent_micros: 1_900_000,
            spent_tokens: 50,
            ..Task::example()
        };
        let text = format_task_budget(&task);
        for line in [
            "budget of     task 00000000-0000-0000-0000-000000000001\n",
            "limit         2.00\n",
            "left          0.10\n",
            "spent         1.90, 50 tokens\n",
            "begins again  never: it counts all calls of all time\n",
            "note: only 0.10 is left of the limit of 2.00",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
        let free = format_task_budget(&Task { budget_micros: None, ..task });
        assert!(free.contains("limit         none\n") && !free.contains("left "), "{free}");
    }

    #[test]
    fn one_budget_is_shown_as_fields_with_the_begin_of_its_next_period() {
        let day = OwnedBudget {
            owner: OwnerKind::Day,
            key: String::new(),
            period: Some("2026-11-29".parse().unwrap()),
            time_zone: Some("Europe/Berlin".to_owned()),
            ..budget("", money(2_000_000), 500_000, 2)
        };
        let text = format_one(&day);
        for line in [
            "budget of     the day 2026-11-29\n",
            "left          1.50\n",
            "used          25 %\n",
            "spent         0.50, 50 tokens\n",
            "waiting       2 tasks\n",
            "begins again  2026-11-30 00:00 Europe/Berlin\n",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
        assert!(!text.contains("note: "), "{text}");
        let user = OwnedBudget {
            owner: OwnerKind::User,
            has_campaign: Some(false),
            ..budget("ann", money(100_000), 99_000, 0)
        };
        let text = format_one(&user);
        assert!(text.contains("never: it counts all calls of all time"), "{text}");
        assert!(text.contains("note: only 0.001 is left of the limit of 0.10"), "{text}");
        assert!(text.contains("note: no campaign works for the user `ann` now"), "{text}");
    }
}
