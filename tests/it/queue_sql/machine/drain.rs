//! The end of each sequence: holds are released, time passes, one worker runs the jobs, and nothing may be left.

use proptest::prop_assert;
use sqlx::Executor as _;

use super::{
    super::{
        model::LANES,
        steps::{Fence, Step},
    },
    Machine, StepResult,
};

impl Machine {
    pub(super) async fn drain(&mut self) -> StepResult {
        self.finish_open(true).await;
        self.release_holds().await?;
        self.start_afresh().await?;
        // Each round ends at least the head of each lane, or what blocks it.
        let n_rounds = 4 * self.model.jobs.len() + 4;
        for _ in 0..n_rounds {
            if self.n_useful() == 0 {
                return Ok(());
            }
            self.round().await?;
        }
        prop_assert!(self.n_useful() == 0, "jobs that never end: {:#?}", self.model.jobs);
        Ok(())
    }

    /// Counts jobs that can still run. Jobs without a handler, and those behind them, keep waiting.
    fn n_useful(&self) -> usize {
        let jobs = self.model.jobs.values();
        let stuck_lanes: Vec<usize> =
            jobs.clone().filter(|job| !job.spec.known).filter_map(|job| job.spec.lane).collect();
        jobs.filter(|job| {
            job.spec.known && !job.spec.lane.is_some_and(|lane| stuck_lanes.contains(&lane))
        })
        .count()
    }

    async fn release_holds(&mut self) -> StepResult {
        while !self.model.paused.is_empty() {
            self.step(&Step::Resume(0)).await?;
        }
        for lane in 0..LANES.len() {
            self.step(&Step::ReleaseLane(lane)).await?;
        }
        while self.model.jobs.values().any(|job| job.hold_by.is_some()) {
            self.step(&Step::ReleaseJob(0)).await?;
        }
        Ok(())
    }

    /// Loses all processes, and starts one that takes everything over.
    async fn start_afresh(&mut self) -> StepResult {
        self.conn
            .execute("UPDATE dalsegno.workers SET lease_until = now() - interval '1 second'")
            .await
            .unwrap();
        for worker in &mut self.model.workers {
            worker.leased = false;
        }
        for lane in 0..LANES.len() {
            self.step(&Step::LanePolicy(lane, false)).await?;
        }
        for step in [Step::Register(0), Step::Season(0), Step::Rescue(0)] {
            self.step(&step).await?;
        }
        Ok(())
    }

    async fn round(&mut self) -> StepResult {
        while self.model.jobs.values().any(|job| job.state.word() == "scheduled" && !job.due) {
            self.step(&Step::Due(0)).await?;
        }
        let claim = Step::Claim { process: 0, n_slots: 50, turned: false, after_group: None };
        for step in [Step::CancelSweep, Step::Promote, Step::ClaimAlone(0), claim] {
            self.step(&step).await?;
        }
        let n_running = u8::try_from(self.model.running().len()).expect("few");
        let all = (0..n_running).map(|pick| (pick, Fence::Current)).collect();
        self.step(&Step::EndDone(all)).await
    }
}
