//! Cancellation of a turn that would be retried.

use sqlx::PgPool;
use uuid::Uuid;

use crate::{
    domain::tasks,
    jobs::run_turn::{commit::fate::Fate, error::Error},
};

/// Replaces a fate that would retry by a cancellation, if that was requested. An answer, and a final failure, stay.
pub async fn apply_cancellation(pool: &PgPool, task_id: Uuid, fate: Fate) -> Result<Fate, Error> {
    let begins_anew = matches!(
        fate,
        Fate::Again { .. }
            | Fate::PutOff { .. }
            | Fate::WaitsForBudget { .. }
            | Fate::NoRoom { .. }
            | Fate::Correction { .. }
            | Fate::GivenBack
    );
    match begins_anew && tasks::is_asked_to_stop(pool, task_id).await? {
        true => Ok(Fate::Cancelled),
        false => Ok(fate),
    }
}
