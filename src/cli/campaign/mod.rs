//! `dalsegno campaign`: what the work is about, whether it goes on, what it may cost.

mod show;

use std::path::PathBuf;

use anyhow::anyhow;
use clap::{Args, Subcommand};
use serde_json::json;
use sqlx::PgPool;

use super::{
    Context, Exit, Failure,
    args::{CampaignId, Paging},
    database::with_database,
    output::Output,
    server::{Server, with_server},
    words::{BudgetFlags, given},
};
use crate::{
    clock::{Clock as _, SystemClock},
    db::{Database, Use},
    domain::{
        amount,
        audit::{self, Action},
        campaign_control,
        campaign_overview::{self, Overview},
        campaigns::{self, Budget, Campaign, LimitChange, New, Status},
        erasures::{self, Erasure},
        ids::GivenCampaign,
        transaction::{begin, commit},
    },
    operations::{ListCampaigns, Noun, ShowCampaign},
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
    name: String,
    /// What the work is about; every call tells it to the model. `-` reads it from the standard input.
    #[arg(long, conflicts_with = "brief_file")]
    brief: Option<String>,
    #[arg(long, value_name = "FILE")]
    brief_file: Option<PathBuf>,
    /// Tone, audience and facts of the client, as for the brief.
    #[arg(long, conflicts_with = "client_context_file")]
    client_context: Option<String>,
    #[arg(long, value_name = "FILE")]
    client_context_file: Option<PathBuf>,
    #[command(flatten)]
    budget: BudgetFlags,
}

