//! `dalsegno cost --calls`: the calls behind a report.

use clap::{Args, ValueEnum};

use super::CostFlags;
use crate::{
    cli::{
        Context, Exit, Failure,
        output::{Table, short_id, time_cell},
        server::Server,
        session::serialised_name,
        turn::list::{format_cost, format_count},
    },
    domain::{
        costs::{CallOrder, CostCall},
        usage::Purpose,
    },
    operations::{ListCalls, MAX_LIMIT},
};

#[derive(Debug, Args)]
pub(in crate::cli) struct CallFlags {
    /// Lists single calls instead of sums, the newest first.
    #[arg(long, conflicts_with_all = ["by", "csv"])]
    pub(super) calls: bool,
    /// Only calls of this agent.
    #[arg(long, requires = "calls")]
    agent: Option<String>,
    /// Only calls of this model.
    #[arg(long, requires = "calls")]
    model: Option<String>,
    /// Only calls of this provider.
    #[arg(long, requires = "calls")]
    provider: Option<String>,
    /// Only calls for this purpose.
    #[arg(long, requires = "calls", value_enum)]
    purpose: Option<PurposeName>,
    /// Only calls of campaigns for this user; an empty text for campaigns without one.
    #[arg(long, requires = "calls")]
    user: Option<String>,
    /// Leaves out reruns, which have a budget of their own.
    #[arg(long, requires = "calls", conflicts_with = "purpose")]
    without_reruns: bool,
    /// Lists the most expensive calls first, up to 200.
    #[arg(long, requires = "calls")]
    costliest: bool,
    /// Maximum number of calls, up to 1000.
    #[arg(long, requires = "calls", default_value_t = 50, value_parser = clap::value_parser!(i64).range(1..=1000))]
    limit: i64,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum PurposeName {
    Turn,
    Summary,
    Facts,
    Rerun,
}

impl From<PurposeName> for Purpose {
    fn from(name: PurposeName) -> Self {
        match name {
            PurposeName::Turn => Self::Turn,
            PurposeName::Summary => Self::Summary,
            PurposeName::Facts => Self::Facts,
            PurposeName::Rerun => Self::Rerun,
        }
    }
}

pub(super) async fn list(
    flags: &CostFlags,
    context: &Context,
    server: &Server,
) -> Result<Exit, Failure> {
    let campaign_id = flags.campaign.id_if_given(context, server).await?;
    let CallFlags {
        agent, model, provider, purpose, user, without_reruns, costliest, limit, ..
    } = &flags.calls;
    let page = |cursor: Option<String>, limit| ListCalls {
        since: flags.since,
        until: flags.until,
        campaign_id,
        agent: agent.clone(),
        model: model.clone(),
        provider: provider.clone(),
        purpose: purpose.map(Purpose::from),
        user: user.clone(),
        without_reruns: *without_reruns,
        order: if *costliest { CallOrder::Costliest } else { CallOrder::Newest },
        cursor: cursor.and_then(|cursor| cursor.parse().ok()),
        limit: Some(limit),
    };
    let calls = match costliest {
        true => server.call(page(None, (*limit).min(MAX_LIMIT))).await?.items,
        false => server.items(*limit, page).await?,
    };
    context.output.print_data(&calls, || format_calls(&calls));
    Ok(Exit::Ok)
}

fn format_calls(calls: &[CostCall]) -> String {
    let dash = || "-".to_owned();
    let row = |CostCall { agent, task_id, session_id, turn, call, .. }: &CostCall| {
        let sent = [call.input_tokens, call.cache_read_tokens, call.cache_creation_tokens];
        [
            time_cell(call.called_at),
            agent.clone(),
            serialised_name(call.purpose),
            task_id.map_or_else(dash, short_id),
            session_id.map_or_else(dash, short_id),
            turn.map_or_else(dash, |turn| turn.to_string()),
            format_count(sent.iter().flatten().sum()),
            call.output_tokens.map_or_else(dash, format_count),
            match call.is_unpriced() {
                true => "no price".to_owned(),
                false => format_cost(call.cost_micros),
            },
        ]
    };
    let head = ["CALLED (UTC)", "AGENT", "FOR", "TASK", "SESSION", "TURN", "IN", "OUT", "COST"];
    Table::new(&head).leaves_out(&["SESSION", "TURN"]).format(calls.iter().map(row))
}
