//! Limit on the calls of one turn that run at the same time.
//!
//! A model may request any number of tools at once, and Claude Code calls some of them in parallel. Each call takes a connection of the
//! pool that all turns of a worker share. So a few calls run, and the next ones wait for them. A call that waits too long is refused, and
//! the model is told to call again.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};
use uuid::Uuid;

use super::Refusal;

pub(super) const MAX_CALLS: usize = 4;

/// Semaphores of the turns of this process that have calls at this moment.
#[derive(Debug, Default)]
pub(super) struct CallSlots(Mutex<HashMap<(Uuid, i32), Weak<Semaphore>>>);

impl CallSlots {
    /// Waits for a place among the calls of a turn. Dropping the permit frees it.
    pub(super) async fn acquire_permit(
        &self,
        turn: (Uuid, i32),
        longest: Duration,
    ) -> Result<OwnedSemaphorePermit, Refusal> {
        match timeout(longest, self.calls_of(turn).acquire_owned()).await {
            Ok(Ok(place)) => Ok(place),
            Ok(Err(_)) | Err(_) => Err(Refusal::of_text(format!(
                "nothing was done: {MAX_CALLS} of your calls are still running, the limit. Wait for their answers, then call this again"
            ))),
        }
    }

    fn calls_of(&self, turn: (Uuid, i32)) -> Arc<Semaphore> {
        let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Every call that runs or waits holds the semaphore of its turn, so the others can go.
        turns.retain(|_, calls| calls.strong_count() > 0);
        if let Some(calls) = turns.get(&turn).and_then(Weak::upgrade) {
            return calls;
        }
        let calls = Arc::new(Semaphore::new(MAX_CALLS));
        turns.insert(turn, Arc::downgrade(&calls));
        calls
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn each_turn_has_its_own_permits_and_gets_them_back() {
        let (at_once, session) = (CallSlots::default(), Uuid::from_u128(1));
        let enter = async |turn: i32| at_once.acquire_permit((session, turn), Duration::ZERO).await;
        let mut places = Vec::new();
        for _ in 0..MAX_CALLS {
            places.push(enter(1).await.unwrap());
        }
        assert!(enter(1).await.is_err());
        let _other = enter(2).await.unwrap();
        places.pop();
        places.push(enter(1).await.unwrap());
        assert!(enter(1).await.is_err());
        drop(places);
        let _later = enter(3).await.unwrap();
        assert_eq!(at_once.0.lock().unwrap().len(), 2, "idle turns are removed");
    }
}
