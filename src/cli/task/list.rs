//! The table of tasks.

use crate::{
    cli::{
        campaign_names::{CAMPAIGN, CampaignNames},
        output::{Table, short_id, text_cell, time_cell, time_cell_or_dash},
    },
    domain::{agents::Catalogue, tasks::ListedTask},
};

/// Formats tasks, with their campaigns if `campaigns` has the names.
pub(super) fn format_tasks(
    tasks: &[ListedTask],
    campaigns: Option<&CampaignNames>,
    catalogue: &Catalogue,
) -> String {
    let row = |listed: &ListedTask| {
        let task = &listed.task;
        [
            short_id(task.id),
            task.state.as_str().to_owned(),
            catalogue.format_name(&task.agent, &task.instance),
            campaigns.map(|names| names.cell(task.campaign_id)).unwrap_or_default(),
            time_cell(task.created_at),
            time_cell_or_dash(task.ended_at),
            listed.tags.join(" "),
            text_cell(task.subject()),
        ]
    };
    let head = ["ID", "STATE", "AGENT", CAMPAIGN, "CREATED (UTC)", "ENDED (UTC)", "TAGS", "PROMPT"];
    // The creation stays: without a time, old and new tasks look alike.
    let table = Table::new(&head).leaves_out(&["TAGS", "ENDED (UTC)"]);
    let table = if campaigns.is_some() { table } else { table.hides(CAMPAIGN) };
    table.format(tasks.iter().map(row))
}
