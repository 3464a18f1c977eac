//! `dalsegno feed`: everything that happens, as it happens.

use std::time::Duration;

use clap::Args;
use tokio::time::timeout;

use super::{
    Context, Exit, Failure,
    follow::data_of,
    output::Output,
    server::{Server, with_server},
    task::event_line,
};
use crate::{
    domain::{feed::Event, ids::GivenCampaign},
    operations::{BEGIN, FollowFeed},
};

#[derive(Debug, Args)]
pub(super) struct Feed {
    /// Only events of this campaign: its name, its id, or the beginning or end of that.
    #[arg(long, value_name = "CAMPAIGN")]
    campaign: Option<GivenCampaign>,
    /// Only events of this kind, such as turn.done; may be repeated.
    #[arg(long)]
    kind: Vec<String>,
    /// Begins behind the event with this id; 0 is the first that is still there. Else now.
    #[arg(long, value_name = "ID", value_parser = clap::value_parser!(i64).range(0..))]
    after: Option<i64>,
    /// Ends after so many events.
    #[arg(long)]
    limit: Option<u64>,
    /// Ends after this time.
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<u64>,
}

pub(super) async fn run(feed: &Feed, context: &Context) -> Result<Exit, Failure> {
    with_server(context, async |server| {
        let followed = follow(feed, context.output, server);
        match feed.timeout.map(Duration::from_secs) {
            Some(limit) => timeout(limit, followed).await.unwrap_or(Ok(Exit::Ok)),
            None => followed.await,
        }
    })
    .await
}

async fn follow(feed: &Feed, output: Output, server: &Server) -> Result<Exit, Failure> {
    let campaign_id = server.campaign_if_given(feed.campaign.as_ref()).await?;
    let kinds = (!feed.kind.is_empty()).then(|| feed.kind.join(","));
    let stream = FollowFeed { after: feed.after, campaign_id, kinds };
    let mut follower = server.follow(stream).await?;
    let mut n_left = feed.limit.unwrap_or(u64::MAX);
    while n_left > 0 {
        let Some(event) = follower.next().await? else { break };
        if event.name == BEGIN {
            continue;
        }
        let event: Event = data_of(&event)?;
        output.text(&match output.is_json() {
            true => serde_json::to_string(&event).unwrap_or_default(),
            false => format!("{}  {}", event.id, event_line(&event)),
        });
        n_left -= 1;
    }
    Ok(Exit::Ok)
}
