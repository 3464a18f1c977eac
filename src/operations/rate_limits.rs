//! The rate limits of calls that are in use.

use serde::{Deserialize, Serialize};

use super::{Call, Operation, Refusal, Spec};
use crate::domain::rate_limits::{self, UsedRateLimit};

/// Lists the rate limits that workers have used in the last hour, and the tasks that wait for them.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ListRateLimits {}

/// All limits, in one page: rules make a few, and one per campaign at most.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct UsedRateLimits {
    pub items: Vec<UsedRateLimit>,
}

impl Operation for ListRateLimits {
    const SPEC: Spec =
        Spec::read("list_rate_limits", "/v1/rate-limits", "rate-limit ls").tag("queue");
    type Output = UsedRateLimits;

    async fn run(self, call: &Call) -> Result<UsedRateLimits, Refusal> {
        let mut transaction = call.begin_read().await?;
        Ok(UsedRateLimits { items: rate_limits::list(&mut *transaction, call.now).await? })
    }
}
