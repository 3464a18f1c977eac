//! Cost reports: sums of the ledger by day, campaign, agent, model, provider, purpose or user.
//!
//! All amounts are integers, and each call of the ledger is in exactly one line, so the lines of a report add up to its total.

mod calls;
mod csv;
mod days;

use std::{cmp::Reverse, collections::HashMap};

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use uuid::Uuid;

pub use self::{
    calls::{CallFilter, CallOrder, CostCall, costliest_calls, newest_calls},
    days::add_up_days,
};
use super::{
    StatementError, campaigns,
    class::{Class, Classify, Kind},
    prices::{Price, UnpricedModel},
    text::count,
};

/// Maximum number of lines of a report.
pub const MAX_LINES: usize = 10_000;

/// Age of calls whose models are named if they had no price.
pub const UNPRICED_WITHIN: TimeDelta = TimeDelta::days(30);

/// A property of a call by which costs are added up.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, sqlx::Type, utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
#[sqlx(type_name = "text", rename_all = "snake_case")]
#[schema(as = CostDimension)]
pub enum Dimension {
    #[default]
    Day,
    Campaign,
    Agent,
    Model,
    Provider,
    /// Turns, summaries, facts and reruns.
    Purpose,
    /// The user for whom the campaign works now.
    User,
}

impl Dimension {
    pub const ALL: [Self; 7] = [
        Self::Day,
        Self::Campaign,
        Self::Agent,
        Self::Model,
        Self::Provider,
        Self::Purpose,
        Self::User,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Campaign => "campaign",
            Self::Agent => "agent",
            Self::Model => "model",
            Self::Provider => "provider",
            Self::Purpose => "purpose",
            Self::User => "user",
        }
    }
}

/// A figure of calls.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, sqlx::Type, utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
#[sqlx(type_name = "text", rename_all = "snake_case")]
#[schema(as = CostMeasure)]
pub enum Measure {
    /// The cost, then tokens.
    #[default]
    Money,
    Tokens,
}

/// The values of the last dimension that have lines of their own.
#[derive(Debug, Clone, Copy)]
pub struct Top {
    pub n: u32,
    pub by: Measure,
}

/// The calls of a report, and how they are added up.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    pub by: Dimension,
    pub and: Option<Dimension>,
    /// Without it, all values have lines of their own.
    pub top: Option<Top>,
    /// Time zone of days, such as `Europe/Berlin`.
    pub time_zone: &'a str,
    pub since: Option<DateTime<Utc>>,
    /// The end of the period, which is not part of it.
    pub until: Option<DateTime<Utc>>,
    pub campaign_id: Option<Uuid>,
    /// Limits the report to these campaigns.
    pub within: Option<&'a [Uuid]>,
}

/// The sums of some calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Costs {
    pub calls: i64,
    /// In millionths of the currency.
    pub cost_micros: i64,
    /// Counts that the provider did not report are 0.
    pub input_tokens: i64,
    pub output_tokens: i64,
    pub cache_read_tokens: i64,
    pub cache_creation_tokens: i64,
    /// Calls that used tokens and count as 0, because no price was set for their model. Older versions do not send it. Calls that a scheduler
    /// of an older version added to the sums of their days, during an upgrade, are not counted.
    #[serde(default)]
    pub calls_without_price: i64,
}

/// The costs of one value, or of one pair of values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct CostLine {
    /// The value of the dimension. Null: the calls have none, such as the user of a campaign without one.
    pub value: Option<String>,
    /// The value of the second dimension.
    pub second: Option<String>,
    #[serde(flatten)]
    pub costs: Costs,
}

/// The answer to a [`Question`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct CostReport {
    pub by: Dimension,
    pub and: Option<Dimension>,
    /// The label of the currency. Nothing is converted.
    pub currency: String,
    pub time_zone: String,
    pub since: Option<DateTime<Utc>>,
    pub until: Option<DateTime<Utc>>,
    /// By their costs, then by their tokens, the highest first; with days in the order of their values.
    pub lines: Vec<CostLine>,
    /// The sums of all values that are not among the `top`, for each value of the first of two dimensions.
    #[serde(default)]
    pub others: Vec<CostLine>,
    /// The number of values that `others` adds up.
    #[serde(default)]
    pub n_others: i64,
    pub total: Costs,
    /// Names of the campaigns in the lines, by id. Those of erased campaigns are missing.
    pub campaign_names: HashMap<Uuid, String>,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "the report has more than {MAX_LINES} lines: name a shorter period, one campaign, or a number of top values"
    )]
    TooManyLines,
    #[error("both dimensions of the report are the same: name another second one, or only one")]
    SameDimension,
    #[error(transparent)]
    Database(#[from] StatementError),
}

