//! `dalsegno feed`: prints events as they happen.

use chrono::TimeDelta;
use clap::Args;
use tokio::time::timeout;

use super::{
    Context, Exit, Failure,
    agent_filter::note_unknown_agent,
    args::InCampaign,
    follow::data_of,
    output::short_id,
    server::{Server, with_server},
    task::format_event,
    words::parse_period,
};
use crate::{
    domain::{feed::Event, ids::PartialId},
    operations::{BEGIN, FollowFeed, Noun},
};

#[derive(Debug, Args)]
pub(super) struct Feed {
    #[command(flatten)]
    campaign: InCampaign,
    /// Only events about this agent; curator_2 is instance 2 of curator.
    #[arg(long)]
    agent: Option<String>,
    /// Only events of this session: its id, or a unique beginning or end of it.
    #[arg(long, value_name = "ID")]
    session: Option<PartialId>,
    /// Only events of this kind, for example turn.done; may be repeated.
    #[arg(long)]
    kind: Vec<String>,
    /// Starts after the event with this id; 0 starts with the oldest event. Default: now.
    #[arg(long, value_name = "ID", value_parser = clap::value_parser!(i64).range(0..))]
    after: Option<i64>,
    /// Ends after this many events.
    #[arg(long)]
    limit: Option<u64>,
    /// Ends after this time: 30s, 15m, 24h.
    #[arg(long, value_name = "DURATION", value_parser = parse_period)]
    timeout: Option<TimeDelta>,
}

pub(super) async fn run(feed: &Feed, context: &Context) -> Result<Exit, Failure> {
    with_server(context, async |server| {
        let followed = follow(feed, context, server);
        match feed.timeout.and_then(|limit| limit.to_std().ok()) {
            Some(limit) => timeout(limit, followed).await.unwrap_or(Ok(Exit::Ok)),
            None => followed.await,
        }
    })
    .await
}

async fn follow(feed: &Feed, context: &Context, server: &Server) -> Result<Exit, Failure> {
    let campaign_id = feed.campaign.id_if_given(context, server).await?;
    let kinds = (!feed.kind.is_empty()).then(|| feed.kind.join(","));
    let session_id = match &feed.session {
        Some(given) => Some(server.id(Noun::Session, given).await?),
        None => None,
    };
    note_unknown_agent(feed.agent.as_deref(), context, server).await;
    let agent = feed.agent.clone();
    let stream = FollowFeed { after: feed.after, campaign_id, kinds, session_id, agent };
    let mut follower = server.follow(stream).await?;
    let mut n_left = feed.limit.unwrap_or(u64::MAX);
    while n_left > 0 {
        let Some(event) = follower.next().await? else { break };
        if event.name == BEGIN {
            continue;
        }
        let event: Event = data_of(&event)?;
        let text = || format!("{}  {}{}", event.id, format_event(&event), ids(&event));
        context.output.print_item(&event, text);
        n_left -= 1;
    }
    Ok(Exit::Ok)
}

/// The campaign and the task of an event, as the lists show ids.
fn ids(event: &Event) -> String {
    let ids = [("campaign", event.campaign_id), ("task", event.task_id)];
    let ids = ids.into_iter().filter_map(|(name, id)| Some((name, short_id(id?))));
    ids.map(|(name, id)| format!("  {name}={id}")).collect()
}
