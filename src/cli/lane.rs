//! `dalsegno lane`: serial lanes and their members.

use clap::{Args, Subcommand};

use super::{
    Context, Exit, Failure,
    output::format_table,
    server::{Server, with_server},
};
use crate::{
    operations::{HoldLane, LaneName, ListLanes, ReleaseLane, ShowLane},
    queue::admin::LaneView,
};

#[derive(Debug, Subcommand)]
pub(super) enum LaneCommand {
    /// Lists the lanes that have jobs, the oldest lane first.
    Ls(List),
    /// Shows a lane with its first jobs, in order.
    Show(Name),
    /// Stops a lane after its running job.
    Hold(Hold),
    /// Releases a held lane; a failed head that held it becomes a dead letter.
    Release(Name),
}

#[derive(Debug, Args)]
pub(super) struct List {
    /// Only lanes that are held.
    #[arg(long)]
    held: bool,
    /// Continues after this lane: the last name of the previous page.
    #[arg(long)]
    after: Option<String>,
    /// Maximum number of lanes, up to 1000.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(i64).range(1..=1000))]
    limit: i64,
}

#[derive(Debug, Args)]
pub(super) struct Name {
    /// Name of the lane: `dalsegno lane ls` lists it.
    lane: String,
}

#[derive(Debug, Args)]
pub(super) struct Hold {
    /// Name of the lane: `dalsegno lane ls` lists it.
    lane: String,
    /// Reason, shown with the lane while it is held.
    #[arg(long, default_value = "by an operator")]
    reason: String,
}

pub(super) async fn run(command: &LaneCommand, context: &Context) -> Result<Exit, Failure> {
    with_server(context, async |server| run_on_server(command, context, server).await).await
}

async fn run_on_server(
    command: &LaneCommand,
    context: &Context,
    server: &Server,
) -> Result<Exit, Failure> {
    let output = context.output;
    match command {
        LaneCommand::Ls(List { held, after, limit }) => {
            let page = |cursor: Option<String>, limit| {
                let cursor = cursor.or_else(|| after.clone());
                ListLanes { held: *held, cursor, limit: Some(limit) }
            };
            let lanes = server.items(*limit, page).await?;
            output.print_list(&lanes, "lanes", |LaneName(name)| format!("{name}\n"));
        }
        LaneCommand::Show(Name { lane }) => {
            let lane = server.call(ShowLane { name: lane.clone() }).await?;
            output.print_data(&lane, || format_lane(&lane));
        }
        LaneCommand::Hold(Hold { lane, reason }) => {
            let hold = HoldLane { name: lane.clone(), reason: reason.clone() };
            output.print_data(&server.call(hold).await?, || format!("lane `{lane}` is held"));
        }
        LaneCommand::Release(Name { lane }) => {
            let release = ReleaseLane { name: lane.clone() };
            output
                .print_data(&server.call(release).await?, || format!("lane `{lane}` is released"));
        }
    }
    Ok(Exit::Ok)
}

fn format_lane(lane: &LaneView) -> String {
    let state = match &lane.held {
        Some(reason) => format!("held: {reason}"),
        None => "runs".to_owned(),
    };
    let members = lane.members.iter().map(|member| {
        let place = member.lane_seq.map_or("later".to_owned(), |seq| seq.to_string());
        [place, member.id.to_string(), member.state.clone(), member.kind.clone()]
    });
    let members = format_table(&["PLACE", "ID", "STATE", "KIND"], members);
    let more = match lane.is_cut {
        true => format!("these are the first {} jobs; the lane has more\n", lane.members.len()),
        false => String::new(),
    };
    format!("{}  {state}, on failure: {}\n\n{members}{more}", lane.lane, lane.on_failure)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_lane_with_more_jobs_than_are_listed_says_so() {
        let member = json!({ "id": 7, "kind": "run_turn", "state": "ready", "lane_seq": 1, "run_at": "2026-11-20T12:00:00Z" });
        let lane = |is_cut: bool| -> LaneView {
            let lane = json!({ "lane": "nightly", "held": null, "held_at": null, "on_failure": "continue", "members": [member], "is_cut": is_cut });
            serde_json::from_value(lane).unwrap()
        };
        let more = "these are the first 1 jobs; the lane has more\n";
        assert!(format_lane(&lane(true)).ends_with(more));
        assert!(!format_lane(&lane(false)).contains("more"));
    }
}
