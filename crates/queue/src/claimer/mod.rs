//! Claiming jobs for free slots.
//!
//! The claimer takes slots first and claims at most that many jobs, so each claimed job can run at once. It alternates
//! between three states.
//! - *Busy*: after a claim that found something, the next one follows at once. While there are more jobs than slots,
//!   the claimer waits a few milliseconds for several free slots: a claim of many jobs costs little more than one.
//! - *Pausing*: after a claim that found nothing it sleeps up to four times for a few milliseconds, with a claim after
//!   each.
//! - *Waiting*: the worker sets the waiting flag of its row, looks twice more, and sleeps until a bell rings or the
//!   poll is due; see [`waiting`].
//!
//! A claim in flight is not cut short: the database would count its jobs as running although no worker runs them. If
//! the answer is lost all the same, [`recount`] finds them. Only a stopping worker gives up on an answer. Jobs of a claim
//! that is answered after the fence are given back and do not start.

mod alone;
mod floor;
mod group_ring;
mod recount;
mod state;
mod statements;
mod waiting;

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::{mpsc, watch},
    time::sleep,
};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use self::state::{ClaimResult, ClaimerState};
use super::{
    config::Config,
    crash_points::CrashPoint,
    jitter,
    link::{self, Link},
    registry::Handlers,
    run::{Run, RunContext},
    slots::{Claim, Slots},
    wakeup::{RunAloneJob, WakeSignals},
};
use dalsegno_base::causes::causes;

/// Time that a stopping worker waits for the answer to its last claim. After that, the lease returns the jobs of this
/// claim.
const LAST_CLAIM_PATIENCE: Duration = Duration::from_secs(1);

/// The task that claims jobs.
pub(super) struct Claimer {
    pub(super) link: Link,
    pub(super) slots: Arc<Slots>,
    pub(super) bells: Arc<WakeSignals>,
    pub(super) config: Arc<Config>,
    pub(super) shared: Arc<RunContext>,
    pub(super) handlers: Arc<Handlers>,
    pub(super) queues: Vec<String>,
    /// Id under which the process is registered; `None` while it may not claim.
    pub(super) identity: watch::Receiver<Option<Uuid>>,
    pub(super) claims: mpsc::UnboundedSender<Claim>,
}

impl Claimer {
    /// Claims until `stop`.
    pub(super) async fn run(mut self, stop: CancellationToken) {
        let mut memory = ClaimerState::new(&self.handlers);
        // Connects while the process registers, because the first job would wait for it otherwise. The first claim
        // reports an error.
        if let Some(Err(error)) = stop.run_until_cancelled(self.link.conn()).await {
            tracing::debug!(error = causes(&error), "connecting for the first claim");
        }
        loop {
            let ready = stop.run_until_cancelled(self.wait_for_slots(&mut memory)).await;
            let Some((worker_id, n_slots)) = ready else { break };
            let claim = self.claim(worker_id, n_slots, &mut memory);
            let Some(claimed) = answer_in_time(&stop, claim).await else {
                tracing::warn!(
                    "the last claim got no answer: its jobs are claimed again when their lease ends"
                );
                self.link.disconnect();
                break;
            };
            let turn = match claimed {
                Ok(ClaimResult::Nothing) => {
                    stop.run_until_cancelled(self.wait_for_work(worker_id, &mut memory)).await
                }
                Ok(ClaimResult::Something | ClaimResult::Unsure) => Some(Ok(())),
                Err(error) => Some(Err(error)),
            };
            let carry_on = match turn {
                Some(Ok(())) => Some(()),
                Some(Err(error)) => stop.run_until_cancelled(back_off(&error, &mut memory)).await,
                None => None,
            };
            if carry_on.is_none() {
                break;
            }
        }
        self.link.close().await;
    }

