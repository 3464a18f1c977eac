//! Budgets of agents, users and days: their limits, and the list of all budgets.

use chrono::{DateTime, NaiveDate, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sqlx::{PgConnection, PgExecutor};
use uuid::Uuid;

use super::{OwnerKind, reserve::decode_refusal};
use crate::domain::{
    Amount, StatementError,
    amount::{Balance, Limit, OnLimit, Owner, Refusal},
};

/// A budget with its amounts. That of a day has those of the present day; all others count all calls of all time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = OwnedBudget)]
pub struct OwnedBudget {
    pub owner: OwnerKind,
    /// The name of the agent or the user, or the id of the campaign; empty for a day.
    pub key: String,
    /// The name of the campaign.
    pub name: Option<String>,
    /// The present day.
    #[schema(value_type = Option<String>)]
    pub period: Option<NaiveDate>,
    pub time_zone: Option<String>,
    /// The end of the period.
    pub ends_at: Option<DateTime<Utc>>,
    pub limit: Limit,
    /// Spending at which a warning is written.
    pub soft: Limit,
    pub spent: Amount,
    pub reserved: Amount,
    pub on_limit: OnLimit,
    /// The moment of the warning in this period.
    pub warned_at: Option<DateTime<Utc>>,
    /// Number of tasks that wait for the budget.
    pub waiting_tasks: i64,
    /// False for a user for whom no campaign works now. Null for other owners, and from older versions.
    #[serde(default)]
    pub has_campaign: Option<bool>,
}

/// A change of limits. `None` leaves a limit as it is, `Some(None)` removes it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Change {
    pub micros: Option<Option<i64>>,
    pub tokens: Option<Option<i64>>,
    pub soft_micros: Option<Option<i64>>,
    pub soft_tokens: Option<Option<i64>>,
    pub on_limit: Option<OnLimit>,
}

/// A filter of the list.
#[derive(Debug, Clone, Copy, Default)]
pub struct Filter<'a> {
    pub owner: Option<OwnerKind>,
    pub key: Option<&'a str>,
    /// Only those with these [row keys](OwnedBudget::row_key).
    pub row_keys: Option<&'a [String]>,
    /// Owner and key of the last budget of the previous page.
    pub after: Option<(&'a str, &'a str)>,
    pub limit: i64,
}

impl OwnedBudget {
    /// Checks that the budget has space for an amount.
    pub fn check(&self, needed: Amount) -> Result<(), Refusal> {
        let owner = match self.owner {
            OwnerKind::Campaign => Owner::Campaign(self.key.parse().unwrap_or_default()),
            OwnerKind::Agent => Owner::Agent(self.key.as_str().into()),
            OwnerKind::User => Owner::User(self.key.as_str().into()),
            OwnerKind::Day => {
                Owner::Day(self.period.map(|day| day.to_string()).unwrap_or_default().into())
            }
        };
        let ends = self.next_period().map(Into::into);
        let refused = self.limit.check(owner, self.spent, self.reserved, needed);
        refused.map_err(|refusal| Refusal { on_limit: self.on_limit, ends, ..refusal })
    }

    /// Returns owner and key with a `/` between them: `agent/writer`, and `day/` for the day, which has no key.
    pub fn row_key(&self) -> String {
        format!("{}/{}", self.owner.as_str(), self.key)
    }

    pub fn balance(&self) -> Balance {
        let Self { limit, soft, spent, reserved, .. } = *self;
        Balance { limit, soft, spent, reserved }
    }

    /// Returns the begin of the next period: `2026-11-26 00:00 Europe/Berlin`. `None`: the budget counts all calls of all time.
    pub fn next_period(&self) -> Option<String> {
        let zone = self.time_zone.as_deref().unwrap_or_default();
        let next = self.period.and_then(|day| day.succ_opt());
        next.map(|day| format!("{day} 00:00 {zone}"))
    }

    /// Describes what is unexpected about the budget. `money` formats an amount.
    pub fn notes(&self, money: &dyn Fn(i64) -> String) -> Vec<String> {
        let mut notes = self.balance().notes(money);
        if self.has_campaign == Some(false) {
            notes.push(format!(
                "no campaign works for the user `{}` now: `dalsegno memory facts user` sets the user of a campaign",
                self.key
            ));
        }
        notes
    }
}

/// Lists budgets by owner and key. `now`: the moment of the periods, by default that of the database.
pub async fn list(
    executor: impl PgExecutor<'_>,
    filter: Filter<'_>,
    now: Option<DateTime<Utc>>,
) -> Result<Vec<OwnedBudget>, StatementError> {
    let (after_owner, after_key) = filter.after.unzip();
    let rows = sqlx::query!(
        r#"select owner as "owner!: OwnerKind", key as "key!", name, period, time_zone, ends_at, on_limit as "on_limit!: OnLimit", warned_at,
                  limit_micros, limit_tokens, soft_micros, soft_tokens, spent_micros as "spent_micros!", spent_tokens as "spent_tokens!",
                  reserved_micros as "reserved_micros!", reserved_tokens as "reserved_tokens!", n_waiting as "n_waiting!"
             from dalsegno.list_budgets(coalesce($1, now()))
            where ($2::text is null or owner = $2) and ($3::text is null or key = $3)
              and ($4::text is null or (owner, key) > ($4::text, $5::text)) and ($7::text[] is null or owner || '/' || key = any ($7))
            order by owner, key limit $6"#,
        now,
        filter.owner.map(OwnerKind::as_str),
        filter.key,
        after_owner,
        after_key,
        filter.limit,
        filter.row_keys,
    )
    .fetch_all(executor)
    .await
    .map_err(StatementError::to("list budgets"))?;
    let budget = rows.into_iter().map(|row| OwnedBudget {
        owner: row.owner,
        key: row.key,
        name: row.name,
        period: row.period,
        time_zone: row.time_zone,
        ends_at: row.ends_at,
        limit: Limit { micros: row.limit_micros, tokens: row.limit_tokens },
        soft: Limit { micros: row.soft_micros, tokens: row.soft_tokens },
        spent: Amount { micros: row.spent_micros, tokens: row.spent_tokens },
        reserved: Amount { micros: row.reserved_micros, tokens: row.reserved_tokens },
        on_limit: row.on_limit,
        warned_at: row.warned_at,
        waiting_tasks: row.n_waiting,
        has_campaign: None,
    });
    Ok(budget.collect())
}

