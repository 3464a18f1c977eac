//! Retries of tasks that failed at a budget: whether the budget allows the call by now.

use std::collections::{HashMap, hash_map::Entry};

use sqlx::PgConnection;
use uuid::Uuid;

use super::{Error, ExplainedColumns, explained_columns, get};
use crate::domain::{
    Amount,
    amount::{Owner, Refusal},
    budgets::{self, OwnedBudget, OwnerKind},
    campaigns::{self, Status},
};

/// Result of a retry of a task that failed at a budget, as far as it is known before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RetryOutlook {
    /// The budget would refuse the call again.
    Refusal(Refusal),
    /// The call fits by now.
    Space,
    /// A step of a flow that failed at its own budget. The budget comes from the agent's file, and only a retry of the flow reads it again.
    AgentFile { flow_id: Uuid, step: String },
    /// Nothing is known, because the campaign is closed.
    Unknown,
}

/// The present amounts of budgets, each of which is read once.
#[derive(Debug, Default)]
pub struct PresentBudgets(HashMap<(&'static str, String), PresentBudget>);

#[derive(Debug)]
enum PresentBudget {
    Unlimited,
    OfClosedCampaign,
    OfCampaign(Uuid, Box<campaigns::Budget>),
    Owned(Box<OwnedBudget>),
}

/// Checks the budget at which a task has failed for its retry.
pub async fn retry_outlook(
    conn: &mut PgConnection,
    id: Uuid,
    refusal: &Refusal,
    known: &mut PresentBudgets,
) -> Result<RetryOutlook, Error> {
    if !matches!(refusal.owner, Owner::Task(_)) {
        return Ok(known.get(conn, &refusal.owner).await?.outlook(refusal.call));
    }
    let ExplainedColumns { flow, .. } = explained_columns(&mut *conn, id).await?;
    if let Some((flow_id, step)) = flow {
        return Ok(RetryOutlook::AgentFile { flow_id, step });
    }
    let task = get(conn, id).await?;
    Ok(RetryOutlook::of(task.check_budget(Amount::ZERO, refusal.call)))
}

impl RetryOutlook {
    fn of(checked: Result<(), Refusal>) -> Self {
        checked.map_or_else(Self::Refusal, |()| Self::Space)
    }

    /// Returns the refusal that a retry would meet.
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refusal(refusal) => Some(refusal),
            Self::Space | Self::AgentFile { .. } | Self::Unknown => None,
        }
    }
}

impl PresentBudgets {
    async fn get(
        &mut self,
        conn: &mut PgConnection,
        owner: &Owner,
    ) -> Result<&PresentBudget, Error> {
        Ok(match self.0.entry(owner.columns()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(vacant) => vacant.insert(PresentBudget::read(conn, owner).await?),
        })
    }
}

impl PresentBudget {
    async fn read(conn: &mut PgConnection, owner: &Owner) -> Result<Self, Error> {
        if let Owner::Campaign(id) = owner {
            return Self::of_campaign(conn, *id).await;
        }
        let (name, key) = owner.columns();
        let kind = OwnerKind::ALL.into_iter().find(|kind| kind.as_str() == name);
        let budget = match kind {
            Some(kind) => budgets::find(conn, kind, &key, None).await?,
            None => None,
        };
        Ok(budget.map_or(Self::Unlimited, |budget| Self::Owned(Box::new(budget))))
    }

    /// The list of budgets leaves out those of closed campaigns, and is read as a whole.
    async fn of_campaign(conn: &mut PgConnection, id: Uuid) -> Result<Self, Error> {
        match campaigns::get(&mut *conn, id).await {
            Ok(campaign) if campaign.status != Status::Closed => {}
            Ok(_) | Err(campaigns::Error::Unknown(_)) => return Ok(Self::OfClosedCampaign),
            Err(error) => return Err(error.into()),
        }
        let budget = campaigns::budget(conn, id).await?;
        Ok(budget.map_or(Self::Unlimited, |budget| Self::OfCampaign(id, Box::new(budget))))
    }

    fn outlook(&self, call: Amount) -> RetryOutlook {
        RetryOutlook::of(match self {
            Self::Unlimited => Ok(()),
            Self::OfClosedCampaign => return RetryOutlook::Unknown,
            Self::OfCampaign(id, budget) => {
                let owner = Owner::Campaign(*id);
                let checked = budget.limit.check(owner, budget.spent, budget.reserved, call);
                checked.map_err(|refusal| Refusal { on_limit: budget.on_limit, ..refusal })
            }
            Self::Owned(budget) => budget.check(call),
        })
    }
}
