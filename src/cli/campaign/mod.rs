//! `dalsegno campaign`: creates and edits campaigns, pauses, closes and erases them, sets their budgets, and moves them to another
//! installation.

mod file;
pub(super) mod show;
mod versions;

use anyhow::anyhow;
use chrono::TimeDelta;
use clap::{Args, Subcommand};
use uuid::Uuid;

use super::{
    Context, Exit, Failure,
    args::{CampaignChoice, CampaignId, LabelFilter, LabelFlags, Paging, ParameterFlags},
    output::Output,
    progress::{Progress, WaitFlag, wait_for_end},
    server::{Server, with_server},
    words::{BudgetFlags, LimitFlags, parse_on_limit},
};
use crate::{
    domain::{
        amount::{self, OnLimit},
        campaigns::{Budget, Campaign, Status},
        erasures::Erasure,
    },
    operations::{
        ChangeBudget, CloseCampaign, CreateCampaign, EraseCampaign, ListCampaigns, Noun,
        PauseCampaign, ResumeCampaign, ShowCampaign, ShowErasure,
    },
};

/// Printed below an empty list.
const NO_CAMPAIGNS: &str = "no campaigns: `dalsegno campaign create` creates one";

const ERASED: &str = "an erased campaign has no name: `dalsegno erasure ls` lists the ids, and `dalsegno campaign erase ID` shows the receipt of one";

#[derive(Debug, Subcommand)]
pub(super) enum CampaignCommand {
    /// Creates a campaign.
    Create(Create),
    /// Lists campaigns, the newest first.
    Ls(List),
    /// Shows a campaign with its budget, its open sessions and its costs.
    Show(CampaignChoice),
    /// Changes the brief, the client context or parameters, from the next call of each agent on.
    Edit(versions::Edit),
    /// Lists the versions of brief, client context and parameters, prints one, or compares two.
    Versions(versions::Versions),
    /// Pauses a campaign: no turn starts until it is resumed. Running turns go on, new tasks wait.
    Pause(Pause),
    /// Resumes a paused campaign.
    Resume(CampaignChoice),
    /// Closes a campaign to new tasks. Waiting tasks still run.
    Close(CampaignId),
    /// Changes the budget of a campaign, or shows it.
    Budget(SetBudget),
    /// Erases the conversations, prompts, results and brief of a campaign permanently; costs stay.
    ///
    /// Without --yes it changes nothing, and shows the receipt of an earlier request.
    Erase(Erase),
    /// Writes a campaign with its conversations as JSON Lines, for `campaign import` on another installation.
    ///
    /// The file has all texts of the campaign, and no API keys, credentials and webhooks. Pause the campaign first: it must be idle.
    Export(file::Export),
    /// Adds the campaign of a file that `campaign export` has written. It arrives paused.
    Import(file::ImportFlags),
}

impl CampaignCommand {
    /// Returns true for commands that run as operations.
    pub(super) fn is_remote(&self) -> bool {
        !matches!(self, Self::Export(_) | Self::Import(_))
    }
}

#[derive(Debug, Args)]
pub(super) struct Create {
    /// Name of the campaign.
    name: String,
    #[command(flatten)]
    texts: versions::TextFlags,
    #[command(flatten)]
    budget: BudgetFlags,
    /// Effect of the budget on tasks at its limit: they wait until there is space (wait, the default), or fail.
    #[arg(long, value_name = "EFFECT", value_parser = parse_on_limit)]
    on_limit: Option<OnLimit>,
    #[command(flatten)]
    labels: LabelFlags,
    #[command(flatten)]
    parameters: ParameterFlags,
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
    campaign: CampaignChoice,
    /// Reason, shown with the paused campaign.
    #[arg(long, default_value = "by an operator")]
    reason: String,
}

#[derive(Debug, Args)]
pub(super) struct Erase {
    #[command(flatten)]
    id: CampaignId,
    /// Reason for the receipt. It is not erased: keep personal data out of it.
    #[arg(long, default_value = "by request")]
    reason: String,
    /// Confirms the erasure. It cannot be undone.
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    wait: WaitFlag,
}

#[derive(Debug, Args)]
pub(super) struct SetBudget {
    #[command(flatten)]
    campaign: CampaignChoice,
    #[command(flatten)]
    limits: LimitFlags,
    /// Effect of the limits on tasks: they wait until there is space, or fail.
    #[arg(long, value_name = "EFFECT", value_parser = parse_on_limit)]
    on_limit: Option<OnLimit>,
    /// Limit of the budget for reruns, which pays for `dalsegno turn rerun`, in units of the configured currency.
    #[arg(long, value_name = "MONEY", conflicts_with = "no_experiments", value_parser = amount::parse_money)]
    experiments: Option<i64>,
    /// Removes the budget for reruns: models with a price are not rerun.
    #[arg(long)]
    no_experiments: bool,
}

pub(super) async fn run(command: &CampaignCommand, context: &Context) -> Result<Exit, Failure> {
    match command {
        CampaignCommand::Export(export) => Box::pin(file::export(export, context)).await,
        CampaignCommand::Import(import) => Box::pin(file::import(import, context)).await,
        command => {
            with_server(context, async |server| run_on_server(command, context, server).await).await
        }
    }
}

