//! `dalsegno overview`: what waits for a person, and what runs.

use super::{
    Context, Exit, Failure,
    campaign_names::{CAMPAIGN, CampaignNames},
    output::{
        Table, format_wrapped, short_id, short_text, text_cell, time_cell_or_dash, time_head,
    },
    server::with_server,
};
use crate::{
    domain::{
        attention::{
            Attention, FAILED_WITHIN, count_group, count_members, describe_cut, describe_group,
            group_failures, lacks_members, retry_steps,
        },
        tasks::{FailureTotals, TaskLine},
        text::{count_read, quote_for_shell},
    },
    operations::{Overview, ShowOverview},
};

/// Columns of a name, so that its line fits a terminal.
const NAME_COLUMNS: usize = 55;

pub(super) async fn run(context: &Context) -> Result<Exit, Failure> {
    with_server(context, async |server| {
        let overview = server.call(ShowOverview { hours: None }).await?;
        let names = CampaignNames::of_list(None, &overview.running, context.output, server).await;
        let names = names.unwrap_or_default();
        context.output.print_data(&overview, || format_overview(&overview, &names));
        Ok(Exit::Ok)
    })
    .await
}

fn format_overview(overview: &Overview, campaigns: &CampaignNames) -> String {
    let done: i64 = overview.runs.iter().map(|minute| minute.done).sum();
    let failed: i64 = overview.runs.iter().map(|minute| minute.failed).sum();
    let ended = count_read(done + failed, overview.runs_are_cut, "turn ended", "turns ended");
    format!(
        "{ended}, of which {failed} failed, within the last hour\n\n{}\n{}",
        format_attention(&overview.attention, &overview.failures),
        format_running(&overview.running, campaigns)
    )
}

/// Formats each matter with its whole reason, and each command on a line of its own, to be copied.
fn format_attention(items: &[Attention], failures: &FailureTotals) -> String {
    let mut text = match items {
        [] => "nothing waits for a person\n".to_owned(),
        _ => format!("{}\n", time_head("NEEDS ATTENTION, SINCE (UTC)")),
    };
    for group in group_failures(items) {
        let first = group[0];
        let (name, commands) = match group.as_slice() {
            [item] if item.unlisted.is_none() => {
                let commands = std::iter::once(&item.command).chain(&item.then);
                (short_text(&item.name, NAME_COLUMNS), commands.cloned().collect())
            }
            equal => {
                let members = count_members(equal, failures.is_cut);
                let name = format!("{members} failed {}", describe_group(equal));
                (name, commands_for_failures(equal, failures.is_cut))
            }
        };
        let since = group.iter().filter_map(|item| item.since).max();
        let since = since.map(|at| format!("  {}", time_cell_or_dash(Some(at))));
        text.push_str(&format!("{name}{}\n", since.unwrap_or_default()));
        if !first.because.is_empty() {
            text.push_str(&format_wrapped("  ", &text_cell(&first.because)));
        }
        if let Some(present) = &first.present {
            text.push_str(&format_wrapped("  ", &format!("now {}", text_cell(present))));
        }
        if let Some(until) = first.until {
            let end = format!("continues by itself, next try: {}", time_cell_or_dash(Some(until)));
            text.push_str(&format_wrapped("  ", &end));
        }
        if count_group(&group) > 1 {
            let rest = if lacks_members(&group) { ", and older ones" } else { "" };
            text.push_str(&format_wrapped("  ", &format!("tasks {}{rest}", short_ids(&group))));
            let note = match first.flow_id {
                Some(_) => {
                    "a retry from a step runs all its tasks again, and all that depend on them"
                }
                None => "the preview of their retry also lists other tasks that failed since then",
            };
            text.push_str(&format_wrapped("  ", note));
        }
        for command in commands {
            text.push_str(&format!("  {command}\n"));
        }
    }
    if let Some(note) = describe_cut(failures) {
        text.push_str(&format_wrapped("", &note));
    }
    text
}

fn short_ids(failures: &[&Attention]) -> String {
    let id = |item: &&Attention| match item.subject.parse() {
        Ok(id) => short_id(id),
        Err(_) => item.subject.clone(),
    };
    failures.iter().map(id).collect::<Vec<_>>().join(", ")
}

/// Returns the commands that raise the limit at which the tasks have failed, list them, and preview a retry of all of them. If the list may
/// lack some, the preview has the whole period. Steps are listed and retried with their flow.
fn commands_for_failures(failures: &[&Attention], is_cut: bool) -> Vec<String> {
    let first = failures[0];
    let may_lack = is_cut || lacks_members(failures);
    // The limit may allow the smaller calls of a group.
    let raise = failures.iter().find(|it| it.refusing_budget().is_some());
    let raise = raise.map(|it| it.command.clone());
    if let Some(flow) = first.flow_id {
        let show = format!("dalsegno flow show {flow}");
        let retries = retry_steps(failures).into_iter().map(str::to_owned);
        return raise.into_iter().chain([show]).chain(retries).collect();
    }
    let mut filter = " --state failed".to_owned();
    if let Some(agent) = &first.agent
        && failures.iter().all(|it| it.agent == first.agent)
    {
        filter.push_str(&format!(" --agent {}", quote_for_shell(agent)));
    }
    if let Some(campaign) = first.campaign_id
        && failures.iter().all(|it| it.campaign_id == first.campaign_id)
    {
        filter.push_str(&format!(" --campaign {campaign}"));
    }
    let list = format!("dalsegno task ls{filter}");
    let since = failures.iter().filter_map(|it| it.since).min();
    let since = match since {
        Some(_) if may_lack => format!(" --ended-since {}d", FAILED_WITHIN.num_days()),
        Some(at) => format!(" --ended-since {}", at.format("%FT%TZ")),
        None => String::new(),
    };
    let retry = format!("dalsegno task retry{filter}{since} --dry-run");
    raise.into_iter().chain([list, retry]).collect()
}

