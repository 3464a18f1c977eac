//! Subcommands that watch, pause, interrupt and reset agents while they work.

use clap::{ArgGroup, Args, Subcommand};
use uuid::Uuid;

use crate::{
    cli::{
        Context, Exit, Failure,
        args::InCampaign,
        campaign_names::{CAMPAIGN, CampaignNames},
        output::{format_table, text_cell, time_cell},
        server::Server,
        session::format_interruption,
        words::time,
    },
    domain::{
        agent_pauses::{Pause as Paused, ResumeOutcome},
        agents::Catalogue,
        audit::describe_label,
        statuses::{AgentOverview, AgentWait, State},
        tasks::InterruptMode,
    },
    operations::{
        InterruptAgent, ListAgentPauses, ListAgentStatuses, PauseAgent, PauseAgentEverywhere,
        ResetAgent, ResetAgents, ResumeAgent, ResumeAgentEverywhere,
    },
};

/// Printed below an empty list.
const NO_PAUSES: &str = "no agent is paused: `dalsegno agent pause AGENT` pauses one";

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum Control {
    /// Shows the activity and pauses of the agents of a campaign; without a campaign, all pauses.
    Status(Status),
    /// Starts a new session with the next task of each conversation; running turns go on.
    Reset(Reset),
    /// Stops the running turns of an agent in a campaign and cancels their tasks; other tasks go on.
    Interrupt(Interrupt),
    /// Pauses an agent: no turn starts until it is resumed. Running turns go on, new tasks wait.
    Pause(Pause),
    /// Resumes a paused agent.
    Resume(AgentArgs),
}