async fn run_on_server(
    command: &CampaignCommand,
    context: &Context,
    server: &Server,
) -> Result<Exit, Failure> {
    let output = context.output;
    match command {
        CampaignCommand::Create(create) => {
            let overview = server.call(new(create)?).await?;
            output
                .print_data(&overview, || format!("campaign {} is created", overview.campaign.id));
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
            let is_filtered = !list.labels.is_empty() || list.paging.after.is_some();
            output.print_rows(&campaigns, is_filtered, NO_CAMPAIGNS, || {
                show::format_campaigns(&campaigns)
            });
        }
        CampaignCommand::Show(campaign) => {
            let id = campaign.id(context, server).await?;
            let overview = server.call(ShowCampaign { id, summary: false }).await?;
            output.print_data(&overview, || show::format_overview(&overview, &context.catalogue()));
        }
        CampaignCommand::Edit(edit) => versions::edit(edit, context, server).await?,
        CampaignCommand::Versions(versions) => {
            versions::print(versions, context, server).await?;
        }
        CampaignCommand::Budget(budget) => {
            let budget = change_budget(budget, context, server).await?;
            output.print_data(&budget, || {
                budget.as_ref().map(show::format_noted_budget).unwrap_or_default()
            });
        }
        CampaignCommand::Pause(Pause { campaign, reason }) => {
            let (id, reason) = (campaign.id(context, server).await?, reason.clone());
            print_status(&server.call(PauseCampaign { id, reason }).await?, output);
        }
        CampaignCommand::Resume(campaign) => {
            let id = campaign.id(context, server).await?;
            // An API key may resume a campaign without the right to read it.
            let before = server.call(ShowCampaign { id, summary: false }).await.ok();
            print_status(&server.call(ResumeCampaign { id }).await?, output);
            let was_active = before.is_some_and(|it| it.campaign.status == Status::Active);
            if was_active && !output.is_structured() {
                output.print_note(&format!("campaign {id} was not paused"));
            }
        }
        CampaignCommand::Close(CampaignId { id }) => {
            let id = server.campaign(id).await?;
            print_status(&server.call(CloseCampaign { id }).await?, output);
        }
        CampaignCommand::Erase(erase) => {
            let receipt = self::erase(erase, server).await.map_err(with_erased)?;
            let (receipt, exit) = match erase.wait.wait {
                Some(limit) => wait_for_erasure(receipt.campaign_id, limit, output, server).await?,
                None => (receipt, Exit::Ok),
            };
            output.print_data(&receipt, || show::format_receipt(&receipt));
            return Ok(exit);
        }
        // They ran on the database.
        CampaignCommand::Export(_) | CampaignCommand::Import(_) => {}
    }
    Ok(Exit::Ok)
}

fn new(create: &Create) -> Result<CreateCampaign, Failure> {
    let (brief, client_context) = create.texts.read()?;
    let brief = brief.unwrap_or_default();
    let (name, budget) = (create.name.clone(), create.budget.limit());
    let (tags, metadata) = (create.labels.tags.clone(), create.labels.metadata());
    let on_limit = create.on_limit;
    let parameters = create.parameters.object();
    Ok(CreateCampaign { name, brief, client_context, budget, on_limit, tags, metadata, parameters })
}

/// Changes or reads the budget. `None`: the transaction that creates the campaign is still open.
async fn change_budget(
    set: &SetBudget,
    context: &Context,
    server: &Server,
) -> Result<Option<Budget>, Failure> {
    let id = set.campaign.id(context, server).await?;
    let experiments = set.experiments.map(Some);
    let experiments_micros = experiments.or(set.no_experiments.then_some(None));
    if set.limits.are_none() && set.on_limit.is_none() && experiments_micros.is_none() {
        return Ok(server.call(ShowCampaign { id, summary: false }).await?.budget);
    }
    let change = ChangeBudget { experiments_micros, ..limits_of(id, &set.limits, set.on_limit) };
    Ok(Some(server.call(change).await?))
}

/// Builds the change of a campaign's limits.
pub(super) fn limits_of(id: Uuid, limits: &LimitFlags, on_limit: Option<OnLimit>) -> ChangeBudget {
    ChangeBudget {
        id,
        micros: limits.micros(),
        tokens: limits.tokens(),
        soft_micros: limits.soft_micros(),
        soft_tokens: limits.soft_tokens(),
        on_limit,
        experiments_micros: None,
    }
}

async fn erase(erase: &Erase, server: &Server) -> Result<Erasure, Failure> {
    let id = server.campaign(&erase.id.id).await?;
    if erase.yes {
        return server.call(EraseCampaign { id, reason: erase.reason.clone() }).await;
    }
    match server.call(ShowErasure { id }).await {
        Err(failure) if failure.exit == Exit::NotFound => {
            server.call(ShowCampaign { id, summary: false }).await?;
            let words = format!(
                "nothing was done: this would permanently erase campaign {id} with all of its conversations; confirm with --yes"
            );
            Err(Failure::new(Exit::Usage, anyhow!(words)))
        }
        receipt => receipt,
    }
}

/// Adds where erased campaigns are listed to the error of an unknown one: their names are erased too.
fn with_erased(failure: Failure) -> Failure {
    let advice = (failure.exit == Exit::NotFound).then_some(ERASED);
    Failure { advice: failure.advice.or(advice), ..failure }
}

/// Waits until a worker has removed everything. The bar counts rows; before the removal, tasks still end.
async fn wait_for_erasure(
    id: Uuid,
    limit: TimeDelta,
    output: Output,
    server: &Server,
) -> Result<(Erasure, Exit), Failure> {
    let look = async || {
        let receipt = server.call(ShowErasure { id }).await?;
        let (done, total) = receipt.removed_of_all();
        let count = |n: i64| u64::try_from(n).unwrap_or_default();
        let has_ended = receipt.ended_at.is_some();
        Ok((receipt, Progress { done: count(done), total: count(total) }, has_ended))
    };
    wait_for_end("rows", limit, output, look).await
}

fn print_status(campaign: &Campaign, output: Output) {
    output.print_data(campaign, || {
        format!("campaign {} is {}", campaign.id, campaign.status.as_str())
    });
}
