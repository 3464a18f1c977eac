//! `dalsegno budget`: lists budgets, and sets their limits.

pub(super) mod show;

use anyhow::anyhow;
use clap::{Args, Subcommand, ValueEnum};
use uuid::Uuid;

use super::{
    Context, Exit, Failure, campaign,
    server::{Server, with_server},
    task,
    words::{LimitFlags, parse_on_limit},
};
use crate::{
    domain::{
        amount::OnLimit,
        budgets::{OwnedBudget, OwnerKind},
        ids::{GivenCampaign, PartialId},
    },
    operations::{ListBudgets, Noun, SetBudget, ShowCampaign, ShowTask, StoredOwner},
};

/// Printed below an empty list.
const NO_BUDGETS: &str = "no budgets: `dalsegno budget set day --money 5` sets one";

#[derive(Debug, Subcommand)]
pub(super) enum BudgetCommand {
    /// Lists budgets with what is left of each, if it has warned, and how many tasks wait.
    Ls(List),
    /// Shows the budget of a campaign, a task, an agent, a user or the day: what is left, and when it begins again.
    Show(Owner),
    /// Sets the limits of a budget, or removes them. Waiting tasks that fit continue.
    ///
    /// The budget of the day counts the calls of one day, of all users together, and begins again at midnight of `scheduler.time_zone`.
    /// All others count all calls of all time, those before the limit was set too, and never begin again: tasks at their limit wait until
    /// it is raised. There is no daily limit of one user.
    Set(Set),
}

#[derive(Debug, Args)]
pub(super) struct List {
    /// Only budgets of this kind of owner.
    #[arg(long, value_enum)]
    owner: Option<ListedOwner>,
    /// Maximum number of budgets, up to 1000.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(i64).range(1..=1000))]
    limit: i64,
}

