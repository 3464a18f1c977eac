//! `dalsegno lane`: serial lanes and their members.

use clap::{Args, Subcommand};
use serde_json::json;

use super::{Context, Exit, Failure, database::with_database, output::table};
use crate::{
    clock::{Clock as _, SystemClock},
    db::{Database, Use},
    domain::{
        audit::{self, Action},
        transaction::{begin, commit},
    },
    queue::admin::{self, LaneView},
};

#[derive(Debug, Subcommand)]
pub(super) enum LaneCommand {
    /// Lists the lanes that have jobs.
    Ls(List),
    /// Shows a lane with its first members, in order.
    Show(Name),
    /// Stops a lane after its running job.
    Hold(Hold),
    /// Lets a held lane go on; a failed head that held it becomes a dead letter.
    Release(Name),
}

#[derive(Debug, Args)]
pub(super) struct List {
    /// Only lanes that are held.
    #[arg(long)]
    held: bool,
    /// Only names after this one: the last name of the page before.
    #[arg(long, default_value = "")]
    after: String,
    #[arg(long, default_value_t = 50)]
    limit: i64,
}

#[derive(Debug, Args)]
pub(super) struct Name {
    lane: String,
}

#[derive(Debug, Args)]
pub(super) struct Hold {
    lane: String,
    /// Why, for whoever finds it held.
    #[arg(long, default_value = "by an operator")]
    reason: String,
}

pub(super) async fn run(command: &LaneCommand, context: &Context) -> Result<Exit, Failure> {
    with_database(context, Use::Look, async |database| on(command, context, database).await).await
}

async fn on(
    command: &LaneCommand,
    context: &Context,
    database: &Database,
) -> Result<Exit, Failure> {
    let (pool, output) = (&database.pool, context.output);
    match command {
        LaneCommand::Ls(List { held, after, limit }) => {
            let lanes = admin::list_lanes(pool, *held, after, *limit).await?;
            output.data(&lanes, || lanes.join("\n"));
        }
        LaneCommand::Show(Name { lane }) => {
            let mut connection = pool.acquire().await.map_err(|e| Failure::failed(e.into()))?;
            let lane = admin::find_lane(&mut connection, lane).await?;
            output.data(&lane, || lines(&lane));
        }
        LaneCommand::Hold(Hold { lane, reason }) => {
            let (mut tx, who) = (begin(pool).await?, context.who());
            admin::hold_lane(&mut *tx, lane, reason).await?;
            let (action, data) = (Action::LaneHold, json!({ "reason": reason }));
            audit::write(&mut *tx, &who, action, lane, data, SystemClock.now()).await?;
            commit(tx).await?;
            output.data(&json!({ "held": lane }), || format!("lane `{lane}` is held"));
        }
        LaneCommand::Release(Name { lane }) => {
            let (mut tx, who) = (begin(pool).await?, context.who());
            admin::release_lane(&mut *tx, lane).await?;
            let action = Action::LaneRelease;
            audit::write(&mut *tx, &who, action, lane, json!({}), SystemClock.now()).await?;
            commit(tx).await?;
            output.data(&json!({ "released": lane }), || format!("lane `{lane}` goes on"));
        }
    }
    Ok(Exit::Ok)
}

fn lines(lane: &LaneView) -> String {
    let state = match &lane.held {
        Some(reason) => format!("held: {reason}"),
        None => "runs".to_owned(),
    };
    let members = lane.members.iter().map(|member| {
        let place = member.lane_seq.map_or("later".to_owned(), |seq| seq.to_string());
        [place, member.id.to_string(), member.state.clone(), member.kind.clone()]
    });
    let members = table(&["PLACE", "ID", "STATE", "KIND"], members);
    format!("{}  {state}, on failure: {}\n\n{members}", lane.lane, lane.on_failure)
}
