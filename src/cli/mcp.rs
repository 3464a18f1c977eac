//! `dalsegno mcp`: serves the tools over standard input and output, and lists their access.

use std::sync::Arc;

use clap::{Args, Subcommand};

use super::{Context, Exit, Failure, args::InCampaign, database::with_database};
use crate::{
    clock::SystemClock,
    db::{Database, Use},
    domain::{agents::Library, campaigns, ids::GivenCampaign},
    mcp::{self, Session},
    tools::{self, Caller, Operator, Settings, Tools},
};

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct Mcp {
    #[command(subcommand)]
    command: Option<McpCommand>,
    #[command(flatten)]
    campaign: InCampaign,
}

#[derive(Debug, Subcommand)]
enum McpCommand {
    /// Lists the tools and which agents and operators may use them.
    Tools,
}

pub(super) async fn run(mcp: &Mcp, context: &Context) -> Result<Exit, Failure> {
    match &mcp.command {
        Some(McpCommand::Tools) => {
            context.output.print_data(&tools::table(), tools::markdown);
            Ok(Exit::Ok)
        }
        None => {
            let campaign = mcp.campaign.require_campaign(context)?;
            let serve = async |database: &Database| serve(&campaign, context, database).await;
            with_database(context, Use::Look, serve).await
        }
    }
}

/// Serves the client until it closes the standard input.
async fn serve(
    campaign: &GivenCampaign,
    context: &Context,
    database: &Database,
) -> Result<Exit, Failure> {
    let config = context.load()?;
    let campaign_id = campaigns::find(&database.pool, campaign, None).await?;
    campaigns::get(&database.pool, campaign_id).await?;
    let library = Library::open(&config.agents)?;
    let settings = Settings::new(&config, Arc::new(SystemClock), Arc::new(library));
    let session = Session {
        tools: Tools { pool: database.pool.clone(), settings: Arc::new(settings) },
        caller: Caller::Operator(Operator { campaign_id, actor: context.actor(), is_bound: false }),
    };
    mcp::serve_stdio(session).await.map_err(|error| Failure::failed(error.into()))?;
    Ok(Exit::Ok)
}