#[derive(Debug, Args)]
pub(super) struct Owner {
    /// Kind of owner.
    #[arg(value_enum)]
    owner: OwnerName,
    /// Name of the agent, the user or the campaign, or id of the task or the campaign; none for `day`.
    name: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct Set {
    #[command(flatten)]
    owner: Owner,
    #[command(flatten)]
    limits: LimitFlags,
    /// Effect of the limits on tasks: they wait until there is space, or fail. For tasks the agent's file says it.
    #[arg(long, value_name = "EFFECT", value_parser = parse_on_limit)]
    on_limit: Option<OnLimit>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OwnerName {
    Campaign,
    Task,
    Agent,
    User,
    Day,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ListedOwner {
    Campaign,
    Agent,
    User,
    Day,
}

/// The owner that an operation names.
enum BudgetTarget {
    Campaign(Uuid),
    Task(Uuid),
    Stored(StoredOwner, Option<String>),
}

pub(super) async fn run(command: &BudgetCommand, context: &Context) -> Result<Exit, Failure> {
    with_server(context, async |server| run_on_server(command, context, server).await).await
}

async fn run_on_server(
    command: &BudgetCommand,
    context: &Context,
    server: &Server,
) -> Result<Exit, Failure> {
    let output = context.output;
    match command {
        BudgetCommand::Ls(list) => {
            let owner = list.owner.map(OwnerKind::from);
            let page = |cursor, limit| ListBudgets { owner, key: None, cursor, limit: Some(limit) };
            let budgets = server.items(list.limit, page).await?;
            output.print_rows(&budgets, owner.is_some(), NO_BUDGETS, || {
                show::format_budgets(&budgets)
            });
        }
        BudgetCommand::Show(owner) => {
            return change(
                owner.find(server).await?,
                &LimitFlags::default(),
                None,
                context,
                server,
            )
            .await;
        }
        BudgetCommand::Set(set) => {
            if set.limits.are_none() && set.on_limit.is_none() {
                let words = "nothing was set: give a limit, such as --money 5 or --tokens 200000";
                return Err(Failure::new(Exit::Usage, anyhow!(words)));
            }
            let named = set.owner.find(server).await?;
            return change(named, &set.limits, set.on_limit, context, server).await;
        }
    }
    Ok(Exit::Ok)
}

/// Changes a budget, or shows it if no flag is set.
async fn change(
    named: BudgetTarget,
    limits: &LimitFlags,
    on_limit: Option<OnLimit>,
    context: &Context,
    server: &Server,
) -> Result<Exit, Failure> {
    let output = context.output;
    let is_read = limits.are_none() && on_limit.is_none();
    match named {
        BudgetTarget::Campaign(id) => {
            let budget = match is_read {
                true => server.call(ShowCampaign { id, summary: false }).await?.budget,
                false => Some(server.call(campaign::limits_of(id, limits, on_limit)).await?),
            };
            let text =
                || budget.as_ref().map(campaign::show::format_noted_budget).unwrap_or_default();
            output.print_data(&budget, text);
        }
        BudgetTarget::Task(id) => {
            if on_limit.is_some() {
                let words =
                    "--on-limit is not possible for a task: set `on_limit` in the agent's file";
                return Err(Failure::new(Exit::Usage, anyhow!(words)));
            }
            let shown = match is_read {
                true => server.call(ShowTask { id, wait: None }).await?.task,
                false => server.call(task::limits_of(id, limits)).await?,
            };
            output.print_data(&shown, || show::format_task_budget(&shown));
        }
        BudgetTarget::Stored(owner, key) => {
            let set = SetBudget {
                owner,
                key,
                micros: limits.micros(),
                tokens: limits.tokens(),
                soft_micros: limits.soft_micros(),
                soft_tokens: limits.soft_tokens(),
                on_limit,
            };
            let budget = match is_read {
                true => find(&set, server).await?,
                false => server.call(set).await?.0,
            };
            output.print_data(&budget, || match &budget {
                Some(budget) => show::format_one(budget),
                None => "there is no limit".to_owned(),
            });
        }
    }
    Ok(Exit::Ok)
}

async fn find(named: &SetBudget, server: &Server) -> Result<Option<OwnedBudget>, Failure> {
    let owner = Some(match named.owner {
        StoredOwner::Agent => OwnerKind::Agent,
        StoredOwner::User => OwnerKind::User,
        StoredOwner::Day => OwnerKind::Day,
    });
    let key = Some(named.key.clone().unwrap_or_default());
    let found = server.call(ListBudgets { owner, key, cursor: None, limit: Some(1) }).await?;
    Ok(found.items.into_iter().next())
}

impl Owner {
    async fn find(&self, server: &Server) -> Result<BudgetTarget, Failure> {
        let name = self.name.as_deref().unwrap_or_default();
        let missing = |what: &str| {
            let words = format!("the name is missing: give {what}");
            Failure::new(Exit::Usage, anyhow!(words))
        };
        match self.owner {
            OwnerName::Day => Ok(BudgetTarget::Stored(StoredOwner::Day, self.name.clone())),
            OwnerName::Campaign if name.is_empty() => Err(missing("the campaign")),
            OwnerName::Task if name.is_empty() => Err(missing("the id of the task")),
            OwnerName::Campaign => {
                let given: GivenCampaign = name.parse().map_err(|error| usage(&error))?;
                Ok(BudgetTarget::Campaign(server.campaign(&given).await?))
            }
            OwnerName::Task => {
                let given: PartialId = name.parse().map_err(|error| usage(&error))?;
                Ok(BudgetTarget::Task(server.id(Noun::Task, &given).await?))
            }
            OwnerName::Agent => Ok(BudgetTarget::Stored(StoredOwner::Agent, self.name.clone())),
            OwnerName::User => Ok(BudgetTarget::Stored(StoredOwner::User, self.name.clone())),
        }
    }
}

fn usage(error: &impl std::fmt::Display) -> Failure {
    Failure::new(Exit::Usage, anyhow!("{error}"))
}

impl From<ListedOwner> for OwnerKind {
    fn from(owner: ListedOwner) -> Self {
        match owner {
            ListedOwner::Campaign => Self::Campaign,
            ListedOwner::Agent => Self::Agent,
            ListedOwner::User => Self::User,
            ListedOwner::Day => Self::Day,
        }
    }
}
