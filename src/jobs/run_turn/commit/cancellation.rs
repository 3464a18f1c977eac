//! A turn that was asked to stop is not begun anew.

use sqlx::PgPool;
use uuid::Uuid;

use crate::{
    domain::tasks,
    jobs::run_turn::{commit::fate::Fate, error::Error},
};

/// A fate that would begin anything anew ends the task instead. An answer that is there, and a failure for good, stay as they are.
pub async fn heed(pool: &PgPool, task_id: Uuid, fate: Fate) -> Result<Fate, Error> {
    let begins_anew = matches!(
        fate,
        Fate::Again { .. } | Fate::PutOff { .. } | Fate::NoRoom { .. } | Fate::GivenBack
    );
    match begins_anew && tasks::is_asked_to_stop(pool, task_id).await? {
        true => Ok(Fate::Cancelled),
        false => Ok(fate),
    }
}
