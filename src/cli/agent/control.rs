//! What is done to agents while they work: looking at them, pausing them, resetting their conversations. On the database.

use clap::{ArgGroup, Args};
use serde_json::json;
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use crate::{
    cli::{
        Context, Exit, Failure,
        database::with_database,
        output::{Output, table},
        session::interrupted_words,
        words::{first_line, time},
    },
    clock::{Clock as _, SystemClock},
    db::{Database, Use},
    domain::{
        agent_pauses::{self, Pause as Paused, Place},
        agents::Catalogue,
        audit::{self, Action},
        campaigns, conversations,
        ids::GivenCampaign,
        statuses::{self, Standing},
        tasks::{self, How},
        transaction::{begin, commit},
    },
};

#[derive(Debug, Args)]
pub(in crate::cli) struct Status {
    /// The campaign; without one, those that are paused in all campaigns are listed.
    campaign: Option<GivenCampaign>,
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("whom").required(true).args(["agent", "all"])))]
pub(in crate::cli) struct Reset {
    campaign: GivenCampaign,
    /// The agent, with all its instances.
    agent: Option<String>,
    /// All agents of the campaign.
    #[arg(long)]
    all: bool,
    /// Their successors remember nothing.
    #[arg(long)]
    fresh: bool,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct Interrupt {
    /// The agent, with all its instances.
    agent: String,
    #[arg(long, value_name = "ID")]
    campaign: GivenCampaign,
    /// Why, for whoever finds it interrupted.
    #[arg(long, default_value = "by an operator")]
    reason: String,
    /// At the next point where nothing is lost, and not now.
    #[arg(long)]
    soft: bool,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct Pause {
    #[command(flatten)]
    whom: Whom,
    /// Why, for whoever finds it paused.
    #[arg(long, default_value = "by an operator")]
    reason: String,
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("where").required(true).args(["campaign", "everywhere"])))]
pub(in crate::cli) struct Whom {
    /// The agent, with all its instances.
    agent: String,
    #[arg(long, value_name = "ID")]
    campaign: Option<GivenCampaign>,
    /// In all campaigns, also those to come.
    #[arg(long)]
    everywhere: bool,
}

