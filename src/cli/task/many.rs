//! `task cancel` and `task retry` for many tasks.

use anyhow::anyhow;
use clap::Args;

use super::{filter::FilterFlags, list};
use crate::{
    cli::{
        Context, Exit, Failure,
        agent_filter::note_unknown_agent,
        bulk::{format_action, wait_for_action},
        campaign_names::CampaignNames,
        output::{format_wrapped, short_id},
        progress::WaitFlag,
        server::Server,
        words::{Moment, parse_moment},
    },
    domain::{
        agents::Catalogue,
        bulk_actions::{Action, Preview},
        ids::{GivenCampaign, PartialId},
        tasks::TaskFilter,
        text::count,
    },
    operations::{CreateBulkAction, PreviewBulkAction},
};

/// One task, or all that match the options.
#[derive(Debug, Args)]
pub(in crate::cli) struct Target {
    /// The id, or a unique beginning or end of it. Without it, all tasks that the options select.
    pub(super) id: Option<PartialId>,
    #[command(flatten)]
    filter: FilterFlags,
    /// Only tasks of other campaigns than this one.
    #[arg(long, value_name = "CAMPAIGN")]
    except_campaign: Option<GivenCampaign>,
    /// Only tasks that ended since then: 2026-11-23T08:00:00Z, or 24h for a day ago.
    #[arg(long, value_name = "TIME", value_parser = parse_moment)]
    ended_since: Option<Moment>,
    /// Shows which tasks match, and changes nothing.
    #[arg(long, conflicts_with = "wait")]
    dry_run: bool,
    #[command(flatten)]
    wait: WaitFlag,
}

impl Target {
    /// Returns the id of a single task, or `None` for many.
    pub(super) fn single_id(&self) -> Result<Option<&PartialId>, Failure> {
        let is_unfiltered =
            self.filter.is_empty() && self.except_campaign.is_none() && self.ended_since.is_none();
        let words = match (&self.id, is_unfiltered) {
            (Some(_), true) if self.wait.wait.is_some() => {
                "--wait is for many tasks; `dalsegno task show ID --wait 10m` waits for one"
            }
            (Some(id), true) if !self.dry_run => return Ok(Some(id)),
            (None, false) => return Ok(None),
            (Some(_), _) => {
                "name one task by its id, or many by options such as --state and --since, not both"
            }
            (None, true) => {
                "name a task by its id, or many by options such as --state failed --since 1d"
            }
        };
        Err(Failure::new(Exit::Usage, anyhow!(words)))
    }
}

/// Starts the action, or previews it.
pub(super) async fn run(
    action: Action,
    target: &Target,
    reason: &str,
    context: &Context,
    server: &Server,
) -> Result<Exit, Failure> {
    target.filter.check_times(context)?;
    if let Some(Moment { at, is_relative: true }) = target.ended_since {
        context.refuse_relative("--ended-since", "--ended-since", at)?;
    }
    let campaign_id = target.filter.campaign_id(context, server).await?;
    let except_campaign_id = match &target.except_campaign {
        Some(given) => Some(server.campaign(given).await?),
        None => None,
    };
    let filter = TaskFilter {
        except_campaign_id,
        ended_after: target.ended_since.map(|since| since.at),
        ..target.filter.to_filter(campaign_id)
    };
    let output = context.output;
    // With an idempotency key, an earlier call may have left no task that matches: its result is shown again.
    if target.dry_run || context.idempotency_key.is_none() {
        let filter = filter.clone();
        let preview = server.call(PreviewBulkAction { action, filter }).await?;
        if target.dry_run || preview.matched == 0 {
            let names = CampaignNames::of_list(campaign_id, &preview.tasks, output, server).await;
            output.print_data(&preview, || {
                format_preview(&preview, names.as_ref(), &context.catalogue())
            });
            if preview.matched == 0 {
                note_unknown_agent(target.filter.agent(), context, server).await;
            }
            return Ok(Exit::Ok);
        }
    }
    let (reason, expected_count) = (reason.to_owned(), None);
    let new = CreateBulkAction { action, filter, reason, expected_count };
    let bulk = server.call(new).await?;
    if let Some(limit) = target.wait.wait {
        let (bulk, exit) = wait_for_action(bulk.id, limit, output, server).await?;
        output.print_data(&bulk, || format_action(&bulk));
        return Ok(exit);
    }
    output.print_data(&bulk, || {
        format!(
            "a worker will {} {}; `dalsegno bulk show {}` shows its progress",
            action.as_str(),
            count(bulk.matched, "task", "tasks"),
            bulk.id
        )
    });
    Ok(Exit::Ok)
}

