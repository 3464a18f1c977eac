//! Text output of campaigns.

use serde_json::Value;

use crate::{
    cli::{
        budget::show::{format_campaign_end, format_notes},
        output::{Table, format_fields, format_table, short_id, text_cell, time_cell},
        session,
        words::{first_line, label_fields, time},
    },
    domain::{
        agents::Catalogue,
        amount::{Limit, format_money},
        audit::describe_label,
        campaign_overview::Overview,
        campaigns::{Budget, Campaign, ExperimentBudget},
        erasures::Erasure,
        text::count,
        usage::Total,
    },
};

pub(super) fn format_campaigns(campaigns: &[Campaign]) -> String {
    let row = |campaign: &Campaign| {
        [
            short_id(campaign.id),
            campaign.status.as_str().to_owned(),
            time_cell(campaign.created_at),
            campaign.tags.join(" "),
            text_cell(&campaign.name),
        ]
    };
    format_table(&["ID", "STATUS", "CREATED (UTC)", "TAGS", "NAME"], campaigns.iter().map(row))
}

pub(super) fn format_overview(overview: &Overview, catalogue: &Catalogue) -> String {
    let Overview { campaign, pause_reason, paused_at, paused_by, budget, sessions, usage } =
        overview;
    let status = match pause_reason {
        Some(reason) => format!("{}: {}", campaign.status.as_str(), first_line(reason, 100)),
        None => campaign.status.as_str().to_owned(),
    };
    let since = paused_at.map(|at| match paused_by {
        Some(author) => format!("{} by {}", time(at), describe_label(author)),
        None => time(at),
    });
    let brief = match campaign.brief.trim() {
        "" => "-".to_owned(),
        brief => first_line(brief, 100),
    };
    let mut list = vec![
        ("campaign", campaign.id.to_string()),
        ("name", campaign.name.clone()),
        ("status", status),
        ("created", time(campaign.created_at)),
        ("version", campaign.version.to_string()),
        ("brief", brief),
    ];
    if let Some(since) = since {
        list.insert(3, ("paused", since));
    }
    if !campaign.parameters.is_empty() {
        list.push(("parameters", Value::Object(campaign.parameters.0.clone()).to_string()));
    }
    list.extend(label_fields(&campaign.tags, &campaign.metadata));
    let mut text = format_fields(&list);
    if let Some(budget) = budget {
        text.push_str(&format!("\n{}", format_budget(budget)));
    }
    if !sessions.is_empty() {
        text.push_str(&format!(
            "\nopen sessions\n{}",
            session::format_sessions(sessions, None, catalogue)
        ));
    }
    if !usage.is_empty() {
        text.push_str(&format!("\ncost\n{}", totals(usage)));
    }
    text
}

/// Formats the budget of a campaign, and what is unexpected about it.
pub(in crate::cli) fn format_noted_budget(budget: &Budget) -> String {
    let notes = budget.balance().notes(&format_money);
    format!("{}{}", format_budget(budget), format_notes(&notes))
}

fn format_budget(budget: &Budget) -> String {
    let limit = |limit: Option<i64>, said: fn(i64) -> String| {
        limit.map_or_else(|| "no limit".to_owned(), said)
    };
    let or_dash =
        |amount: Option<i64>, said: fn(i64) -> String| amount.map_or_else(|| "-".to_owned(), said);
    let tokens = |tokens: i64| tokens.to_string();
    let ExperimentBudget { limit_micros, spent_micros } = budget.experiments;
    let reruns = (limit_micros.is_some() || spent_micros > 0).then(|| {
        let left = limit_micros.map(|limit| limit.saturating_sub(spent_micros).max(0));
        let none = || "-".to_owned();
        [
            "reruns".to_owned(),
            limit_micros.map_or_else(|| "none".to_owned(), format_money),
            or_dash(left, format_money),
            format_money(spent_micros),
            none(),
            none(),
        ]
    });
    let left = budget.balance().left();
    let table = format_table(
        &["BUDGET", "LIMIT", "LEFT", "SPENT", "RESERVED", "WARNS AT"],
        [
            [
                "money".to_owned(),
                limit(budget.limit.micros, format_money),
                or_dash(left.micros, format_money),
                format_money(budget.spent.micros),
                format_money(budget.reserved.micros),
                or_dash(budget.soft.micros, format_money),
            ],
            [
                "tokens".to_owned(),
                limit(budget.limit.tokens, tokens),
                or_dash(left.tokens, tokens),
                tokens(budget.spent.tokens),
                tokens(budget.reserved.tokens),
                or_dash(budget.soft.tokens, tokens),
            ],
        ]
        .into_iter()
        .chain(reruns),
    );
    match budget.limit {
        Limit { micros: None, tokens: None } => table,
        _ => format!("{table}{}", format_campaign_end(budget.on_limit)),
    }
}

