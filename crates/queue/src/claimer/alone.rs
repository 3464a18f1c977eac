//! Making room for a job that may only run alone.
//!
//! An idle worker claims it at once. If no worker is idle, workers stop claiming until one has ended all its runs. The
//! first one that is empty claims the job, and then the others have waited in vain. So they begin one after the other,
//! in the order of their ids. The time counts from the moment at which the job became ready. If it could not be claimed
//! for long after that, for example because its group was paused, several workers begin together.

use super::{super::wakeup::RunAloneJob, Claimer};

/// Time that the job has been ready before the first worker makes room.
const PATIENCE_SECS: u32 = 10;
/// Time after which the next worker makes room, too. Most runs end within it.
const NEXT_WORKER_SECS: u32 = 60;

impl Claimer {
    /// Waits until nothing runs here, if it is this worker's turn to make room for such a job. Returns earlier when the
    /// job is gone, for example because another worker has claimed it.
    pub(super) async fn make_room(&self) {
        let mut run_alone = self.bells.run_alone.subscribe();
        if !needs_room(*run_alone.borrow()) {
            return;
        }
        tokio::select! {
            () = self.slots.wait_until_all_free() => {}
            // The sender lives as long as this claimer.
            _ = async { run_alone.wait_for(|job| job.ready_secs == 0).await.map(drop) } => {}
        }
    }
}

/// Returns true if it is this worker's turn to make room for the job.
fn needs_room(job: RunAloneJob) -> bool {
    job.ready_secs > PATIENCE_SECS.saturating_add(NEXT_WORKER_SECS.saturating_mul(job.n_ahead))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_make_room_one_after_the_other() {
        let begins = |ready_secs, n_ahead| needs_room(RunAloneJob { ready_secs, n_ahead });
        assert_eq!([0, 10, 11].map(|secs| begins(secs, 0)), [false, false, true]);
        assert_eq!([11, 70, 71].map(|secs| begins(secs, 1)), [false, false, true]);
        assert!(!begins(u32::MAX - 1, u32::MAX));
    }
}
