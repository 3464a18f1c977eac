//! Doing nothing, so that work is noticed at once and nobody is disturbed.
//!
//! Whoever makes a job ready notifies only if some worker's row says that it waits, because a notification in every
//! commit would make all commits queue up behind each other. The flag costs two commits, so it goes up only after a
//! few naps, and stays up through short spells of work. After it went up come two more looks: one for what was ready
//! before, one for the commit that was under way and did not see the flag. What slips through even so is found by
//! the poll.

use std::time::Duration;

use tokio::time::{sleep, sleep_until, timeout};
use uuid::Uuid;

use super::{
    super::{
        link::{self, answer},
        pace,
    },
    Claimer,
    memory::Memory,
};

/// Naps after claims that found nothing, before the flag goes up.
const NAPS_MS: [u64; 4] = [1, 2, 4, 8];
/// How long a commit that did not see the flag may have been under way.
const SECOND_LOOK_AFTER: Duration = Duration::from_millis(50);
/// How long the flag may stay up while there is work.
const FLAG_MAY_STAY: Duration = Duration::from_millis(50);

impl Claimer {
    /// What comes after a claim that found nothing.
    pub(super) async fn rest(
        &mut self,
        worker_id: Uuid,
        memory: &mut Memory,
    ) -> Result<(), link::Error> {
        let hearing = self.bells.notices.is_hearing();
        let flag_is_up = memory.flag_of == Some(worker_id);
        let pause = match NAPS_MS.get(memory.n_empty.saturating_sub(1)) {
            Some(millis) if !flag_is_up => Duration::from_millis(*millis),
            _ if flag_is_up && memory.n_looks == 1 => SECOND_LOOK_AFTER,
            _ if flag_is_up && hearing => {
                pace::jittered(Duration::from_millis(self.config.poll_idle_ms))
            }
            _ if hearing => return self.set_flag(worker_id, true, memory).await,
            // Nobody can wake a worker that does not hear.
            _ => pace::jittered(Duration::from_millis(self.config.poll_busy_ms)),
        };
        tokio::select! {
            () = self.bells.work.notified() => {}
            () = sleep(pause) => {}
            // What is counted then may be the head of a lane, and nobody rings for it.
            () = sleep_until(memory.recount.due_at()) => {}
        }
        Ok(())
    }

    /// Takes the flag down once there has been work for a while.
    pub(super) async fn lower_flag_if_busy(
        &mut self,
        worker_id: Uuid,
        memory: &mut Memory,
    ) -> Result<(), link::Error> {
        let busy = memory.busy_since.is_some_and(|since| since.elapsed() > FLAG_MAY_STAY);
        if busy && memory.flag_of == Some(worker_id) {
            self.set_flag(worker_id, false, memory).await?;
        }
        Ok(())
    }

    /// Takes the flag down if all slots stay taken: this worker could do nothing about a notification.
    pub(super) async fn lower_flag_if_full(&mut self, worker_id: Uuid, memory: &mut Memory) {
        if memory.flag_of == Some(worker_id)
            && timeout(FLAG_MAY_STAY, self.slots.any_free()).await.is_err()
        {
            // A failure shows again at the next claim, where it is dealt with.
            let _ = self.set_flag(worker_id, false, memory).await;
        }
    }

    async fn set_flag(
        &mut self,
        worker_id: Uuid,
        waits: bool,
        memory: &mut Memory,
    ) -> Result<(), link::Error> {
        memory.flag_of = None;
        let patience = self.link.patience();
        let conn = self.link.conn().await?;
        let set = sqlx::query_file!("src/sql/worker_wait.sql", worker_id, waits).execute(conn);
        let set = answer(patience, set).await;
        self.link.settle(set)?;
        memory.flag_of = waits.then_some(worker_id);
        memory.n_looks = 0;
        Ok(())
    }
}
