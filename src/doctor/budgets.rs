//! Check for budgets that tasks wait for.

use chrono::{DateTime, Utc};
use sqlx::PgPool;

use super::Finding;
use crate::domain::{
    Amount, StatementError,
    budgets::{self, OwnedBudget, OwnerKind, RankingQuery},
    text::count,
};

const CHECK: &str = "budgets";
const WHY: &str = "tasks wait at the limit of a budget until it is raised, or its period ends";
/// Budgets that are looked at: those for which tasks wait, then the nearest to their limits.
const MAX_BUDGETS: i64 = 1000;
/// Most budgets that are named.
const MAX_NAMED: usize = 5;

pub(super) async fn examine(pool: &PgPool, now: DateTime<Utc>) -> Finding {
    let budgets = match load(pool, now).await {
        Ok(budgets) => budgets,
        Err(error) => return Finding::warn(CHECK, error.to_string(), WHY, "dalsegno migrate up"),
    };
    let reached: Vec<&OwnedBudget> = budgets.iter().filter(|budget| is_reached(budget)).collect();
    if reached.is_empty() {
        return Finding::ok(CHECK, "no budget is used up, and no task waits for one", WHY);
    }
    let mut named: Vec<String> = reached.iter().take(MAX_NAMED).map(|it| describe(it)).collect();
    if reached.len() > MAX_NAMED {
        named.push(format!("{} more", reached.len() - MAX_NAMED));
    }
    let fix = "raise the limits: `dalsegno budget ls` lists them, `dalsegno budget set` and `dalsegno campaign budget` change them";
    Finding::warn(CHECK, named.join("; "), WHY, fix)
}

async fn load(pool: &PgPool, now: DateTime<Utc>) -> Result<Vec<OwnedBudget>, StatementError> {
    let failed = |source| StatementError { action: "rank the budgets", source };
    let mut conn = pool.acquire().await.map_err(failed)?;
    let query = RankingQuery { limit: MAX_BUDGETS, ..RankingQuery::default() };
    Ok(budgets::rank(&mut conn, &query, now).await?.items)
}

fn is_reached(budget: &OwnedBudget) -> bool {
    let least = Amount { micros: 1, tokens: 1 };
    budget.waiting_tasks > 0 || budget.check(least).is_err()
}

fn describe(budget: &OwnedBudget) -> String {
    let name = match budget.owner {
        OwnerKind::Campaign => {
            format!("campaign `{}`", budget.name.as_deref().unwrap_or(&budget.key))
        }
        OwnerKind::Agent => format!("agent `{}`", budget.key),
        OwnerKind::User => format!("user `{}`", budget.key),
        OwnerKind::Day => "the day".to_owned(),
    };
    let waiting = count(budget.waiting_tasks, "task waits", "tasks wait");
    format!("{waiting} for the budget of {name}")
}
