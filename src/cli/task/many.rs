//! `task cancel` and `task retry` of many tasks at once.

use anyhow::anyhow;
use clap::Args;

use super::{filter::FilterFlags, show};
use crate::{
    cli::{Context, Exit, Failure, server::Server},
    domain::{bulk_actions::Action, ids::Given},
    operations::{CreateBulkAction, PreviewBulkAction},
};

/// One task, or all that match.
#[derive(Debug, Args)]
pub(in crate::cli) struct Target {
    /// The id, or as much of its beginning or end as no other has. Without it, all tasks that the options name.
    pub(super) id: Option<Given>,
    #[command(flatten)]
    filter: FilterFlags,
    /// Shows which tasks match, and does nothing.
    #[arg(long)]
    dry_run: bool,
}

impl Target {
    /// The one task, if it is one.
    pub(super) fn one(&self) -> Result<Option<&Given>, Failure> {
        let words = match (&self.id, self.filter.is_empty()) {
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

/// Asks for the action, or shows what it would be.
pub(super) async fn run(
    action: Action,
    target: &Target,
    reason: &str,
    context: &Context,
    server: &Server,
) -> Result<Exit, Failure> {
    target.filter.check_times(context)?;
    let campaign_id = target.filter.campaign_id(context, server).await?;
    let filter = target.filter.matching(campaign_id);
    let output = context.output;
    if target.dry_run {
        let preview = server.call(PreviewBulkAction { action, filter }).await?;
        output.data(&preview, || {
            let mut text = format!("{} tasks match; nothing was done\n", preview.matched);
            if !preview.tasks.is_empty() {
                text.push_str(&format!("\n{}", show::lines(&preview.tasks, &context.catalogue())));
            }
            text
        });
        return Ok(Exit::Ok);
    }
    let (reason, expected_count) = (reason.to_owned(), None);
    let new = CreateBulkAction { action, filter, reason, expected_count };
    let bulk = server.call(new).await?;
    output.data(&bulk, || {
        format!(
            "a worker will {} {} tasks; `dalsegno bulk show {}` says how far it is",
            action.as_str(),
            bulk.matched,
            bulk.id
        )
    });
    Ok(Exit::Ok)
}
