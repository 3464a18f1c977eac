//! `dalsegno overview`: what waits for a person, and what runs.

use super::{
    Context, Exit, Failure,
    campaign_names::{CAMPAIGN, CampaignNames},
    output::{Table, format_table, short_id, text_cell, time_cell_or_dash},
    server::with_server,
};
use crate::{
    domain::{attention::Attention, tasks::TaskLine, text::count},
    operations::{Overview, ShowOverview},
};

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

fn format_attention(items: &[Attention]) -> String {
    if items.is_empty() {
        return "nothing waits for a person\n".to_owned();
    }
    let row = |item: &Attention| {
        [
            text_cell(&item.name),
            text_cell(&item.because),
            time_cell_or_dash(item.since),
            item.command.clone(),
        ]
    };
    format_table(&["NEEDS ATTENTION", "BECAUSE", "SINCE (UTC)", "COMMAND"], items.iter().map(row))
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
