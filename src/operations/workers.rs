//! Worker processes.

use serde::{Deserialize, Serialize};

use super::{Call, Operation, Refusal, Spec, page_limit};
use crate::queue::admin::{self, WorkerView};

/// Lists worker processes, the latest first.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ListWorkers {
    #[schema(minimum = 1, maximum = 200)]
    pub limit: Option<i64>,
}

/// The latest worker processes. Those that are gone stay for some days.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Workers {
    pub items: Vec<WorkerView>,
}

impl Operation for ListWorkers {
    const SPEC: Spec = Spec::read("list_workers", "/v1/workers", "worker ls").tag("queue");
    type Output = Workers;

    async fn run(self, call: &Call) -> Result<Workers, Refusal> {
        Ok(Workers { items: admin::list_workers(&call.pool, page_limit(self.limit)?).await? })
    }
}