fn format_preview(
    preview: &Preview,
    campaigns: Option<&CampaignNames>,
    catalogue: &Catalogue,
) -> String {
    let Preview { matched, tasks, .. } = preview;
    if tasks.is_empty() {
        return "no tasks match; nothing was done".to_owned();
    }
    let mut text = format!(
        "{}; nothing was done\n\n{}",
        count(*matched, "task matches", "tasks match"),
        list::format_tasks(tasks, campaigns, catalogue)
    );
    let n_more = matched.saturating_sub(i64::try_from(tasks.len()).unwrap_or(i64::MAX));
    if n_more > 0 {
        text.push_str(&format!("and {n_more} more\n"));
    }
    text.push_str(&format_refused(preview));
    text
}

/// Formats the tasks whose retry would fail again, with the command that comes first. Tasks with the same command and reason stand together.
fn format_refused(preview: &Preview) -> String {
    let refused = &preview.refused;
    if refused.is_empty() {
        return String::new();
    }
    let mut text = format!("\n{}:\n", preview.describe_refused());
    for command in distinct(refused.iter().map(|retry| retry.command.as_str())) {
        let of_command = || refused.iter().filter(|retry| retry.command == command);
        for because in distinct(of_command().map(|retry| retry.because.as_str())) {
            let same = of_command().filter(|retry| retry.because == because);
            let ids: Vec<String> = same.map(|retry| short_id(retry.task_id)).collect();
            text.push_str(&format_wrapped("  ", &format!("{}: {because}", ids.join(", "))));
        }
        text.push_str(&format!("  {command}\n"));
    }
    text
}

fn distinct<'a>(texts: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut all = Vec::new();
    for text in texts {
        if !all.contains(&text) {
            all.push(text);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::domain::tasks::RefusedRetry;

    #[test]
    fn tasks_that_would_fail_again_at_one_budget_are_named_with_one_command() {
        let of = |id: u128, agent: &str, cost: &str| RefusedRetry {
            task_id: Uuid::from_u128(id),
            because: format!("this call may cost up to {cost}"),
            budget: Some(format!("agent/{agent}")),
            command: format!("dalsegno budget set agent {agent} --money 0.81"),
            flow_id: None,
        };
        let refused = vec![
            of(1, "planner", "0.80"),
            of(2, "writer", "0.80"),
            of(3, "planner", "0.80"),
            of(4, "planner", "0.65"),
        ];
        let mut preview = Preview { matched: 500, tasks: Vec::new(), refused };
        let text = format_refused(&preview);
        assert!(text.contains("4 of the first 0 tasks would fail again at once"), "{text}");
        let command = "\n  dalsegno budget set agent planner --money 0.81\n";
        assert_eq!(text.matches(command).count(), 1, "{text}");
        let [first, third, fourth] = [1, 3, 4].map(|id| short_id(Uuid::from_u128(id)));
        assert!(text.contains(&format!("{first}, {third}: this call")), "{text}");
        assert!(
            text.contains(&format!("{fourth}: this call may cost up to 0.65{command}")),
            "{text}"
        );
        preview.matched = 0;
        assert!(format_refused(&preview).contains("\n4 tasks would fail again at once"));
        preview.refused.clear();
        assert_eq!(format_refused(&preview), "");
    }
}