impl Error {
    pub const TOO_MANY_LINES: Class = Class::of(Kind::Invalid, "too_many_lines");
    pub const SAME_DIMENSION: Class = Class::of(Kind::Invalid, "same_dimension");
}

impl Classify for Error {
    fn class(&self) -> Class {
        match self {
            Self::TooManyLines => Self::TOO_MANY_LINES,
            Self::SameDimension => Self::SAME_DIMENSION,
            Self::Database(error) => error.class(),
        }
    }
}

impl CostReport {
    /// Lists its dimensions: one or two.
    pub fn dimensions(&self) -> impl Iterator<Item = Dimension> {
        [Some(self.by), self.and].into_iter().flatten()
    }

    /// Lists the lines of `others`, with their number in place of a value.
    pub fn named_others(&self) -> impl Iterator<Item = CostLine> {
        let n_others = usize::try_from(self.n_others).unwrap_or(0);
        let name = move || Some(format!("({})", count(n_others, "other", "others")));
        self.others.iter().cloned().map(move |line| match self.and {
            Some(_) => CostLine { second: name(), ..line },
            None => CostLine { value: name(), ..line },
        })
    }

    /// Returns the name of a value: of a campaign its name, if it has not been erased.
    pub fn name_of<'a>(&'a self, value: &'a str) -> &'a str {
        let name = value.parse().ok().and_then(|id| self.campaign_names.get(&id));
        name.map_or(value, String::as_str)
    }
}

impl Measure {
    pub fn of(self, costs: &Costs) -> i64 {
        match self {
            Self::Money => costs.cost_micros,
            Self::Tokens => costs.tokens(),
        }
    }
}

impl Costs {
    pub fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.cost_micros += other.cost_micros;
        self.input_tokens += other.input_tokens;
        self.output_tokens += other.output_tokens;
        self.cache_read_tokens += other.cache_read_tokens;
        self.cache_creation_tokens += other.cache_creation_tokens;
        self.calls_without_price += other.calls_without_price;
    }

    /// Returns the sum of all counts of tokens.
    pub fn tokens(&self) -> i64 {
        let read = self.cache_read_tokens + self.cache_creation_tokens;
        self.input_tokens + read + self.output_tokens
    }

    /// Returns true if the cost leaves out some of the calls, which have no price.
    pub fn is_partly_unpriced(&self) -> bool {
        self.calls_without_price > 0 && !self.is_unpriced()
    }

    /// Returns true if the cost is 0 because none of the calls has a price.
    pub fn is_unpriced(&self) -> bool {
        self.calls > 0 && self.cost_micros == 0 && self.calls_without_price == self.calls
    }
}

impl CostReport {
    /// Lists the models of the calls without a price that are not in `set`: those that their provider publishes as free, and the others. The
    /// report is by provider and model.
    pub fn unpriced_models(&self, set: &[Price]) -> (Vec<UnpricedModel>, Vec<UnpricedModel>) {
        let of = |line: &CostLine| {
            let (provider, model) = (line.value.clone()?, line.second.clone()?);
            (line.costs.calls_without_price > 0).then_some(UnpricedModel { provider, model })
        };
        let is_set = |it: &UnpricedModel| {
            set.iter().any(|price| price.provider == it.provider && price.model == it.model)
        };
        let mut models: Vec<_> =
            self.lines.iter().filter_map(of).filter(|it| !is_set(it)).collect();
        models.sort();
        models.into_iter().partition(|it| it.is_free(&self.currency))
    }
}

