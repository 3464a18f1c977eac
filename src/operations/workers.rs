//! Worker processes.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Call, Listing, Operation, Refusal, Spec, page_limit};
use crate::queue::admin::{self, WorkerView};

/// Lists worker processes, the newest first. Ended ones are listed for queue.keep.workers_days.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ListWorkers {
    pub cursor: Option<Uuid>,
    #[schema(minimum = 1, maximum = 200)]
    pub limit: Option<i64>,
}

impl Operation for ListWorkers {
    const SPEC: Spec = Spec::read("list_workers", "/v1/workers", "worker ls").tag("queue");
    type Output = Listing<WorkerView>;

    async fn run(self, call: &Call) -> Result<Listing<WorkerView>, Refusal> {
        let limit = page_limit(self.limit)?;
        let workers = admin::list_workers(&call.pool, self.cursor, limit + 1).await?;
        Ok(Listing::of(workers, limit, |worker| worker.id))
    }
}