#[derive(Debug, Args)]
pub(in crate::cli) struct Status {
    #[command(flatten)]
    campaign: InCampaign,
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("whom").required(true).args(["agent", "all"])))]
pub(in crate::cli) struct Reset {
    #[command(flatten)]
    campaign: InCampaign,
    /// The agent; all its instances are reset.
    agent: Option<String>,
    /// All agents of the campaign.
    #[arg(long)]
    all: bool,
    /// The new sessions start without a summary.
    #[arg(long)]
    fresh: bool,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct Interrupt {
    /// The agent; all its instances are interrupted.
    agent: String,
    #[command(flatten)]
    campaign: InCampaign,
    /// Reason, shown with the interrupted task.
    #[arg(long, default_value = "by an operator")]
    reason: String,
    /// Stops at the next safe point instead of immediately.
    #[arg(long)]
    soft: bool,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct Pause {
    #[command(flatten)]
    whom: AgentArgs,
    /// Reason, shown with the paused agent.
    #[arg(long, default_value = "by an operator")]
    reason: String,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct AgentArgs {
    /// The agent, with all its instances.
    agent: String,
    #[command(flatten)]
    campaign: InCampaign,
    /// In all campaigns, including future ones.
    #[arg(long, conflicts_with = "campaign")]
    everywhere: bool,
}

impl AgentArgs {
    /// Resolves the campaign. `None`: the pause holds in all campaigns.
    async fn campaign(&self, context: &Context, server: &Server) -> Result<Option<Uuid>, Failure> {
        match self.everywhere {
            true => Ok(None),
            false => self.campaign.id(context, server).await.map(Some),
        }
    }
}

pub(super) async fn run(
    control: &Control,
    context: &Context,
    server: &Server,
) -> Result<Exit, Failure> {
    match control {
        Control::Status(status) => self::status(status, context, server).await?,
        Control::Reset(reset) => self::reset(reset, context, server).await?,
        Control::Interrupt(interrupt) => self::interrupt(interrupt, context, server).await?,
        Control::Pause(pause) => self::pause(pause, context, server).await?,
        Control::Resume(whom) => resume(whom, context, server).await?,
    }
    Ok(Exit::Ok)
}

async fn status(status: &Status, context: &Context, server: &Server) -> Result<(), Failure> {
    match status.campaign.id_if_given(context, server).await? {
        None => {
            let pauses = server.call(ListAgentPauses {}).await?.items;
            let names = CampaignNames::of_list(None, &pauses, context.output, server).await;
            let names = names.unwrap_or_default();
            let table = || format_pauses(&pauses, &names);
            context.output.print_rows(&pauses, false, NO_PAUSES, table);
        }
        Some(id) => {
            let standings = server.call(ListAgentStatuses { id }).await?.items;
            context
                .output
                .print_data(&standings, || format_statuses(&standings, &context.catalogue()));
        }
    }
    Ok(())
}

async fn reset(reset: &Reset, context: &Context, server: &Server) -> Result<(), Failure> {
    let (id, fresh) = (reset.campaign.id(context, server).await?, reset.fresh);
    let done = match reset.agent.clone() {
        Some(name) => server.call(ResetAgent { id, name, fresh }).await?,
        None => server.call(ResetAgents { id, fresh }).await?,
    };
    context.output.print_data(&done, || match done.session_ids.len() {
        0 => "there is nothing to reset: no session is open".to_owned(),
        1 => "the next task of 1 conversation opens a new session".to_owned(),
        n => format!("the next task of each of {n} conversations opens a new session"),
    });
    Ok(())
}

async fn interrupt(
    interrupt: &Interrupt,
    context: &Context,
    server: &Server,
) -> Result<(), Failure> {
    let Interrupt { agent, campaign, reason, soft } = interrupt;
    let (name, reason) = (agent.clone(), reason.clone());
    let how = if *soft { InterruptMode::Soft } else { InterruptMode::Hard };
    let id = campaign.id(context, server).await?;
    let stopped = server.call(InterruptAgent { id, name, reason, how }).await?.items;
    context.output.print_data(&stopped, || match stopped.is_empty() {
        true => format!("agent {agent} has no running turn in this campaign"),
        false => stopped.iter().map(format_interruption).collect::<Vec<_>>().join("\n"),
    });
    Ok(())
}

async fn pause(pause: &Pause, context: &Context, server: &Server) -> Result<(), Failure> {
    let Pause { whom, reason } = pause;
    let (name, reason) = (whom.agent.clone(), reason.clone());
    let paused = match whom.campaign(context, server).await? {
        Some(id) => server.call(PauseAgent { id, name, reason }).await?,
        None => server.call(PauseAgentEverywhere { name, reason }).await?,
    };
    context.output.print_data(&paused, || match paused.changed {
        true => {
            format!("agent {} starts no more turns; running turns go on to their end", whom.agent)
        }
        false => {
            let pause = &paused.pause;
            format!(
                "nothing was done: {}; to resume it: {}",
                pause.describe(),
                pause.resume_command()
            )
        }
    });
    Ok(())
}

async fn resume(whom: &AgentArgs, context: &Context, server: &Server) -> Result<(), Failure> {
    let name = whom.agent.clone();
    let resumed = match whom.campaign(context, server).await? {
        Some(id) => server.call(ResumeAgent { id, name }).await?,
        None => server.call(ResumeAgentEverywhere { name }).await?,
    };
    context.output.print_data(&resumed, || format_resumed(&whom.agent, &resumed));
    Ok(())
}

fn format_resumed(agent: &str, resumed: &ResumeOutcome) -> String {
    let waiting = match resumed.released {
        1 => "1 of its tasks was waiting".to_owned(),
        n => format!("{n} of its tasks were waiting"),
    };
    let mut text = format!("agent {agent} is resumed; {waiting}");
    if let Some(reason) = &resumed.paused_everywhere_because {
        text.push_str(&format!("; it is still paused in all campaigns: {reason}"));
    }
    for id in &resumed.paused_in {
        text.push_str(&format!("; it is still paused in campaign {id}"));
    }
    text
}

/// Returns the state in words. A running turn of a paused agent goes on.
fn state_word(AgentOverview { status, pause, wait, .. }: &AgentOverview) -> String {
    match (pause, status.state) {
        (Some(_), State::Working) => "paused, working".to_owned(),
        (Some(_), _) => "paused".to_owned(),
        (None, State::Limited) => {
            wait.as_ref().map_or_else(|| "at a limit".to_owned(), AgentWait::state_word)
        }
        (None, state) => state.as_str().to_owned(),
    }
}

/// Returns the reasons of a pause, or of a limit.
fn reason(AgentOverview { status, pause, also_paused, wait }: &AgentOverview) -> String {
    match (pause, also_paused) {
        (None, _) if status.state == State::Limited => {
            let until = status.until.map(|at| format!(", until {} UTC", time(at)));
            let because = match wait {
                Some(wait) => wait.because(),
                // A server of an older version.
                None => {
                    "its credential is paused, or it waits for a limit or its provider".to_owned()
                }
            };
            format!("{}{}", text_cell(&because), until.unwrap_or_default())
        }
        (None, _) => "-".to_owned(),
        (Some(pause), None) => text_cell(&pause.reason),
        (Some(pause), Some(other)) => {
            format!("{}; in all campaigns: {}", text_cell(&pause.reason), text_cell(&other.reason))
        }
    }
}

fn format_statuses(standings: &[AgentOverview], catalogue: &Catalogue) -> String {
    let row = |standing: &AgentOverview| {
        let status = &standing.status;
        [
            status.name(catalogue),
            state_word(standing),
            status.tool.clone().unwrap_or_else(|| "-".to_owned()),
            status.waiting.to_string(),
            status.later.to_string(),
            reason(standing),
        ]
    };
    let head = ["AGENT", "STATE", "TOOL", "WAITING", "LATER", "BECAUSE"];
    format_table(&head, standings.iter().map(row))
}

fn format_pauses(pauses: &[Paused], campaigns: &CampaignNames) -> String {
    let row = |pause: &Paused| {
        [
            pause.agent.clone(),
            pause.campaign_id.map_or_else(|| "all".to_owned(), |id| campaigns.cell(id)),
            time_cell(pause.paused_at),
            describe_label(&pause.paused_by),
            text_cell(&pause.reason),
        ]
    };
    format_table(&["AGENT", CAMPAIGN, "SINCE (UTC)", "BY", "BECAUSE"], pauses.iter().map(row))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pause_and_a_limit_are_states_with_a_reason() {
        let shown = |state: &str, pause: Option<&str>| {
            let pause = pause.map(|reason| {
                json!({ "id": Uuid::nil(), "agent": "writer", "reason": reason, "paused_by": "ann",
                        "paused_at": "2026-11-20T12:00:00Z" })
            });
            let overview = json!({ "agent": "writer", "instance": "main", "state": state, "waiting": 0,
                                   "until": "2026-11-20T13:00:00Z", "pause": pause });
            let overview: AgentOverview = serde_json::from_value(overview).unwrap();
            (state_word(&overview), reason(&overview))
        };
        let of = |state: &str, reason: &str| (state.to_owned(), reason.to_owned());
        assert_eq!(shown("error", Some("client call")), of("paused", "client call"));
        assert_eq!(shown("working", Some("client call")).0, "paused, working");
        assert_eq!(shown("error", None), of("error", "-"));
        let wait = json!({ "cause": "provider", "subject": "deadbox", "model": "m1" });
        let overview = json!({ "agent": "writer", "instance": "main", "state": "limited", "waiting": 1, "wait": wait,
                               "until": "2026-11-20T13:00:00Z" });
        let overview: AgentOverview = serde_json::from_value(overview).unwrap();
        assert_eq!(state_word(&overview), "waits for deadbox");
        let because = reason(&overview);
        assert!(because.starts_with("its provider deadbox (m1) refuses calls"), "{because}");
        assert!(because.ends_with(", until 2026-11-20 13:00:00 UTC"), "{because}");
        let (state, reason) = shown("limited", None);
        assert_eq!(state, "at a limit");
        assert!(reason.ends_with("its provider, until 2026-11-20 13:00:00 UTC"), "{reason}");
    }
}
