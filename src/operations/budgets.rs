//! Budgets: their limits.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::json;
use sqlx::{PgConnection, PgExecutor};
use uuid::Uuid;

use super::{
    Call, Change, ChangeOutput, ChangeResult, Listing, Method, Operation, Refusal, Spec, page_limit,
};
use crate::domain::{
    StatementError,
    agents::LookupError,
    amount::{Limit, OnLimit, budget_subject},
    audit::Action,
    budgets::{self, OwnedBudget, OwnerKind, Ranking, RankingQuery},
    campaigns::{self, Budget, LimitChange},
    class::{BAD_VALUE, Class, Kind},
    facts,
    tasks::{self, BudgetChange, Task},
};

const TAG: &str = "budgets";
/// A budget without its key, or a day with one.
const BAD_KEY: Class = Class::of(Kind::Invalid, "bad_budget_key");

/// Lists the budgets of agents, users and the day, and those of open campaigns, with what is spent and how many tasks wait.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ListBudgets {
    #[schema(inline)]
    pub owner: Option<OwnerKind>,
    /// The name of an agent or a user, or the id of a campaign.
    pub key: Option<String>,
    /// Owner and key of the last budget of the previous page, with a `/` between them.
    pub cursor: Option<String>,
    #[schema(minimum = 1, maximum = 200)]
    pub limit: Option<i64>,
}

/// Sets the limits of the budget of an agent, a user or a day, over all campaigns. A limit that is not named stays; null removes it.
///
/// A new budget begins with what the ledger has: of the agent, of the campaigns of the user, of the present day. Without any limit the
/// budget is removed. Waiting tasks for which there is space now continue. Days begin at midnight of `scheduler.time_zone`. The budgets of
/// agents and users count all calls of all time and never begin again.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = BudgetChange)]
pub struct SetBudget {
    #[schema(inline)]
    pub owner: StoredOwner,
    /// The name of the agent or the user; none for the day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    #[serde(default, deserialize_with = "named", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<i64>, minimum = 1)]
    pub micros: Option<Option<i64>>,
    #[serde(default, deserialize_with = "named", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<i64>, minimum = 1)]
    pub tokens: Option<Option<i64>>,
    /// Spending in money at which a warning is written, once per day for a day.
    #[serde(default, deserialize_with = "named", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<i64>, minimum = 1)]
    pub soft_micros: Option<Option<i64>>,
    /// Spending in tokens at which a warning is written, once per day for a day.
    #[serde(default, deserialize_with = "named", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<i64>, minimum = 1)]
    pub soft_tokens: Option<Option<i64>>,
    /// Effect of the limits on tasks: they wait until there is space, or fail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(inline)]
    pub on_limit: Option<OnLimit>,
}

/// Kind of owner whose budget is set here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum StoredOwner {
    Agent,
    User,
    Day,
}

/// The budget; null if it has no limits.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(transparent)]
pub struct SetBudgetOutput(pub Option<OwnedBudget>);

/// Changes the limits of a campaign. A limit that is not named stays; null removes it.
///
/// Waiting tasks for which there is space now continue.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = LimitChange)]
pub struct ChangeBudget {
    pub id: Uuid,
    #[serde(default, deserialize_with = "named", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<i64>, minimum = 1)]
    pub micros: Option<Option<i64>>,
    #[serde(default, deserialize_with = "named", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<i64>, minimum = 1)]
    pub tokens: Option<Option<i64>>,
    /// Spending in money at which a warning is written, once.
    #[serde(default, deserialize_with = "named", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<i64>, minimum = 1)]
    pub soft_micros: Option<Option<i64>>,
    /// Spending in tokens at which a warning is written, once.
    #[serde(default, deserialize_with = "named", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<i64>, minimum = 1)]
    pub soft_tokens: Option<Option<i64>>,
    /// Effect of the limits on tasks: they wait until there is space, or fail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(inline)]
    pub on_limit: Option<OnLimit>,
    /// Limit of the budget that pays for reruns of turns, in money. Without one, models with a price are not rerun.
    #[serde(default, deserialize_with = "named", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<i64>, minimum = 1)]
    pub experiments_micros: Option<Option<i64>>,
}

