//! The breaker on a session's row. An attempt is counted before it is made.
//!
//! Race: two compactions of one session count at once. Each locks the session's row, so that together they make no more
//! attempts than one may.

use serde_json::Value;
use uuid::Uuid;

use super::{Error, Folder, claim};
use crate::{context::compaction::ladder::Breaker, domain::sessions};

/// Counts an attempt. Returns false if none is left.
pub(super) async fn take(folder: &Folder<'_>, id: Uuid, turn: i32) -> Result<bool, Error> {
    change(folder, id, |breaker| {
        let is_left = breaker.attempts_left(turn.into()) > 0;
        if is_left {
            breaker.record(turn.into());
        }
        is_left
    })
    .await
}

/// Takes back an attempt whose call was not made.
pub(super) async fn give_back(folder: &Folder<'_>, id: Uuid, turn: i32) -> Result<(), Error> {
    change(folder, id, |breaker| breaker.take_back(turn.into())).await.map(|_| ())
}

pub(super) fn read(id: Uuid, stored: Option<Value>) -> Result<Breaker, Error> {
    let breaker = stored.map(serde_json::from_value).transpose();
    let breaker =
        breaker.map_err(|source| Error::Stored { session_id: id, what: "the attempts", source })?;
    Ok(breaker.unwrap_or_default())
}

async fn change(
    folder: &Folder<'_>,
    id: Uuid,
    change: impl FnOnce(&mut Breaker) -> bool,
) -> Result<bool, Error> {
    let mut tx = folder.pool.begin().await.map_err(Error::Transaction)?;
    let before = sessions::lock_breaker(&mut *tx, id).await?;
    let mut breaker = read(id, before.clone())?;
    let changed = change(&mut breaker);
    if changed {
        let stored = serde_json::to_value(&breaker).map_err(Error::Encode)?;
        let stored = claim::carry_over(before.as_ref(), stored);
        sessions::store_breaker(&mut *tx, id, &stored).await?;
        tx.commit().await.map_err(Error::Transaction)?;
    }
    Ok(changed)
}