#[derive(Debug, Args)]
pub(super) struct List {
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

impl CampaignCommand {
    /// True for commands that consist of operations alone.
    pub(super) fn is_remote(&self) -> bool {
        matches!(self, Self::Ls(_) | Self::Show(_))
    }
}

pub(super) async fn run(command: &CampaignCommand, context: &Context) -> Result<Exit, Failure> {
    match command {
        CampaignCommand::Ls(list) => {
            with_server(context, async |server| self::list(list, context, server).await).await
        }
        CampaignCommand::Show(CampaignId { id }) => {
            with_server(context, async |server| show(id, context, server).await).await
        }
        command => on_database(command, context).await,
    }
}

async fn list(list: &List, context: &Context, server: &Server) -> Result<Exit, Failure> {
    let page = |cursor, limit| ListCampaigns { cursor, limit };
    let campaigns = server.list(Noun::Campaign, &list.paging, page).await?;
    context.output.data(&campaigns, || show::lines(&campaigns));
    Ok(Exit::Ok)
}

async fn show(given: &GivenCampaign, context: &Context, server: &Server) -> Result<Exit, Failure> {
    let overview = server.call(ShowCampaign { id: server.campaign(given).await? }).await?;
    context.output.data(&overview, || show::words(&overview, &context.catalogue()));
    Ok(Exit::Ok)
}

async fn on_database(command: &CampaignCommand, context: &Context) -> Result<Exit, Failure> {
    with_database(context, Use::Look, async |database| on(command, context, database).await).await
}

async fn on(
    command: &CampaignCommand,
    context: &Context,
    database: &Database,
) -> Result<Exit, Failure> {
    let (pool, output) = (&database.pool, context.output);
    match command {
        CampaignCommand::Create(create) => {
            let overview = self::create(create, context, pool).await?;
            output.data(&overview, || format!("campaign {} is created", overview.campaign.id));
        }
        CampaignCommand::Ls(_) | CampaignCommand::Show(_) => {}
        CampaignCommand::Budget(budget) => {
            let budget = change_limit(budget, context, pool).await?;
            output.data(&budget, || show::budget_words(&budget));
        }
        CampaignCommand::Pause(Pause { id: CampaignId { id }, reason }) => {
            changed(&change_status(id, Status::Paused, reason, context, pool).await?, output);
        }
        CampaignCommand::Resume(CampaignId { id }) => {
            changed(&change_status(id, Status::Active, "", context, pool).await?, output);
        }
        CampaignCommand::Close(CampaignId { id }) => {
            changed(&change_status(id, Status::Closed, "", context, pool).await?, output);
        }
        CampaignCommand::Erase(erase) => {
            let receipt = self::erase(erase, context, pool).await?;
            output.data(&receipt, || show::receipt(&receipt));
        }
    }
    Ok(Exit::Ok)
}

async fn create(create: &Create, context: &Context, pool: &PgPool) -> Result<Overview, Failure> {
    let brief = given(create.brief.as_deref(), create.brief_file.as_ref())?.unwrap_or_default();
    let (text, file) = (create.client_context.as_deref(), create.client_context_file.as_ref());
    let client_context = given(text, file)?;
    let new = New {
        name: &create.name,
        brief: &brief,
        client_context: client_context.as_deref(),
        limit: create.budget.limit(),
    };
    let (mut tx, now) = (begin(pool).await?, SystemClock.now());
    let campaign = campaigns::create(&mut tx, &new, now).await?;
    let (id, data) = (campaign.id, json!({ "name": campaign.name }));
    audit::write(&mut *tx, &context.who(), Action::CampaignCreate, id, data, now).await?;
    let overview = campaign_overview::overview(&mut tx, id).await?;
    commit(tx).await?;
    Ok(overview)
}

async fn change_limit(
    set: &SetBudget,
    context: &Context,
    pool: &PgPool,
) -> Result<Budget, Failure> {
    let change = |value: Option<i64>, none: bool| value.map(Some).or(none.then_some(None));
    let change = LimitChange {
        micros: change(set.money, set.no_money),
        tokens: change(set.tokens, set.no_tokens),
    };
    let mut tx = begin(pool).await?;
    let id = campaigns::find(&mut *tx, &set.id.id, None).await?;
    let budget = campaigns::change_limit(&mut tx, id, change).await?;
    // Without a flag it only shows how things stand.
    if change != LimitChange::default() {
        let (who, data) = (context.who(), json!({ "limit": budget.limit }));
        audit::write(&mut *tx, &who, Action::CampaignLimit, id, data, SystemClock.now()).await?;
    }
    commit(tx).await?;
    Ok(budget)
}

async fn change_status(
    given: &GivenCampaign,
    status: Status,
    reason: &str,
    context: &Context,
    pool: &PgPool,
) -> Result<Campaign, Failure> {
    let (mut tx, now) = (begin(pool).await?, SystemClock.now());
    let id = campaigns::find(&mut *tx, given, None).await?;
    let campaign = campaign_control::change_status(&mut tx, id, status, reason, now).await?;
    let (action, data) = (campaign_control::action(status), json!({ "reason": reason }));
    audit::write(&mut *tx, &context.who(), action, id, data, now).await?;
    commit(tx).await?;
    Ok(campaign)
}

async fn erase(erase: &Erase, context: &Context, pool: &PgPool) -> Result<Erasure, Failure> {
    let mut tx = begin(pool).await?;
    let id = campaigns::find(&mut *tx, &erase.id.id, None).await?;
    if !erase.yes {
        return match erasures::get(&mut tx, id).await {
            Err(erasures::Error::NotAsked(_)) => {
                let words = format!(
                    "campaign {id} with all that was said in it would be erased for good; nothing was done: say --yes"
                );
                Err(Failure::new(Exit::Usage, anyhow!(words)))
            }
            receipt => Ok(receipt?),
        };
    }
    let now = SystemClock.now();
    let receipt = erasures::request(&mut tx, id, &erase.reason, now).await?;
    let data = json!({ "receipt": receipt.id });
    audit::write(&mut *tx, &context.who(), Action::CampaignErase, id, data, now).await?;
    commit(tx).await?;
    Ok(receipt)
}

fn changed(campaign: &Campaign, output: Output) {
    output.data(campaign, || format!("campaign {} is {}", campaign.id, campaign.status.as_str()));
}