/// Finds a budget. `None`: it has no limits.
pub async fn find(
    executor: impl PgExecutor<'_>,
    owner: OwnerKind,
    key: &str,
    now: Option<DateTime<Utc>>,
) -> Result<Option<OwnedBudget>, StatementError> {
    let filter = Filter { owner: Some(owner), key: Some(key), limit: 1, ..Filter::default() };
    Ok(list(executor, filter, now).await?.pop())
}

/// Locks the limits of a budget until the transaction ends, also of one that does not exist yet. Processes of older versions lock the row only.
pub async fn hold(
    conn: &mut PgConnection,
    owner: OwnerKind,
    key: &str,
) -> Result<(), StatementError> {
    sqlx::query!(
        "select pg_advisory_xact_lock(hashtextextended('dalsegno budget ' || $1::text || '/' || $2::text, 0))",
        owner.as_str(),
        key,
    )
    .execute(&mut *conn)
    .await
    .map_err(StatementError::to("lock a budget"))?;
    sqlx::query!(
        "select key from dalsegno.budgets where owner = $1 and key = $2 for no key update",
        owner.as_str(),
        key,
    )
    .fetch_optional(conn)
    .await
    .map(drop)
    .map_err(StatementError::to("lock the limits of a budget"))
}

/// Sets limits of the budget of an agent, a user or a day, and wakes tasks for which there is space now. A budget without limits is
/// removed.
pub async fn change(
    conn: &mut PgConnection,
    (owner, key): (OwnerKind, &str),
    change: Change,
    time_zone: &str,
    now: DateTime<Utc>,
) -> Result<Option<OwnedBudget>, StatementError> {
    sqlx::query!(
        "select dalsegno.change_budget($1, $2, $3, $4, $5) is null as changed",
        owner.as_str(),
        key,
        time_zone,
        change.to_json(),
        now,
    )
    .fetch_one(&mut *conn)
    .await
    .map_err(StatementError::to("set a budget"))?;
    find(conn, owner, key, Some(now)).await
}

/// Returns the refusal of the first budget of the agent, the user and the day without space for a call. Takes no lock.
pub async fn refusal(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
    agent: &str,
    needed: Amount,
    now: DateTime<Utc>,
) -> Result<Option<Refusal>, StatementError> {
    let refused = sqlx::query_scalar!(
        "select dalsegno.check_budgets($1, $2, $3, $4, $5)",
        campaign_id,
        agent,
        needed.micros,
        needed.tokens,
        now,
    )
    .fetch_one(executor)
    .await
    .map_err(StatementError::to("check the budgets of a call"))?;
    refused.map(|refused| decode_refusal(refused, needed)).transpose()
}

/// Returns the money that is left in these budgets, the least of all. `own` is reserved for the caller.
pub async fn left_micros(
    executor: impl PgExecutor<'_>,
    budgets: &[i64],
    own: Amount,
) -> Result<Option<i64>, StatementError> {
    sqlx::query_scalar!(
        "select min(b.limit_micros - s.micros + $2)
           from dalsegno.budgets as b
          cross join lateral (select sum(s.spent_micros + s.reserved_micros)::bigint as micros
                                from dalsegno.budget_shares as s where s.budget_id = b.id) as s
          where b.id = any ($1)",
        budgets,
        own.micros,
    )
    .fetch_one(executor)
    .await
    .map_err(StatementError::to("read the money that is left in budgets"))
}

/// Sets the time zone of days, after a change of the configuration.
pub async fn set_time_zone(
    executor: impl PgExecutor<'_>,
    time_zone: &str,
) -> Result<(), StatementError> {
    sqlx::query!(
        "update dalsegno.budgets set time_zone = $1 where owner = 'day' and time_zone <> $1",
        time_zone,
    )
    .execute(executor)
    .await
    .map(drop)
    .map_err(StatementError::to("set the time zone of the budget of a day"))
}

/// Removes what belongs to a campaign that is erased: waits of its tasks, and the budget of its user, unless another campaign works for
/// that user. Called before the campaign loses its user.
pub async fn remove_of_campaign(
    executor: impl PgExecutor<'_>,
    campaign_id: Uuid,
) -> Result<(), StatementError> {
    sqlx::query!("select dalsegno.remove_budget_data($1) is null as removed", campaign_id)
        .fetch_one(executor)
        .await
        .map(drop)
        .map_err(StatementError::to("remove the budget of an erased user"))
}

impl Change {
    fn to_json(self) -> Value {
        let limits = [
            ("micros", self.micros),
            ("tokens", self.tokens),
            ("soft_micros", self.soft_micros),
            ("soft_tokens", self.soft_tokens),
        ];
        let named = limits.into_iter().filter_map(|(name, limit)| Some((name, json!(limit?))));
        let on_limit = self.on_limit.map(|effect| ("on_limit", json!(effect)));
        let pairs = named.chain(on_limit).map(|(name, value)| (name.to_owned(), value));
        Value::Object(pairs.collect::<Map<_, _>>())
    }
}