fn totals(usage: &[Total]) -> String {
    let row = |total: &Total| {
        [
            total.agent.clone(),
            total.provider.clone(),
            total.model.clone(),
            session::serialised_name(total.purpose),
            total.calls.to_string(),
            (total.input_tokens + total.cache_read_tokens + total.cache_creation_tokens)
                .to_string(),
            total.output_tokens.to_string(),
            format_money(total.cost_micros),
        ]
    };
    let head = ["AGENT", "PROVIDER", "MODEL", "FOR", "CALLS", "TOKENS IN", "TOKENS OUT", "COST"];
    Table::new(&head).leaves_out(&["PROVIDER"]).format(usage.iter().map(row))
}

pub(super) fn format_receipt(erasure: &Erasure) -> String {
    let state = match erasure.ended_at {
        Some(at) => format!("was erased at {} UTC", time(at)),
        // The id is named, because the campaign's name is erased, too.
        None => format!(
            "is being erased: {}; `dalsegno campaign erase {}` shows its progress",
            progress(erasure),
            erasure.campaign_id
        ),
    };
    let width = erasure.removed.keys().map(String::len).max().unwrap_or(0);
    let removed = erasure.removed.iter().map(|(what, n)| format!("\n  {what:<width$}  {n}"));
    let hosts = match erasure.hosts.as_slice() {
        [] => "none yet".to_owned(),
        hosts => hosts.join(", "),
    };
    format!(
        "campaign {} {state}\nreceipt {}: {}{}\nhosts that have checked their folders: {hosts}",
        erasure.campaign_id,
        erasure.id,
        erasure.reason,
        removed.collect::<String>(),
    )
}

fn progress(erasure: &Erasure) -> String {
    match erasure.step.as_deref() {
        None => {
            format!(
                "it has not started, {}",
                count(erasure.open_tasks, "task is open", "tasks are open")
            )
        }
        Some("cancel") => {
            let tasks = count(erasure.open_tasks, "task has", "tasks have");
            format!("{tasks} to end or be cancelled first")
        }
        Some(step) => format!("{step} are removed"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use chrono::{DateTime, Utc};
    use uuid::Uuid;

    use super::*;
    use crate::domain::{Amount, amount::OnLimit, erasures::Contents};

    #[test]
    fn a_budget_has_what_is_left_and_never_begins_again() {
        let budget = Budget {
            limit: Limit { micros: Some(2_000_000), tokens: None },
            soft: Limit { micros: Some(3_000_000), tokens: None },
            spent: Amount { micros: 500_000, tokens: 40 },
            reserved: Amount { micros: 250_000, tokens: 0 },
            on_limit: OnLimit::Fail,
            experiments: ExperimentBudget { limit_micros: Some(900_000), spent_micros: 100_000 },
        };
        let text = format_noted_budget(&budget);
        let cells = |n: usize| text.lines().nth(n).unwrap().split_whitespace().collect::<Vec<_>>();
        assert_eq!(cells(0)[..4], ["BUDGET", "LIMIT", "LEFT", "SPENT"], "{text}");
        assert_eq!(cells(1), ["money", "2.00", "1.25", "0.50", "0.25", "3.00"], "{text}");
        assert_eq!(cells(3), ["reruns", "0.90", "0.80", "0.10", "-", "-"], "{text}");
        let end = "at the limit, tasks fail; this budget counts all calls of all time";
        assert_eq!(text.lines().nth(4), Some(end));
        assert!(text.contains("note: the soft limit of 3.00 is not below"), "{text}");
        let unlimited = format_budget(&Budget { limit: Limit::default(), ..budget });
        assert!(!unlimited.contains("begins again"), "{unlimited}");
    }

    #[test]
    fn the_counts_of_a_receipt_are_separated_from_their_names() {
        let removed = [("posts", 2), ("webhook_deliveries", 5)];
        let erasure = Erasure {
            id: Uuid::nil(),
            campaign_id: Uuid::nil(),
            reason: "by request".to_owned(),
            asked_at: DateTime::<Utc>::UNIX_EPOCH,
            ended_at: None,
            step: None,
            open_tasks: 0,
            removed: BTreeMap::from(removed.map(|(what, n)| (what.to_owned(), n))),
            contents: None,
            vacuumed_at: None,
            rewritten_at: None,
            signed: None,
            hosts: Vec::new(),
        };
        let text = format_receipt(&erasure);
        let counts = "\n  posts               2\n  webhook_deliveries  5\n";
        assert!(text.contains(counts), "{text}");
        assert_eq!(erasure.removed_of_all(), (0, 0), "nothing was counted before");
        let rows = |rows| Contents { rows, sha256: String::new() };
        let contents = [("posts", rows(3)), ("facts", rows(1))];
        let contents = contents.map(|(kind, contents)| (kind.to_owned(), contents));
        let erasure = Erasure { contents: Some(BTreeMap::from(contents)), ..erasure };
        assert_eq!(erasure.removed_of_all(), (2, 4), "deliveries were not counted before");
    }
}
