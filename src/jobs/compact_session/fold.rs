//! The steps of a fold: asks a summariser until a summary is accepted or all are refused.

use tokio::runtime::{Handle, RuntimeFlavor};

use super::{
    Error, Folder,
    answer::{Answer, Call},
    attempts,
};
use crate::{
    context::{
        Calibration, Weight,
        compaction::{
            FoldDraft, Step,
            folding::{Outcome, RefusedAttempt},
            ladder::CompactionStep,
            plan::Plan,
        },
    },
    domain::sessions::SessionRow,
};

/// The session to summarise, and what its calls need.
pub(super) struct Summariser<'a> {
    pub(super) folder: &'a Folder<'a>,
    pub(super) session: &'a SessionRow,
    pub(super) calibration: &'a Calibration,
}

/// The result of a fold.
pub(super) struct FoldResult {
    /// The accepted summary, or all refused attempts, with that of the extract.
    pub(super) result: Result<Outcome, Vec<RefusedAttempt>>,
    /// Model that wrote the summary; after refusals, the last one that was called.
    pub(super) model: Option<String>,
    pub(super) plan: Plan,
}

/// Runs CPU-bound work where other tasks do not wait for it: ten megabytes take half a second and more. A
/// single-threaded runtime runs it in place.
pub(super) fn run_cpu_bound<T>(work: impl FnOnce() -> T) -> T {
    match Handle::current().runtime_flavor() {
        RuntimeFlavor::MultiThread => tokio::task::block_in_place(work),
        _ => work(),
    }
}

impl Summariser<'_> {
    pub(super) async fn fold(
        &self,
        folding: &mut FoldDraft<'_>,
        mut step: Step,
    ) -> Result<FoldResult, Error> {
        let plan = folding.plan().clone();
        let mut model = None;
        loop {
            step = match step {
                Step::Ask { rung, request, begins_attempt } => {
                    let pinned = folding.pins().iter().map(|pin| pin.text.clone()).collect();
                    let call = Call::new(self, rung, &request, pinned);
                    model = Some(call.model.to_owned());
                    let answer = self.answer(&call, begins_attempt).await?;
                    run_cpu_bound(|| {
                        folding.process_answer(answer.as_deref().map_err(Clone::clone))
                    })
                }
                Step::Done(outcome) => {
                    let model = model.filter(|_| outcome.rung != CompactionStep::Extract);
                    return Ok(FoldResult { result: Ok(outcome), model, plan });
                }
                Step::Park { refused } => {
                    return Ok(FoldResult { result: Err(refused), model, plan });
                }
            }
        }
    }

    pub(super) fn tokens_of(&self, text: &str) -> u64 {
        self.calibration.tokens(Weight::of_user_text(text))
    }

    async fn answer(&self, call: &Call<'_>, begins_attempt: bool) -> Result<Answer, Error> {
        if let Some(refusal) = call.refusal(self.folder).await? {
            return Ok(Err(refusal));
        }
        let (id, turn) = (self.session.id, self.session.turn_count);
        if begins_attempt && !attempts::take(self.folder, id, turn).await? {
            return Ok(
                Err("other compactions used up the attempts for these ten turns".to_owned()),
            );
        }
        let answer = call.ask(self.folder).await;
        if begins_attempt && matches!(answer, Err(Error::NotAsked(_))) {
            attempts::give_back(self.folder, id, turn).await?;
        }
        answer
    }
}
