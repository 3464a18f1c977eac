//! The size of a compaction that is not made, for estimates.

use sqlx::PgConnection;

use super::{
    Error,
    fold::run_cpu_bound,
    node_context::NodeReader,
    prepare::{load, node, seed},
    setup::FixedWeight,
};
use crate::{
    context::{
        Budget, Calibration, Weight,
        compaction::{
            FoldDraft, Policy, Step, ladder::CompactionSteps, plan, plan::CompactionInput,
        },
    },
    domain::sessions::SessionRow,
};

/// The conversation to summarise, and the windows of its calls.
pub struct OutlineParams<'a> {
    pub session: &'a SessionRow,
    pub calibration: &'a Calibration,
    pub reader: NodeReader<'a>,
    pub window_tokens: u64,
    pub reserve_tokens: u64,
    pub summariser_window_tokens: u64,
    pub around: FixedWeight,
    pub policy: Policy,
}

/// The size of a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outline {
    /// Calls for one summary. 0: no model is called.
    pub calls: u64,
    /// Input of these calls.
    pub input_tokens: u64,
    pub max_output_tokens: u64,
    /// Length of the summary.
    pub summary_tokens: u64,
    /// The present conversation.
    pub tokens_before: u64,
    /// Everything that replaces the folded messages.
    pub replacement_tokens: u64,
    /// Messages that stay word for word.
    pub tail_tokens: u64,
}

/// Plans a compaction as if the first answer were as long as the extract, which needs no model.
pub async fn outline(
    conn: &mut PgConnection,
    params: &OutlineParams<'_>,
) -> Result<Result<Outline, plan::Error>, Error> {
    let OutlineParams { session, calibration, .. } = *params;
    let (loaded, place) = load(conn, &params.reader, session).await?;
    let system_tokens = calibration.tokens(params.around.system);
    let scene = CompactionInput {
        view: loaded.view()?,
        budget: Budget::of_narrow(params.window_tokens, params.reserve_tokens, system_tokens),
        calibration,
        upcoming_tokens: calibration.tokens(params.around.upcoming),
        summariser_window_tokens: params.summariser_window_tokens,
        policy: params.policy,
        node: place.as_ref().map(node),
    };
    let (seed, number) = (seed(session)?, scene.view.generation() + 1);
    let steps = CompactionSteps::new(1, false);
    let begun = run_cpu_bound(|| FoldDraft::begin(scene, &seed, number, steps));
    let (mut folding, mut step) = match begun {
        Ok(begun) => begun,
        Err(error) => return Ok(Err(error)),
    };
    let plan = folding.plan().clone();
    let (mut calls, mut input_tokens) = (0, 0);
    let compaction = loop {
        step = match step {
            Step::Ask { request, .. } => {
                let weight =
                    Weight::of_text(&request.system) + Weight::of_user_text(&request.prompt);
                calls = plan.batches.len() as u64;
                input_tokens = calibration.tokens(weight).saturating_mul(calls);
                folding.process_answer(Err(String::new()))
            }
            Step::Done(outcome) => break outcome.compaction,
            Step::Park { .. } => {
                let (tail_tokens, upcoming_tokens) = (plan.tail_tokens, scene.upcoming_tokens);
                let room_tokens = scene.budget.room_tokens();
                return Ok(Err(plan::Error::Floor { tail_tokens, upcoming_tokens, room_tokens }));
            }
        };
    };
    Ok(Ok(Outline {
        calls,
        input_tokens,
        max_output_tokens: plan.summary_max_tokens,
        summary_tokens: calibration.tokens(Weight::of_text(&compaction.summary)),
        tokens_before: plan.tokens_before,
        replacement_tokens: compaction.tokens_after.saturating_sub(plan.tail_tokens),
        tail_tokens: plan.tail_tokens,
    }))
}