/// Changes the budget of a task. A limit that is not named stays; null removes it.
///
/// If the task waits for its budget and the next call fits now, it continues.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = TaskLimitChange)]
pub struct ChangeTaskBudget {
    pub id: Uuid,
    #[serde(default, deserialize_with = "named", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<i64>, minimum = 1)]
    pub micros: Option<Option<i64>>,
    #[serde(default, deserialize_with = "named", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<i64>, minimum = 1)]
    pub tokens: Option<Option<i64>>,
    /// Spending in money at which a warning is written, once.
    #[serde(default, deserialize_with = "named", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<i64>, minimum = 1)]
    pub soft_micros: Option<Option<i64>>,
    /// Spending in tokens at which a warning is written, once.
    #[serde(default, deserialize_with = "named", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<i64>, minimum = 1)]
    pub soft_tokens: Option<Option<i64>>,
}

impl Operation for ListBudgets {
    const SPEC: Spec = Spec::read("list_budgets", "/v1/budgets", "budget ls").tag(TAG);
    type Output = Listing<OwnedBudget>;

    async fn run(self, call: &Call) -> Result<Listing<OwnedBudget>, Refusal> {
        let limit = page_limit(self.limit)?;
        let after = self.cursor.as_deref().and_then(|cursor| cursor.split_once('/'));
        let key = self.key.as_deref();
        let filter = budgets::Filter {
            owner: self.owner,
            key,
            after,
            limit: limit + 1,
            ..budgets::Filter::default()
        };
        let mut rows = budgets::list(&call.pool, filter, Some(call.now)).await?;
        find_campaigns(&call.pool, &mut rows).await?;
        Ok(Listing::of(rows, limit, OwnedBudget::row_key))
    }
}

impl Change for SetBudget {
    const SPEC: Spec = Spec::change("set_budget", "/v1/budgets", "budget set")
        .tag(TAG)
        .by(Method::Patch)
        .refuses(&[LookupError::UNKNOWN_AGENT, facts::Error::BAD_USER, BAD_VALUE, BAD_KEY]);
    const ACTION: Action = Action::BudgetSet;
    type Output = SetBudgetOutput;

    async fn change(self, conn: &mut PgConnection, call: &Call) -> ChangeResult<SetBudgetOutput> {
        let key = self.checked_key(call)?;
        let owner = self.owner.kind();
        let Self { micros, tokens, soft_micros, soft_tokens, on_limit, .. } = self;
        let change = budgets::Change { micros, tokens, soft_micros, soft_tokens, on_limit };
        let subject = budget_subject(owner.as_str(), &key);
        budgets::hold(&mut *conn, owner, &key).await?;
        let mut before = budgets::find(&mut *conn, owner, &key, Some(call.now)).await?;
        if change == budgets::Change::default() {
            find_campaigns(conn, before.as_mut_slice()).await?;
            return Ok(ChangeOutput::nothing(subject, SetBudgetOutput(before)));
        }
        let zone = &call.config.time_zone;
        let mut output = budgets::change(&mut *conn, (owner, &key), change, zone, call.now).await?;
        find_campaigns(conn, output.as_mut_slice()).await?;
        let limits = |budget: &OwnedBudget| json!({ "limit": budget.limit, "soft": budget.soft, "on_limit": budget.on_limit });
        let mut data = output.as_ref().map_or(json!({ "removed": true }), limits);
        data["before"] = before.as_ref().map_or(json!({}), limits);
        Ok(ChangeOutput::of(subject, SetBudgetOutput(output), data))
    }
}

/// Ranks budgets by urgency, for callers in this process.
pub async fn rank_budgets(call: &Call, query: &RankingQuery<'_>) -> Result<Ranking, Refusal> {
    let mut transaction = call.begin_read().await?;
    let mut ranking = budgets::rank(&mut transaction, query, call.now).await?;
    find_campaigns(&mut *transaction, &mut ranking.items).await?;
    Ok(ranking)
}

/// Finds budgets by their [row keys](OwnedBudget::row_key), for callers in this process.
pub async fn find_budgets(call: &Call, row_keys: &[String]) -> Result<Vec<OwnedBudget>, Refusal> {
    if row_keys.is_empty() {
        return Ok(Vec::new());
    }
    let mut transaction = call.begin_read().await?;
    let mut found = budgets::find_several(&mut transaction, row_keys, call.now).await?;
    find_campaigns(&mut *transaction, &mut found).await?;
    Ok(found)
}

