//! A turn that somebody has asked to stop where nothing is lost: before it begins, between two rounds of tools, and before anything
//! of it is tried again. What was asked is on the task's row, and looked at there and nowhere else.

use std::pin::Pin;

use futures_util::FutureExt as _;
use sqlx::PgPool;
use uuid::Uuid;

use crate::{causes::causes, domain::tasks};

/// Whether somebody has asked, without holding up the call.
pub struct Asking<'a> {
    pool: &'a PgPool,
    task_id: Uuid,
    answer: Option<Pin<Box<dyn Future<Output = bool> + Send + 'a>>>,
}

impl<'a> Asking<'a> {
    pub fn new(pool: &'a PgPool, task_id: Uuid) -> Self {
        Self { pool, task_id, answer: None }
    }

    pub fn ask(&mut self) {
        let (pool, task_id) = (self.pool, self.task_id);
        let answer = async move {
            let asked = tasks::is_asked_to_stop(pool, task_id).await;
            // A database that is away stops no turn; the next round asks again.
            asked.unwrap_or_else(|error| {
                let error = causes(&error);
                tracing::debug!(error, "nobody knows whether the turn is to stop");
                false
            })
        };
        self.answer = Some(answer.boxed());
    }

    /// Returns when there is an answer to what was asked.
    pub async fn answered(&mut self) -> bool {
        let answer = match &mut self.answer {
            Some(answer) => answer.await,
            None => std::future::pending().await,
        };
        self.answer = None;
        answer
    }
}