fn format_running(tasks: &[TaskLine], campaigns: &CampaignNames) -> String {
    let row = |task: &TaskLine| {
        [
            short_id(task.id),
            task.agent.clone(),
            campaigns.cell(task.campaign_id),
            time_cell_or_dash(task.started_at),
            text_cell(&task.prompt),
        ]
    };
    let head = ["RUNNING", "AGENT", CAMPAIGN, "SINCE (UTC)", "PROMPT"];
    Table::new(&head).leaves_out(&["SINCE (UTC)"]).format(tasks.iter().map(row))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Formats a list for which all failed tasks were read.
    fn format_whole(items: &[Attention]) -> String {
        format_attention(items, &FailureTotals::default())
    }

    #[test]
    fn each_of_two_commands_has_its_own_line() {
        let raise = "dalsegno budget set day --money 0.80";
        let item = json!({
            "kind": "failed_task", "subject": "1", "name": "Write.", "because": "too large", "present": "9 of 10 are spent",
            "command": raise, "then": "dalsegno task retry 1"
        });
        let text = format_whole(&[serde_json::from_value(item).unwrap()]);
        assert!(text.contains("\n  too large\n  now 9 of 10 are spent\n"), "{text}");
        assert!(text.ends_with(&format!("\n  {raise}\n  dalsegno task retry 1\n")), "{text}");
    }

    #[test]
    fn a_wait_for_a_provider_names_its_next_try() {
        let item = json!({
            "kind": "provider_wait", "subject": "m1 on deadbox", "name": "m1 on deadbox", "because": "1 task waits for it",
            "command": "dalsegno doctor", "until": "2026-11-20T13:00:00Z"
        });
        let text = format_whole(&[serde_json::from_value(item).unwrap()]);
        let next = "\n  continues by itself, next try: 2026-11-20 13:00:00\n  dalsegno doctor\n";
        assert!(text.ends_with(next), "{text}");
    }

    #[test]
    fn tasks_with_the_same_error_are_one_entry_with_a_retry_of_all() {
        let failed = |id: u128, agent: &str, since: &str| {
            let id = uuid::Uuid::from_u128(id);
            serde_json::from_value(json!({
                "kind": "failed_task", "subject": id, "name": "Write.", "agent": agent, "because": "no login", "group": 1,
                "command": format!("dalsegno task retry {id}"), "since": since
            }))
            .unwrap()
        };
        let items: [Attention; 3] = [
            failed(1, "writer", "2026-11-20T11:30:00.5Z"),
            failed(2, "writer", "2026-11-20T11:00:00.5Z"),
            failed(3, "planner", "2026-11-20T11:45:00Z"),
        ];
        let text = format_whole(&items[..2]);
        assert!(text.contains("2 tasks failed with the same error  2026-11-20 11:30:00"), "{text}");
        assert_eq!(text.matches("no login").count(), 1, "{text}");
        let retry = "\n  dalsegno task retry --state failed --agent writer --ended-since 2026-11-20T11:00:00Z --dry-run\n";
        assert!(text.ends_with(retry), "{text}");
        assert!(text.contains("\n  dalsegno task ls --state failed --agent writer\n"), "{text}");
        assert!(text.contains("\n  the preview of their retry also lists other tasks"), "{text}");
        let text = format_whole(&items);
        assert!(text.contains("3 tasks failed") && !text.contains("--agent"), "{text}");
        let step = |id: u128| Attention {
            flow_id: Some(uuid::Uuid::nil()),
            command: "dalsegno flow retry F --from draft".to_owned(),
            ..failed(id, "writer", "2026-11-20T11:30:00Z")
        };
        let text = format_whole(&[step(4), step(5)]);
        assert!(text.contains("2 steps of a flow failed with the same error"), "{text}");
        let show = format!("\n  dalsegno flow show {}\n", uuid::Uuid::nil());
        assert!(text.ends_with(&format!("{show}  dalsegno flow retry F --from draft\n")), "{text}");
        assert!(!text.contains("task retry") && !text.contains("the preview"), "{text}");
        let oldest = Attention { unlisted: Some(28), ..items[1].clone() };
        let text = format_whole(&[items[0].clone(), oldest]);
        assert!(text.contains("30 tasks failed with the same error"), "{text}");
        assert!(text.contains(", and older ones\n"), "{text}");
        assert!(text.ends_with(" --agent writer --ended-since 7d --dry-run\n"), "{text}");
        let totals = FailureTotals { read: 1_000, is_cut: true, groups: 1 };
        let text = format_attention(&items[..2], &totals);
        assert!(text.contains("2 or more tasks failed with the same error"), "{text}");
        let retry = "--ended-since 7d --dry-run\nOnly the newest 1000 failed tasks of the last 7 days were read";
        assert!(text.contains(retry), "{text}");
    }
}
