//! Budgets: reserved before a call, settled after it, and waited for at their limit.
//!
//! A call is paid by the budget of its campaign and by those of its agent, its user and the day, as far as they exist. The functions of
//! the database treat them alike: `dalsegno.reserve_budgets`, `settle_budgets`, `wait_for_budget` and `wake_for_budget`. The budget of
//! a task is checked with its row, which each turn reads anyway.
//!
//! Races: many turns begin and end at the limit at once. Each locks the row of the campaign's budget, or a share of another budget, before
//! it compares, so a reservation never takes spent and reserved amounts together above the limit. A call that costs more than its
//! reservation is still charged in full. The migration that creates `dalsegno.budget_shares` says how turns share a budget and how no
//! wake-up is lost.
//!
//! Spending without a reservation needs no permission. The campaign's is added up beside the row of its budget, in one of several rows:
//! otherwise all turns of a campaign without a limit would end one after the other. A limit that is set during such a turn counts its
//! spending as soon as the turn ends.

mod owners;
mod period;
mod ranking;
mod reserve;
mod waits;

use serde::{Deserialize, Serialize};

pub use self::{
    owners::{
        Change, Filter, OwnedBudget, change, find, hold, left_micros, list, refusal,
        remove_of_campaign, set_time_zone,
    },
    period::{BeginBudgetPeriod, period_end},
    ranking::{BudgetTotals, Ranking, RankingQuery, find_several, rank},
    reserve::{Payers, ReserveError, Spender, check_refusal, lock, reserve, settle},
    waits::{
        AwaitedBudget, BudgetWait, awaited_by, count_waiting, list_awaited, list_waits, wait,
        wait_of, wake, wake_of_campaign, wake_of_task,
    },
};

/// Kind of owner of a budget that is not that of a task.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    sqlx::Type,
    utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
#[sqlx(type_name = "text", rename_all = "snake_case")]
#[schema(as = BudgetOwner)]
pub enum OwnerKind {
    Agent,
    Campaign,
    Day,
    User,
}

impl OwnerKind {
    pub const ALL: [Self; 4] = [Self::Agent, Self::Campaign, Self::Day, Self::User];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Campaign => "campaign",
            Self::Day => "day",
            Self::User => "user",
        }
    }
}
