//! Requests to stop a turn at a safe point: before it begins, between two rounds of tools, and before a retry. Only the
//! task's row holds the request.

use std::pin::Pin;

use futures_util::FutureExt as _;
use sqlx::PgPool;
use uuid::Uuid;

use crate::{causes::causes, domain::tasks};

/// A check for such a request, without blocking the call.
pub struct StopCheck<'a> {
    pool: &'a PgPool,
    task_id: Uuid,
    answer: Option<Pin<Box<dyn Future<Output = bool> + Send + 'a>>>,
}

impl<'a> StopCheck<'a> {
    pub fn new(pool: &'a PgPool, task_id: Uuid) -> Self {
        Self { pool, task_id, answer: None }
    }

    pub fn start_check(&mut self) {
        let (pool, task_id) = (self.pool, self.task_id);
        let answer = async move {
            let asked = tasks::is_asked_to_stop(pool, task_id).await;
            // An unreachable database stops no turn; the next round checks again.
            asked.unwrap_or_else(|error| {
                let error = causes(&error);
                tracing::debug!(error, "cannot check whether the turn has to stop");
                false
            })
        };
        self.answer = Some(answer.boxed());
    }

    /// Returns the answer of the running check; without a check it waits for ever.
    pub async fn wait_for_answer(&mut self) -> bool {
        let answer = match &mut self.answer {
            Some(answer) => answer.await,
            None => std::future::pending().await,
        };
        self.answer = None;
        answer
    }
}
