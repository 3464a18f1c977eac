//! `dalsegno campaign`: what the work is about, whether it goes on, what it may cost.

mod show;

use std::path::PathBuf;

use anyhow::anyhow;
use clap::{Args, Subcommand};

use super::{
    Context, Exit, Failure,
    args::{CampaignId, LabelFilter, LabelFlags, Paging},
    output::Output,
    server::{Server, with_server},
    words::{BudgetFlags, given},
};
use crate::{
    domain::{
        amount,
        campaigns::{Budget, Campaign},
        erasures::Erasure,
    },
    operations::{
        ChangeBudget, CloseCampaign, CreateCampaign, EraseCampaign, ListCampaigns, Noun,
        PauseCampaign, ResumeCampaign, ShowCampaign, ShowErasure,
    },
};

#[derive(Debug, Subcommand)]
pub(super) enum CampaignCommand {
    /// Creates a campaign.
    Create(Create),
    /// Lists campaigns, the newest first.
    Ls(List),
    /// Shows a campaign with its budget, its open sessions and what it has cost.
    Show(CampaignId),
    /// Starts none of its turns until it is resumed. What runs goes on; tasks are taken in.
    Pause(Pause),
    /// Ends a pause.
    Resume(CampaignId),
    /// Takes no more tasks. Those that wait still run.
    Close(CampaignId),
    /// Changes its limits, or shows how they stand.
    Budget(SetBudget),
    /// Erases for good what was said in it: conversations, prompts, results, brief. What it has cost stays. Without --yes it
    /// does nothing, but for showing the receipt of one that was asked for before.
    Erase(Erase),
}

#[derive(Debug, Args)]
pub(super) struct Create {
    /// Its name.
    name: String,
    /// What the work is about; every call tells it to the model. `-` reads it from the standard input.
    #[arg(long, conflicts_with = "brief_file")]
    brief: Option<String>,
    /// File with the brief.
    #[arg(long, value_name = "FILE")]
    brief_file: Option<PathBuf>,
    /// Tone, audience and facts of the client, as for the brief.
    #[arg(long, conflicts_with = "client_context_file")]
    client_context: Option<String>,
    /// File with the context of the client.
    #[arg(long, value_name = "FILE")]
    client_context_file: Option<PathBuf>,
    #[command(flatten)]
    budget: BudgetFlags,
    #[command(flatten)]
    labels: LabelFlags,
}

#[derive(Debug, Args)]
pub(super) struct List {
    #[command(flatten)]
    labels: LabelFilter,
    #[command(flatten)]
    paging: Paging,
}

#[derive(Debug, Args)]
pub(super) struct Pause {
    #[command(flatten)]
    id: CampaignId,
    /// Why, for whoever finds it paused.
    #[arg(long, default_value = "by an operator")]
    reason: String,
}

#[derive(Debug, Args)]
pub(super) struct Erase {
    #[command(flatten)]
    id: CampaignId,
    /// Why, for the receipt. Do not name in it what is to be forgotten.
    #[arg(long, default_value = "by request")]
    reason: String,
    /// Does it. It cannot be undone.
    #[arg(long)]
    yes: bool,
}

#[derive(Debug, Args)]
pub(super) struct SetBudget {
    #[command(flatten)]
    id: CampaignId,
    /// Money it may cost, in units of the configured currency: 5 or 0.25.
    #[arg(long, conflicts_with = "no_money", value_parser = amount::money)]
    money: Option<i64>,
    /// Takes the limit in money away.
    #[arg(long)]
    no_money: bool,
    /// Tokens it may use.
    #[arg(long, conflicts_with = "no_tokens")]
    tokens: Option<i64>,
    /// Takes the limit in tokens away.
    #[arg(long)]
    no_tokens: bool,
}

pub(super) async fn run(command: &CampaignCommand, context: &Context) -> Result<Exit, Failure> {
    with_server(context, async |server| on(command, context, server).await).await
}

