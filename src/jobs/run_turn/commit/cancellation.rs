//! Cancellation of a turn that would be retried.

use sqlx::PgPool;
use uuid::Uuid;

use crate::{causes::causes, domain::tasks, jobs::run_turn::commit::fate::Fate};

/// Replaces a fate that would retry by a cancellation, if that was requested. An answer, and a final failure, stay.
///
/// An unreachable database changes no fate: the calls of the turn have to be charged, and the next turn checks again before it begins.
pub async fn apply_cancellation(pool: &PgPool, task_id: Uuid, fate: Fate) -> Fate {
    let begins_anew = matches!(
        fate,
        Fate::Again { .. }
            | Fate::PutOff { .. }
            | Fate::WaitsForBudget { .. }
            | Fate::NoRoom { .. }
            | Fate::Correction { .. }
            | Fate::GivenBack
    );
    if !begins_anew {
        return fate;
    }
    match tasks::is_asked_to_stop(pool, task_id).await {
        Ok(true) => Fate::Cancelled,
        Ok(false) => fate,
        Err(error) => {
            let error = causes(&error);
            tracing::warn!(task.id = %task_id, error, "cannot check whether a turn has to stop");
            fate
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_lost_database_takes_no_answer_from_a_turn() {
        let pool = PgPool::connect_lazy("postgres://localhost/none").unwrap();
        pool.close().await;
        let fate = Fate::Correction { fault: "it is not JSON".to_owned() };
        assert_eq!(apply_cancellation(&pool, Uuid::nil(), fate.clone()).await, fate);
    }
}