pub(super) enum Command<'a> {
    Status(&'a Status),
    Reset(&'a Reset),
    Interrupt(&'a Interrupt),
    Pause(&'a Pause),
    Resume(&'a Whom),
}

pub(super) async fn run(
    command: Command<'_>,
    catalogue: &Catalogue,
    context: &Context,
) -> Result<Exit, Failure> {
    let work = async |database: &Database| on(command, catalogue, context, &database.pool).await;
    with_database(context, Use::Look, work).await
}

async fn on(
    command: Command<'_>,
    catalogue: &Catalogue,
    context: &Context,
    pool: &PgPool,
) -> Result<Exit, Failure> {
    match command {
        Command::Status(Status { campaign }) => {
            let mut tx = begin(pool).await?;
            status(campaign.as_ref(), catalogue, &mut tx, context.output).await?;
        }
        Command::Reset(reset) => self::reset(reset, catalogue, context, pool).await?,
        Command::Interrupt(interrupt) => {
            self::interrupt(interrupt, catalogue, context, pool).await?;
        }
        Command::Pause(Pause { whom, reason }) => {
            catalogue.check_name(&whom.agent)?;
            let (mut tx, now, who) = (begin(pool).await?, SystemClock.now(), context.who());
            let campaign_id = whom.campaign_id(&mut tx).await?;
            let place = Place { campaign_id, agent: &whom.agent };
            let paused = agent_pauses::pause(&mut tx, place, reason, &who.label(), now).await?;
            if paused.changed {
                let data = json!({ "agent": whom.agent, "reason": reason });
                audit::write(&mut *tx, &who, Action::AgentPause, place.subject(), data, now)
                    .await?;
            }
            commit(tx).await?;
            context.output.data(&paused, || match paused.changed {
                true => format!("{} begins no more turns; what runs ends", whom.agent),
                false => format!("it was paused before: {}", paused.pause.words()),
            });
        }
        Command::Resume(whom) => {
            let (mut tx, now, who) = (begin(pool).await?, SystemClock.now(), context.who());
            let campaign_id = whom.campaign_id(&mut tx).await?;
            let place = Place { campaign_id, agent: &whom.agent };
            let resumed = agent_pauses::resume(&mut tx, place, &who.label(), now).await?;
            let data = json!({ "agent": whom.agent });
            audit::write(&mut *tx, &who, Action::AgentResume, place.subject(), data, now).await?;
            commit(tx).await?;
            context.output.data(&resumed, || {
                format!("{} goes on; {} of its tasks were held", whom.agent, resumed.released)
            });
        }
    }
    Ok(Exit::Ok)
}

async fn interrupt(
    interrupt: &Interrupt,
    catalogue: &Catalogue,
    context: &Context,
    pool: &PgPool,
) -> Result<(), Failure> {
    let Interrupt { agent, campaign, reason, soft } = interrupt;
    catalogue.check_name(agent)?;
    let how = if *soft { How::Soft } else { How::Hard };
    let (mut tx, now, who) = (begin(pool).await?, SystemClock.now(), context.who());
    let campaign_id = campaigns::find(&mut *tx, campaign, None).await?;
    let stopped = tasks::interrupt_agent(&mut tx, (campaign_id, agent), how, reason, now).await?;
    let task_ids: Vec<Uuid> = stopped.iter().map(|one| one.task_id).collect();
    let data = json!({ "agent": agent, "how": how, "reason": reason, "task_ids": task_ids });
    audit::write(&mut *tx, &who, Action::AgentInterrupt, campaign_id, data, now).await?;
    commit(tx).await?;
    context.output.data(&stopped, || match stopped.is_empty() {
        true => format!("no turn of {agent} runs there"),
        false => stopped.iter().map(interrupted_words).collect::<Vec<_>>().join("\n"),
    });
    Ok(())
}

impl Whom {
    async fn campaign_id(&self, conn: &mut PgConnection) -> Result<Option<Uuid>, Failure> {
        Ok(match &self.campaign {
            Some(given) => Some(campaigns::find(conn, given, None).await?),
            None => None,
        })
    }
}

async fn status(
    campaign: Option<&GivenCampaign>,
    catalogue: &Catalogue,
    conn: &mut PgConnection,
    output: Output,
) -> Result<(), Failure> {
    let Some(given) = campaign else {
        let pauses = agent_pauses::list_open(conn, None).await?;
        output.data(&pauses, || pause_lines(&pauses));
        return Ok(());
    };
    let id = campaigns::find(&mut *conn, given, None).await?;
    campaigns::get(&mut *conn, id).await?;
    let standings = statuses::standings(conn, id, catalogue, SystemClock.now()).await?;
    output.data(&standings, || lines(&standings, catalogue));
    Ok(())
}

async fn reset(
    reset: &Reset,
    catalogue: &Catalogue,
    context: &Context,
    pool: &PgPool,
) -> Result<(), Failure> {
    if let Some(agent) = &reset.agent {
        catalogue.check_name(agent)?;
    }
    let id = campaigns::find(pool, &reset.campaign, None).await?;
    let whom = (id, reset.agent.as_deref());
    let now = SystemClock.now();
    let done = conversations::reset_agents(pool, &context.who(), whom, reset.fresh, now).await?;
    context.output.data(&done, || match done.session_ids.len() {
        0 => "no conversation is open: there is nothing to reset".to_owned(),
        n => format!("the next task of each of {n} conversations opens a new session"),
    });
    Ok(())
}

fn lines(standings: &[Standing], catalogue: &Catalogue) -> String {
    let row = |standing: &Standing| {
        let status = &standing.status;
        [
            status.name(catalogue),
            status.state.as_str().to_owned(),
            status.waiting.to_string(),
            standing.pause.as_ref().map_or_else(|| "-".to_owned(), |it| first_line(&it.reason, 60)),
        ]
    };
    table(&["AGENT", "STATE", "WAITING", "PAUSED"], standings.iter().map(row))
}

fn pause_lines(pauses: &[Paused]) -> String {
    let row = |pause: &Paused| {
        [
            pause.agent.clone(),
            time(pause.paused_at),
            pause.paused_by.clone(),
            first_line(&pause.reason, 60),
        ]
    };
    table(&["AGENT", "SINCE", "BY", "BECAUSE"], pauses.iter().map(row))
}
