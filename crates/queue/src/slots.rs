//! The slots of a worker and the runs in them.
//!
//! A slot is taken before a job is claimed. It is free again when the database has acknowledged the end of the job (or
//! when the lease is lost, which needs no acknowledgement). Slots are the only limit on the work in a process, and
//! there is no buffer behind them.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{sync::Semaphore, time::timeout};

use super::run::Run;

/// The slots of one worker.
pub(super) struct Slots {
    capacity: u32,
    free: Semaphore,
    running: Mutex<HashMap<i64, Run>>,
}

/// A claimed job on its way to its handler.
pub(super) struct Claim {
    pub(super) run: Run,
    /// Taken by the outermost layer, which sends it on with the end.
    pub(super) slot: Option<Slot>,
    pub(super) payload: String,
}

/// The slots that a claim may fill. A drop frees those that it has not filled, also when the claim is abandoned or panics.
pub(super) struct SlotReservation {
    slots: Arc<Slots>,
    n_slots: u32,
}

/// A taken slot with its job. A drop frees the slot.
pub(super) struct Slot {
    pub(super) run: Run,
    slots: Arc<Slots>,
    held: bool,
}

impl Slots {
    pub(super) fn new(capacity: u32) -> Self {
        Self { capacity, free: Semaphore::new(capacity as usize), running: Mutex::default() }
    }

    pub(super) fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Number of taken slots.
    pub(super) fn n_taken(&self) -> usize {
        self.capacity as usize - self.free.available_permits().min(self.capacity as usize)
    }

    /// Takes all free slots, at least one. Waits up to `patience` for `wanted` of them to be free: a claim of many jobs
    /// costs the database hardly more than a claim of one.
    pub(super) async fn take_free(&self, wanted: u32, patience: Duration) -> u32 {
        let wanted = wanted.clamp(1, self.capacity);
        let taken = match timeout(patience, self.free.acquire_many(wanted)).await {
            Ok(Ok(permits)) => {
                permits.forget();
                wanted
            }
            // The semaphore is never closed, so the patience ran out.
            _ => match self.free.acquire().await {
                Ok(permit) => {
                    permit.forget();
                    1
                }
                Err(_) => 0,
            },
        };
        taken + self.take_available()
    }

    fn take_available(&self) -> u32 {
        // Only the claimer takes slots, so the permits available now are still available in the next line.
        let available = u32::try_from(self.free.available_permits()).unwrap_or(self.capacity);
        match self.free.try_acquire_many(available) {
            Ok(permits) => {
                permits.forget();
                available
            }
            Err(_) => 0,
        }
    }

    /// Frees slots for which there was no job.
    pub(super) fn give_back(&self, n_slots: u32) {
        self.free.add_permits(n_slots as usize);
    }

    /// Wraps that many taken slots for a claim that may fill them.
    pub(super) fn wrap_taken(self: &Arc<Self>, n_slots: u32) -> SlotReservation {
        SlotReservation { slots: Arc::clone(self), n_slots }
    }

    /// Puts claimed jobs into slots taken before.
    pub(super) fn occupy(
        self: &Arc<Self>,
        runs: impl Iterator<Item = (Run, String)>,
    ) -> Vec<Claim> {
        let mut running = self.lock();
        runs.map(|(run, payload)| {
            running.insert(run.job_id(), run.clone());
            let slot = Slot { run: run.clone(), slots: Arc::clone(self), held: true };
            Claim { run, slot: Some(slot), payload }
        })
        .collect()
    }

    /// Frees many slots at once, so that the claimer wakes once and claims them together.
    pub(super) fn free_all(&self, slots: impl Iterator<Item = Slot>) {
        let mut n_freed = 0;
        {
            let mut running = self.lock();
            for mut slot in slots {
                slot.held = false;
                forget_run(&mut running, &slot.run);
                n_freed += 1;
            }
        }
        self.free.add_permits(n_freed);
    }

    /// Returns when every slot is free.
    pub(super) async fn wait_until_all_free(&self) {
        if let Ok(permits) = self.free.acquire_many(self.capacity).await {
            drop(permits);
        }
    }

    /// Returns when a slot is free.
    pub(super) async fn wait_until_any_free(&self) {
        if let Ok(permit) = self.free.acquire().await {
            drop(permit);
        }
    }

    /// Lists the current runs.
    pub(super) fn running(&self) -> Vec<Run> {
        self.lock().values().cloned().collect()
    }

    /// Finds the run of a job in these slots.
    pub(super) fn find(&self, job_id: i64) -> Option<Run> {
        self.lock().get(&job_id).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<i64, Run>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SlotReservation {
    /// Marks that many slots as filled. The drop frees the rest.
    pub(super) fn mark_filled(mut self, n_filled: u32) {
        self.n_slots = self.n_slots.saturating_sub(n_filled);
    }
}

impl Drop for SlotReservation {
    fn drop(&mut self) {
        self.slots.give_back(self.n_slots);
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if self.held {
            forget_run(&mut self.slots.lock(), &self.run);
            self.slots.free.add_permits(1);
        }
    }
}

/// Removes the run, unless the same job was claimed again: a job that snoozed for zero seconds can be back before its old slot is freed.
fn forget_run(running: &mut HashMap<i64, Run>, run: &Run) {
    if running.get(&run.job_id()).is_some_and(|current| current.lease() == run.lease()) {
        running.remove(&run.job_id());
    }
}
