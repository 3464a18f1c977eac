//! Cost reports.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Call, Operation, Refusal, Spec};
use crate::domain::{
    costs::{self, CostReport, Dimension, Error, Question},
    timestamp,
};

/// Adds up the costs of all calls by one or two dimensions.
///
/// Each call is in one line, so the lines add up to the total, and the total of a report without a period is that of the ledger.
/// Amounts are in the currency of the price list, which is not converted. Days begin at midnight of `scheduler.time_zone`.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReportCosts {
    /// Without it, days.
    #[serde(default)]
    pub by: Dimension,
    /// A second dimension.
    pub and: Option<Dimension>,
    /// Only calls at this moment or later.
    #[serde(default, deserialize_with = "timestamp::optional")]
    pub since: Option<DateTime<Utc>>,
    /// Only earlier calls.
    #[serde(default, deserialize_with = "timestamp::optional")]
    pub until: Option<DateTime<Utc>>,
    pub campaign_id: Option<Uuid>,
}

impl Operation for ReportCosts {
    const SPEC: Spec = Spec::read("report_costs", "/v1/costs", "cost")
        .tag("campaigns")
        .for_bound_keys()
        .refuses(&[Error::TOO_MANY_LINES, Error::SAME_DIMENSION]);
    type Output = CostReport;

    async fn run(self, call: &Call) -> Result<CostReport, Refusal> {
        let question = Question {
            by: self.by,
            and: self.and,
            time_zone: &call.config.time_zone,
            since: self.since,
            until: self.until,
            campaign_id: self.campaign_id,
            within: call.reach.campaigns(),
        };
        let mut transaction = call.begin_search().await?;
        Ok(costs::report(&mut transaction, &question, &call.config.currency).await?)
    }
}
