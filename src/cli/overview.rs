//! `dalsegno overview`: what waits for a person, and what runs.

use super::{
    Context, Exit, Failure,
    campaign_names::{CAMPAIGN, CampaignNames},
    output::{Table, format_wrapped, short_id, short_text, text_cell, time_cell_or_dash},
    server::with_server,
};
use crate::{
    domain::{attention::Attention, tasks::TaskLine, text::count},
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
    format!(
        "{}, of which {failed} failed, within the last hour\n\n{}\n{}",
        count(usize::try_from(done + failed).unwrap_or_default(), "turn ended", "turns ended"),
        format_attention(&overview.attention),
        format_running(&overview.running, campaigns)
    )
}

/// Formats each matter with its whole reason, and each command on a line of its own, to be copied.
fn format_attention(items: &[Attention]) -> String {
    if items.is_empty() {
        return "nothing waits for a person\n".to_owned();
    }
    let mut text = "NEEDS ATTENTION, SINCE (UTC)\n".to_owned();
    for item in items {
        let since = item.since.map(|at| format!("  {}", time_cell_or_dash(Some(at))));
        text.push_str(&short_text(&item.name, NAME_COLUMNS));
        text.push_str(&since.unwrap_or_default());
        text.push('\n');
        if !item.because.is_empty() {
            text.push_str(&format_wrapped("  ", &text_cell(&item.because)));
        }
        for command in std::iter::once(&item.command).chain(&item.then) {
            text.push_str(&format!("  {command}\n"));
        }
    }
    text
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

    #[test]
    fn each_of_two_commands_has_its_own_line() {
        let raise = "dalsegno budget set day --money 0.80";
        let item = json!({
            "kind": "failed_task", "subject": "1", "name": "Write.", "because": "too large", "command": raise, "then": "dalsegno task retry 1"
        });
        let text = format_attention(&[serde_json::from_value(item).unwrap()]);
        assert!(text.ends_with(&format!("\n  {raise}\n  dalsegno task retry 1\n")), "{text}");
    }
}