    /// Waits until the process is registered and has free slots.
    async fn wait_for_slots(&mut self, memory: &mut ClaimerState) -> (Uuid, u32) {
        loop {
            let worker_id = self.wait_for_registration().await;
            if std::mem::take(&mut memory.runs_alone) {
                self.slots.wait_until_all_free().await;
            }
            self.make_room().await;
            self.lower_flag_if_full(worker_id, memory).await;
            let wanted =
                if memory.backlog { self.slots.capacity().div_ceil(4).min(128) } else { 1 };
            let linger = Duration::from_millis(self.config.end_linger_ms);
            let n_slots = self.slots.take_free(wanted, linger).await;
            // Waiting for slots can take minutes, and the registration may be lost in that time.
            if *self.identity.borrow() == Some(worker_id) {
                return (worker_id, n_slots);
            }
            self.slots.give_back(n_slots);
        }
    }

    async fn wait_for_registration(&mut self) -> Uuid {
        loop {
            let id = *self.identity.borrow_and_update();
            if let Some(id) = id {
                return id;
            }
            // The sender lives as long as the worker. Without it there is nothing left to claim for.
            if self.identity.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Makes one claim. Slots that it does not fill are given back.
    async fn claim(
        &mut self,
        worker_id: Uuid,
        n_slots: u32,
        memory: &mut ClaimerState,
    ) -> Result<ClaimResult, link::Error> {
        let taken = self.slots.wrap_taken(n_slots);
        let rows = self.try_claim(worker_id, n_slots, memory).await?;
        let n_claimed = u32::try_from(rows.len()).unwrap_or(n_slots).min(n_slots);
        self.shared.crash_points.pass(CrashPoint::AfterClaim);
        let runs = rows.into_iter().map(|row| {
            let hold_lane =
                self.handlers.get(row.kind.as_str()).is_some_and(|handler| handler.holds_lane());
            let (facts, payload) = row.into_facts();
            (Run::new(facts, hold_lane, Arc::clone(&self.shared)), payload)
        });
        let claims = self.slots.occupy(runs);
        taken.mark_filled(n_claimed);
        // In this order: the fence clears the identity before it stops the runs in the slots. Either it has found these
        // runs, or this line finds the identity gone.
        let has_lease = *self.identity.borrow() == Some(worker_id);
        if has_lease {
            for claim in claims {
                // The receiver outlives the claimer. Without it, dropping the claim frees the slot and a recount finds the job.
                let _ = self.claims.send(claim);
            }
        } else if !claims.is_empty() {
            self.give_back_late(claims).await?;
        }
        Ok(memory.record_claim(n_claimed, n_slots))
    }

    async fn try_claim(
        &mut self,
        worker_id: Uuid,
        n_slots: u32,
        memory: &mut ClaimerState,
    ) -> Result<Vec<statements::Row>, link::Error> {
        self.recount_if_due(worker_id, memory).await?;
        self.lower_flag_if_busy(worker_id, memory).await?;
        let nothing_runs = n_slots == self.slots.capacity();
        if nothing_runs && self.bells.run_alone.send_replace(RunAloneJob::default()).ready_secs > 0
        {
            let rows = self.claim_alone(worker_id, memory).await?;
            if !rows.is_empty() {
                memory.runs_alone = true;
                return Ok(rows);
            }
        }
        self.claim_some(worker_id, n_slots, memory).await
    }
}

/// Returns `None` if the worker stops before an answer comes in time.
async fn answer_in_time<T>(stop: &CancellationToken, claim: impl Future<Output = T>) -> Option<T> {
    let late = async {
        stop.cancelled().await;
        sleep(LAST_CLAIM_PATIENCE).await;
    };
    tokio::select! {
        biased;
        claimed = claim => Some(claimed),
        () = late => None,
    }
}

async fn back_off(error: &link::Error, memory: &mut ClaimerState) {
    memory.record_failure();
    let wait = jitter::wait_after_failure(memory.n_failures);
    tracing::warn!(
        error = causes(error),
        retry_in_ms = wait.as_millis(),
        "cannot claim jobs, trying again"
    );
    sleep(wait).await;
}