/// Notes in the budgets of users if a campaign works for them.
async fn find_campaigns(
    executor: impl PgExecutor<'_>,
    budgets: &mut [OwnedBudget],
) -> Result<(), StatementError> {
    let is_of_user = |budget: &&mut OwnedBudget| budget.owner == OwnerKind::User;
    let users: Vec<String> =
        budgets.iter_mut().filter(is_of_user).map(|budget| budget.key.clone()).collect();
    if users.is_empty() {
        return Ok(());
    }
    let known = facts::with_campaigns(executor, &users).await?;
    for budget in budgets.iter_mut().filter(is_of_user) {
        budget.has_campaign = Some(known.contains(&budget.key));
    }
    Ok(())
}

impl SetBudget {
    /// Returns the key of the budget: a known agent, a user, or nothing for the day.
    fn checked_key(&self, call: &Call) -> Result<String, Refusal> {
        let key = self.key.clone().unwrap_or_default();
        let is_fine = match self.owner {
            StoredOwner::Day => key.is_empty(),
            StoredOwner::Agent | StoredOwner::User => !key.is_empty(),
        };
        if !is_fine {
            let words = match self.owner {
                StoredOwner::Day => "the budget of a day has no key: leave it out",
                StoredOwner::Agent => "the key is missing: name the agent",
                StoredOwner::User => "the key is missing: name the user",
            };
            return Err(Refusal::new(Kind::Invalid, BAD_KEY.code, words));
        }
        match self.owner {
            StoredOwner::Agent => call.catalogue()?.check_agent(&key)?,
            StoredOwner::User => facts::check_name(&key)?,
            StoredOwner::Day => {}
        }
        Ok(key)
    }
}

impl StoredOwner {
    fn kind(self) -> OwnerKind {
        match self {
            Self::Agent => OwnerKind::Agent,
            Self::User => OwnerKind::User,
            Self::Day => OwnerKind::Day,
        }
    }
}

impl Change for ChangeBudget {
    const SPEC: Spec =
        Spec::change("change_budget", "/v1/campaigns/{id}/budget", "campaign budget")
            .tag("campaigns")
            .by(Method::Patch)
            .refuses(&[campaigns::Error::UNKNOWN, BAD_VALUE]);
    const ACTION: Action = Action::CampaignLimit;
    type Output = Budget;

    async fn change(self, conn: &mut PgConnection, _: &Call) -> ChangeResult<Budget> {
        let limits = |budget: &Budget| {
            json!({
                "limit": budget.limit,
                "soft": budget.soft,
                "on_limit": budget.on_limit,
                "experiments_micros": budget.experiments.limit_micros,
            })
        };
        let Self { id, micros, tokens, soft_micros, soft_tokens, on_limit, experiments_micros } =
            self;
        let change =
            LimitChange { micros, tokens, soft_micros, soft_tokens, on_limit, experiments_micros };
        campaigns::hold_budget(&mut *conn, id).await?;
        let before = campaigns::budget(&mut *conn, id).await?;
        let output = campaigns::change_limit(conn, id, change).await?;
        if change == LimitChange::default() {
            return Ok(ChangeOutput::nothing(id, output));
        }
        let mut data = limits(&output);
        data["before"] = before.as_ref().map_or(json!({}), limits);
        Ok(ChangeOutput::of(id, output, data))
    }
}

impl Change for ChangeTaskBudget {
    const SPEC: Spec = Spec::change("change_task_budget", "/v1/tasks/{id}/budget", "task budget")
        .tag("tasks")
        .by(Method::Patch)
        .refuses(&[tasks::Error::UNKNOWN, tasks::Error::EMPTY_BUDGET, BAD_VALUE]);
    const ACTION: Action = Action::TaskLimit;
    type Output = Task;

    async fn change(self, conn: &mut PgConnection, _: &Call) -> ChangeResult<Task> {
        let Self { id, micros, tokens, soft_micros, soft_tokens } = self;
        let change = BudgetChange { micros, tokens, soft_micros, soft_tokens };
        let soft_before = tasks::hold_budget(&mut *conn, id).await?;
        let before = tasks::get(&mut *conn, id).await?;
        let output = tasks::change_budget(&mut *conn, id, change).await?;
        if change == BudgetChange::default() {
            return Ok(ChangeOutput::nothing(id, output));
        }
        let soft = tasks::hold_budget(conn, id).await?;
        let limits = |task: &Task, soft: Limit| json!({ "micros": task.budget_micros, "tokens": task.budget_tokens, "soft": soft });
        let mut data = limits(&output, soft);
        data["before"] = limits(&before, soft_before);
        Ok(ChangeOutput::of(id, output, data))
    }
}

/// Tells a field that is null from one that is missing.
fn named<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<i64>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}