/// Adds up the calls of the ledger, in a transaction that reads one snapshot. `currency` is the label of the amounts.
pub async fn report(
    conn: &mut PgConnection,
    question: &Question<'_>,
    currency: &str,
) -> Result<CostReport, Error> {
    let Question { by, and, time_zone, since, until, .. } = *question;
    if and == Some(by) {
        return Err(Error::SameDimension);
    }
    let Lines { mut lines, others, n_others } = lines(&mut *conn, question).await?;
    if ![Some(by), and].contains(&Some(Dimension::Day)) {
        sort_by_cost(&mut lines);
    }
    let mut total = Costs::default();
    lines.iter().chain(&others).for_each(|line| total.add(&line.costs));
    let campaigns = match (by, and) {
        (Dimension::Campaign, _) => {
            campaign_ids(lines.iter().chain(&others).map(|line| &line.value))
        }
        (_, Some(Dimension::Campaign)) => campaign_ids(lines.iter().map(|line| &line.second)),
        _ => Vec::new(),
    };
    Ok(CostReport {
        by,
        and,
        currency: currency.to_owned(),
        time_zone: time_zone.to_owned(),
        since,
        until,
        lines,
        others,
        n_others,
        total,
        campaign_names: campaigns::names(conn, &campaigns).await?,
    })
}

/// Sorts the most expensive line first, and those of the same cost by their tokens.
fn sort_by_cost(lines: &mut [CostLine]) {
    lines.sort_by_key(|line| Reverse((line.costs.cost_micros, line.costs.tokens())));
}

#[derive(Default)]
struct Lines {
    lines: Vec<CostLine>,
    others: Vec<CostLine>,
    n_others: i64,
}

async fn lines(conn: &mut PgConnection, question: &Question<'_>) -> Result<Lines, Error> {
    let (first, second) = match question.and {
        Some(and) => (Some(question.by), and),
        None => (None, question.by),
    };
    let whole = days::whole_days(&mut *conn, question).await?;
    let rows = sqlx::query_file!(
        "src/domain/costs/report.sql",
        first as Option<Dimension>,
        second as Dimension,
        question.time_zone,
        question.since,
        question.until,
        question.campaign_id,
        question.within as Option<&[Uuid]>,
        i64::try_from(MAX_LINES + 1).unwrap_or(i64::MAX),
        whole.up_to,
        whole.first,
        whole.end,
        question.top.map(|top| i64::from(top.n)),
        question.top.map_or(Measure::default(), |top| top.by) as Measure,
    )
    .fetch_all(conn)
    .await
    .map_err(StatementError::to("add up the ledger"))?;
    if rows.len() > MAX_LINES {
        return Err(Error::TooManyLines);
    }
    let mut lines = Lines::default();
    for row in rows {
        let costs = Costs {
            calls: row.calls,
            cost_micros: row.cost_micros,
            input_tokens: row.input_tokens,
            output_tokens: row.output_tokens,
            cache_read_tokens: row.cache_read_tokens,
            cache_creation_tokens: row.cache_creation_tokens,
            calls_without_price: row.calls_without_price,
        };
        let (value, second) = match first {
            Some(_) => (row.first, row.second),
            None => (row.second, None),
        };
        lines.n_others = row.n_others;
        let kind = if row.is_other { &mut lines.others } else { &mut lines.lines };
        kind.push(CostLine { value, second, costs });
    }
    Ok(lines)
}

fn campaign_ids<'a>(values: impl Iterator<Item = &'a Option<String>>) -> Vec<Uuid> {
    let mut ids: Vec<Uuid> = values.flatten().filter_map(|value| value.parse().ok()).collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_expensive_line_comes_first_and_those_of_the_same_cost_by_their_tokens() {
        let line = |value: &str, calls, cost_micros, output_tokens| CostLine {
            value: Some(value.to_owned()),
            second: None,
            costs: Costs { calls, cost_micros, output_tokens, ..Costs::default() },
        };
        let mut lines = vec![
            line("few", 9, 0, 5),
            line("many", 1, 0, 14_000),
            line("cheap", 1, 20, 1),
            line("expensive", 1, 30, 1),
        ];
        sort_by_cost(&mut lines);
        let values: Vec<_> = lines.iter().filter_map(|line| line.value.as_deref()).collect();
        assert_eq!(values, ["expensive", "cheap", "many", "few"]);
    }
}
