//! Waits for work without polling the database all the time.
//!
//! A transaction that makes a job ready notifies only if some worker's row carries the waiting flag. A notification in
//! every commit would make all commits queue up behind each other. Setting and clearing the flag costs two commits, so
//! it is set only after a few naps and stays during short spells of work. After setting it, the claimer looks twice
//! more: once for jobs that were ready before, once for a commit in flight that did not see the flag. The poll finds
//! jobs that slip through even so.

use std::time::Duration;

use tokio::time::{sleep, sleep_until, timeout};
use uuid::Uuid;

use super::{
    super::{
        jitter,
        link::{self, wait_for_answer},
    },
    Claimer,
    state::ClaimerState,
};

/// Naps after claims that found nothing, before the flag is set.
const NAPS_MS: [u64; 4] = [1, 2, 4, 8];
/// Time after which a commit that did not see the flag has probably ended.
const SECOND_LOOK_AFTER: Duration = Duration::from_millis(50);
/// Time that the flag may stay set while there is work.
const FLAG_MAY_STAY: Duration = Duration::from_millis(50);

impl Claimer {
    /// Rests after a claim that found nothing.
    pub(super) async fn wait_for_work(
        &mut self,
        worker_id: Uuid,
        memory: &mut ClaimerState,
    ) -> Result<(), link::Error> {
        let hearing = self.bells.notices.is_hearing();
        let flag_is_up = memory.flag_of == Some(worker_id);
        let pause = match NAPS_MS.get(memory.n_empty.saturating_sub(1)) {
            Some(millis) if !flag_is_up => Duration::from_millis(*millis),
            _ if flag_is_up && memory.n_looks == 1 => SECOND_LOOK_AFTER,
            _ if flag_is_up && hearing => {
                jitter::jittered(Duration::from_millis(self.config.poll_idle_ms))
            }
            _ if hearing => return self.set_flag(worker_id, true, memory).await,
            // No notification can wake this worker.
            _ => jitter::jittered(Duration::from_millis(self.config.poll_busy_ms)),
        };
        tokio::select! {
            () = self.bells.work.notified() => {}
            () = sleep(pause) => {}
            // A recount may free the head of a lane, and no bell rings for it.
            () = sleep_until(memory.recount.due_at()) => {}
        }
        Ok(())
    }

    /// Clears the flag once there has been work for a while.
    pub(super) async fn lower_flag_if_busy(
        &mut self,
        worker_id: Uuid,
        memory: &mut ClaimerState,
    ) -> Result<(), link::Error> {
        let busy = memory.busy_since.is_some_and(|since| since.elapsed() > FLAG_MAY_STAY);
        if busy && memory.flag_of == Some(worker_id) {
            self.set_flag(worker_id, false, memory).await?;
        }
        Ok(())
    }

    /// Clears the flag if all slots stay taken: this worker could not act on a notification.
    pub(super) async fn lower_flag_if_full(&mut self, worker_id: Uuid, memory: &mut ClaimerState) {
        if memory.flag_of == Some(worker_id)
            && timeout(FLAG_MAY_STAY, self.slots.wait_until_any_free()).await.is_err()
        {
            // A failure shows again at the next claim, which handles it.
            let _ = self.set_flag(worker_id, false, memory).await;
        }
    }

    async fn set_flag(
        &mut self,
        worker_id: Uuid,
        waits: bool,
        memory: &mut ClaimerState,
    ) -> Result<(), link::Error> {
        memory.flag_of = None;
        let patience = self.link.patience();
        let conn = self.link.conn().await?;
        let set = sqlx::query_file!("src/sql/worker_wait.sql", worker_id, waits).execute(conn);
        let set = wait_for_answer(patience, set).await;
        self.link.check_answer(set)?;
        memory.flag_of = waits.then_some(worker_id);
        memory.n_looks = 0;
        Ok(())
    }
}
