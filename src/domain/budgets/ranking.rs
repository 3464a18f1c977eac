//! Budgets by urgency, over all of them.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use super::{Filter, OwnedBudget, OwnerKind, list};
use crate::domain::StatementError;

/// A part of the ranking.
#[derive(Debug, Clone, Copy, Default)]
pub struct RankingQuery<'a> {
    pub owner: Option<OwnerKind>,
    pub key: Option<&'a str>,
    /// Budgets at which tasks failed that would fail again: [`OwnedBudget::row_key`] of each. They rank like those for which tasks wait.
    pub refusing: &'a [String],
    pub offset: i64,
    pub limit: i64,
}

/// Budgets by urgency: those that refuse calls first, then the nearest to its limit.
#[derive(Debug, Clone, Default)]
pub struct Ranking {
    pub items: Vec<OwnedBudget>,
    pub totals: BudgetTotals,
}

/// Numbers of all budgets of a ranking. They are 0 if no budget is listed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BudgetTotals {
    pub budgets: i64,
    /// Budgets for which tasks wait.
    pub awaited: i64,
    pub waiting_tasks: i64,
    /// Budgets of which nothing is left of one of the limits.
    pub reached: i64,
}

/// Ranks budgets. `now`: the moment of the periods.
pub async fn rank(
    conn: &mut PgConnection,
    query: &RankingQuery<'_>,
    now: DateTime<Utc>,
) -> Result<Ranking, StatementError> {
    let rows = sqlx::query_file!(
        "src/domain/budgets/ranking.sql",
        now,
        query.owner.map(OwnerKind::as_str),
        query.key,
        query.refusing,
        query.offset,
        query.limit,
    )
    .fetch_all(&mut *conn)
    .await
    .map_err(StatementError::to("rank the budgets"))?;
    let totals = rows.first().map(|row| BudgetTotals {
        budgets: row.n_budgets,
        awaited: row.n_awaited,
        waiting_tasks: row.n_waiting,
        reached: row.n_reached,
    });
    let row_keys: Vec<String> = rows.into_iter().map(|row| row.row_key).collect();
    let mut items = find_several(conn, &row_keys, now).await?;
    let place: HashMap<&str, usize> = row_keys.iter().map(String::as_str).zip(0..).collect();
    items.sort_by_key(|budget| place.get(budget.row_key().as_str()).copied());
    Ok(Ranking { items, totals: totals.unwrap_or_default() })
}

/// Finds budgets by their [row keys](OwnedBudget::row_key). Those without limits are left out.
pub async fn find_several(
    conn: &mut PgConnection,
    row_keys: &[String],
    now: DateTime<Utc>,
) -> Result<Vec<OwnedBudget>, StatementError> {
    if row_keys.is_empty() {
        return Ok(Vec::new());
    }
    let limit = i64::try_from(row_keys.len()).unwrap_or(i64::MAX);
    let filter = Filter { row_keys: Some(row_keys), limit, ..Filter::default() };
    list(conn, filter, Some(now)).await
}