async fn on(
    command: &CampaignCommand,
    context: &Context,
    server: &Server,
) -> Result<Exit, Failure> {
    let output = context.output;
    match command {
        CampaignCommand::Create(create) => {
            let overview = server.call(new(create)?).await?;
            output.data(&overview, || format!("campaign {} is created", overview.campaign.id));
        }
        CampaignCommand::Ls(list) => {
            let (tags, metadata) = (list.labels.tags(), list.labels.metadata());
            let page = |cursor, limit| ListCampaigns {
                tags: tags.clone(),
                metadata: metadata.clone(),
                cursor,
                limit,
            };
            let campaigns = server.list(Noun::Campaign, &list.paging, page).await?;
            output.data(&campaigns, || show::lines(&campaigns));
        }
        CampaignCommand::Show(CampaignId { id }) => {
            let overview = server.call(ShowCampaign { id: server.campaign(id).await? }).await?;
            output.data(&overview, || show::words(&overview, &context.catalogue()));
        }
        CampaignCommand::Budget(budget) => {
            let budget = change_budget(budget, server).await?;
            output.data(&budget, || budget.as_ref().map(show::budget_words).unwrap_or_default());
        }
        CampaignCommand::Pause(Pause { id: CampaignId { id }, reason }) => {
            let (id, reason) = (server.campaign(id).await?, reason.clone());
            changed(&server.call(PauseCampaign { id, reason }).await?, output);
        }
        CampaignCommand::Resume(CampaignId { id }) => {
            let id = server.campaign(id).await?;
            changed(&server.call(ResumeCampaign { id }).await?, output);
        }
        CampaignCommand::Close(CampaignId { id }) => {
            let id = server.campaign(id).await?;
            changed(&server.call(CloseCampaign { id }).await?, output);
        }
        CampaignCommand::Erase(erase) => {
            let receipt = self::erase(erase, server).await?;
            output.data(&receipt, || show::receipt(&receipt));
        }
    }
    Ok(Exit::Ok)
}

fn new(create: &Create) -> Result<CreateCampaign, Failure> {
    let (text, file) = (create.client_context.as_deref(), create.client_context_file.as_ref());
    let client_context = given(text, file)?;
    let brief = given(create.brief.as_deref(), create.brief_file.as_ref())?.unwrap_or_default();
    let (name, budget) = (create.name.clone(), create.budget.limit());
    let (tags, metadata) = (create.labels.tags.clone(), create.labels.metadata());
    Ok(CreateCampaign { name, brief, client_context, budget, tags, metadata })
}

/// `None`: the transaction that creates the campaign is still open.
async fn change_budget(set: &SetBudget, server: &Server) -> Result<Option<Budget>, Failure> {
    let id = server.campaign(&set.id.id).await?;
    let change = |value: Option<i64>, none: bool| value.map(Some).or(none.then_some(None));
    let micros = change(set.money, set.no_money);
    let tokens = change(set.tokens, set.no_tokens);
    match (micros, tokens) {
        (None, None) => Ok(server.call(ShowCampaign { id }).await?.budget),
        _ => Ok(Some(server.call(ChangeBudget { id, micros, tokens }).await?)),
    }
}

async fn erase(erase: &Erase, server: &Server) -> Result<Erasure, Failure> {
    let id = server.campaign(&erase.id.id).await?;
    if erase.yes {
        return server.call(EraseCampaign { id, reason: erase.reason.clone() }).await;
    }
    match server.call(ShowErasure { id }).await {
        Err(failure) if failure.exit == Exit::NotFound => {
            server.call(ShowCampaign { id }).await?;
            let words = format!(
                "campaign {id} with all that was said in it would be erased for good; nothing was done: say --yes"
            );
            Err(Failure::new(Exit::Usage, anyhow!(words)))
        }
        receipt => receipt,
    }
}

fn changed(campaign: &Campaign, output: Output) {
    output.data(campaign, || format!("campaign {} is {}", campaign.id, campaign.status.as_str()));
}
