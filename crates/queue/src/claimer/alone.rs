//! Making room for a job that may only run alone.
//!
//! An idle worker claims it at once. If no worker is idle, workers stop claiming until one has ended all its runs. The
//! first one that is empty claims the job, and then the others have waited in vain. So they begin one after the other.
//! Their patience counts from the moment at which the job became ready. If it could not be claimed for long after that,
//! for example because its group was paused, all workers begin together.

use uuid::Uuid;

use super::Claimer;

/// Shortest time that the job has been ready before a worker makes room.
const PATIENCE_SECS: u32 = 10;
/// Workers begin within this time after that. It is longer than several heartbeats, by which they learn of the claim.
const PATIENCE_SPREAD_SECS: u32 = 30;

impl Claimer {
    /// Waits until nothing runs here, if such a job has been ready for longer than this worker's patience. Returns
    /// earlier when the job is gone, for example because another worker has claimed it.
    pub(super) async fn make_room(&self, worker_id: Uuid) {
        let mut alone_secs = self.bells.alone_secs.subscribe();
        if *alone_secs.borrow() <= patience_secs(worker_id) {
            return;
        }
        tokio::select! {
            () = self.slots.wait_until_all_free() => {}
            // The sender lives as long as this claimer.
            _ = async { alone_secs.wait_for(|secs| *secs == 0).await.map(drop) } => {}
        }
    }
}

/// Returns the patience of a worker, which differs from worker to worker.
fn patience_secs(worker_id: Uuid) -> u32 {
    PATIENCE_SECS + worker_id.as_fields().0 % PATIENCE_SPREAD_SECS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_begin_to_make_room_at_different_times() {
        let patience = |first: u32| patience_secs(Uuid::from_fields(first, 0, 0x4000, &[0x80; 8]));
        assert_eq!([0, 1, 29, 30].map(patience), [10, 11, 39, 10]);
    }
}
