//! `dalsegno overview`: what waits for a person, and what runs.

use super::{
    Context, Exit, Failure,
    output::{format_table, short_id, time_cell_or_dash},
    server::with_server,
    words::first_line,
};
use crate::{
    domain::{attention::Attention, tasks::TaskLine, text::count},
    operations::{Overview, ShowOverview},
};

pub(super) async fn run(context: &Context) -> Result<Exit, Failure> {
    with_server(context, async |server| {
        let overview = server.call(ShowOverview { hours: None }).await?;
        context.output.print_data(&overview, || format_overview(&overview));
        Ok(Exit::Ok)
    })
    .await
}

fn format_overview(overview: &Overview) -> String {
    let done: i64 = overview.runs.iter().map(|minute| minute.done).sum();
    let failed: i64 = overview.runs.iter().map(|minute| minute.failed).sum();
    format!(
        "{}, of which {failed} failed, within the last hour\n\n{}\n{}",
        count(usize::try_from(done + failed).unwrap_or_default(), "turn ended", "turns ended"),
        format_attention(&overview.attention),
        format_running(&overview.running)
    )
}

fn format_attention(items: &[Attention]) -> String {
    if items.is_empty() {
        return "nothing waits for a person\n".to_owned();
    }
    let row = |item: &Attention| {
        [
            first_line(&item.name, 40),
            first_line(&item.because, 80),
            time_cell_or_dash(item.since),
            item.command.clone(),
        ]
    };
    format_table(&["NEEDS ATTENTION", "BECAUSE", "SINCE (UTC)", "COMMAND"], items.iter().map(row))
}

fn format_running(tasks: &[TaskLine]) -> String {
    let row = |task: &TaskLine| {
        [
            short_id(task.id),
            task.agent.clone(),
            time_cell_or_dash(task.started_at),
            first_line(&task.prompt, 60),
        ]
    };
    format_table(&["RUNNING", "AGENT", "SINCE (UTC)", "PROMPT"], tasks.iter().map(row))
}
