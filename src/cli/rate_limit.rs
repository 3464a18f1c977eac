//! `dalsegno rate-limit`: the rate limits of calls that are in use.

use clap::Subcommand;

use super::{Context, Exit, Failure, output::format_table, server::with_server, words::time};
use crate::{
    domain::{ids::short, rate_limits::UsedRateLimit},
    operations::ListRateLimits,
};

/// Printed below an empty list.
const NO_LIMITS: &str = "no rate limit was used within the last hour; `rate_limits.rules` in the configuration sets some";

#[derive(Debug, Subcommand)]
pub(super) enum RateLimitCommand {
    /// Lists the limits that workers have used in the last hour, and how many tasks wait for them.
    Ls,
}

pub(super) async fn run(command: &RateLimitCommand, context: &Context) -> Result<Exit, Failure> {
    let RateLimitCommand::Ls = command;
    with_server(context, async |server| {
        let limits = server.call(ListRateLimits {}).await?.items;
        context.output.print_rows(&limits, false, NO_LIMITS, || format_limits(&limits));
        Ok(Exit::Ok)
    })
    .await
}

fn format_limits(limits: &[UsedRateLimit]) -> String {
    let row = |limit: &UsedRateLimit| {
        [
            limit.subject.replace('`', ""),
            limit.campaign_id.map_or_else(|| "-".to_owned(), short),
            limit.amount_words(),
            format!("{:.0}", limit.available),
            limit.waiting_tasks.to_string(),
            limit.waiting_since.map_or_else(|| "-".to_owned(), time),
        ]
    };
    let head = ["CALLS OF", "CAMPAIGN", "LIMIT", "LEFT", "WAITING", "SINCE (UTC)"];
    format_table(&head, limits.iter().map(row))
}
