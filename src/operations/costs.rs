//! Cost reports, and the calls behind them.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Call, Listing, Operation, Refusal, Spec, page_limit};
use crate::domain::{
    class::{Kind, NUL_IN_TEXT},
    costs::{
        self, CallFilter, CallOrder, CostCall, CostReport, Dimension, Error, Measure, Question, Top,
    },
    period_edge::PeriodEdge,
    usage::Purpose,
};

const TAG: &str = "campaigns";
/// Values with lines of their own in a report of the highest ones.
const MAX_TOP: u32 = 1_000;

/// Adds up the costs of all calls by one or two dimensions.
///
/// Each call is in one line, so the lines add up to the total, and the total of a report without a period is that of the ledger.
/// Amounts are in the currency of the price list, which is not converted. Days begin at midnight of `scheduler.time_zone`.
#[derive(Debug, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReportCosts {
    /// Without it, days.
    #[serde(default)]
    pub by: Dimension,
    /// A second dimension.
    pub and: Option<Dimension>,
    /// Only the highest values of the last dimension, at most this many, have lines of their own; `others` adds up all others.
    #[schema(minimum = 1, maximum = 1000)]
    pub top: Option<u32>,
    /// The figure by which `top` ranks the values: money, unless this says otherwise.
    pub top_by: Option<Measure>,
    /// Only calls at this moment or later. A day such as `2026-11-23`, `today` and `yesterday` stand for its begin.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub since: Option<PeriodEdge>,
    /// Only earlier calls: before a moment, or before the begin of a day.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub until: Option<PeriodEdge>,
    pub campaign_id: Option<Uuid>,
}

/// Lists calls of the ledger with their costs: those behind a line of a cost report.
#[derive(Debug, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ListCalls {
    /// Only calls at this moment or later. A day such as `2026-11-23`, `today` and `yesterday` stand for its begin.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub since: Option<PeriodEdge>,
    /// Only earlier calls: before a moment, or before the begin of a day.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub until: Option<PeriodEdge>,
    pub campaign_id: Option<Uuid>,
    pub agent: Option<String>,
    pub model: Option<String>,
    pub provider: Option<String>,
    #[schema(inline)]
    pub purpose: Option<Purpose>,
    /// The user for whom the campaign works now; an empty text for campaigns without one.
    pub user: Option<String>,
    /// True: only calls that the budgets of campaigns, agents, users and days pay for. Reruns have a budget of their own.
    #[serde(default)]
    pub without_reruns: bool,
    /// Without it, the newest first.
    #[serde(default)]
    pub order: CallOrder,
    /// The last call of the previous page, if the newest come first.
    pub cursor: Option<i64>,
    #[schema(minimum = 1, maximum = 200)]
    pub limit: Option<i64>,
}

impl Operation for ReportCosts {
    const SPEC: Spec = Spec::read("report_costs", "/v1/costs", "cost")
        .tag(TAG)
        .for_bound_keys()
        .refuses(&[Error::TOO_MANY_LINES, Error::SAME_DIMENSION]);
    type Output = CostReport;

    async fn run(self, call: &Call) -> Result<CostReport, Refusal> {
        let question = Question {
            by: self.by,
            and: self.and,
            top: self.top()?,
            time_zone: &call.config.time_zone,
            since: edge(self.since, call),
            until: edge(self.until, call),
            campaign_id: self.campaign_id,
            within: call.reach.campaigns(),
        };
        let mut transaction = call.begin_search().await?;
        Ok(costs::report(&mut transaction, &question, &call.config.currency).await?)
    }
}

/// Returns the moment of an edge of the period.
fn edge(edge: Option<PeriodEdge>, call: &Call) -> Option<DateTime<Utc>> {
    // The configuration was refused if it named an unknown time zone.
    let zone = call.config.time_zone.parse().unwrap_or(chrono_tz::UTC);
    edge.map(|edge| edge.at(zone, call.now))
}

impl ReportCosts {
    fn top(&self) -> Result<Option<Top>, Refusal> {
        let Some(n) = self.top else { return Ok(None) };
        if (1..=MAX_TOP).contains(&n) {
            return Ok(Some(Top { n, by: self.top_by.unwrap_or_default() }));
        }
        let detail = format!("top is {n}, but must be from 1 to {MAX_TOP}");
        Err(Refusal::new(Kind::Malformed, "bad_query", detail))
    }
}

impl Operation for ListCalls {
    const SPEC: Spec = Spec::read("list_calls", "/v1/costs/calls", "cost")
        .tag(TAG)
        .for_bound_keys()
        .refuses(&[NUL_IN_TEXT]);
    type Output = Listing<CostCall>;

    async fn run(self, call: &Call) -> Result<Listing<CostCall>, Refusal> {
        let limit = page_limit(self.limit)?;
        let filter = CallFilter {
            since: edge(self.since, call),
            until: edge(self.until, call),
            campaign_id: self.campaign_id,
            within: call.reach.campaigns(),
            agent: self.agent.as_deref(),
            model: self.model.as_deref(),
            provider: self.provider.as_deref(),
            purpose: self.purpose,
            user: self.user.as_deref(),
            without_reruns: self.without_reruns,
        };
        let mut transaction = call.begin_search().await?;
        Ok(match self.order {
            CallOrder::Newest => {
                let rows = costs::newest_calls(&mut *transaction, &filter, self.cursor, limit + 1);
                Listing::of(rows.await?, limit, |row| row.call.id)
            }
            CallOrder::Costliest => {
                let items = costs::costliest_calls(&mut *transaction, &filter, limit).await?;
                Listing { items, next: None }
            }
        })
    }
}
