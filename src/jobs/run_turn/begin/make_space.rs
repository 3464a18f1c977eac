//! Makes a conversation fit that has outgrown its window, while a turn waits.

use uuid::Uuid;

use crate::{
    causes::causes,
    context::{
        Pressure,
        compaction::{Keep, Policy},
    },
    domain::{compactions::Cause, sessions},
    jobs::{
        Services, busy,
        compact_session::setup::{self, FixedWeight},
        compact_session::{self, Error as NotFolded, Folder},
        run_turn::{
            error::{BeginRefusal, Error},
            load::assignment::Assignment,
        },
    },
    providers::Class,
    queue::Run,
};

/// The amount of space that is missing.
#[derive(Debug, Clone, Copy)]
pub struct SpaceRequest {
    pub around: FixedWeight,
    pub pressure: Pressure,
    /// Size of a conversation that the provider has refused as too long: its window is smaller than that.
    pub refused_tokens: Option<u64>,
    pub keep: Keep,
}

/// Chooses what a turn's conversation keeps after `n_times` requests for space. `None`: less cannot be sent.
pub fn keep_after(n_times: u32) -> Option<Keep> {
    match n_times {
        0 | 1 => Some(Keep::Turns),
        2 => Some(Keep::Summary),
        3 => Some(Keep::Reference),
        _ => None,
    }
}

/// Returns nine tenths of a refused size: the conversation has to shrink by a tenth at least.
fn less(refused_tokens: u64) -> u64 {
    refused_tokens.saturating_mul(9) / 10
}

/// Prepares a summary, which the next begin applies. No transaction is open.
///
/// If the turn can go on without a summary, a failure is only logged.
pub async fn make(
    run: &Run,
    services: &Services,
    assignment: &Assignment<'_>,
    session_id: Uuid,
    needed: SpaceRequest,
) -> Result<(), Error> {
    let Assignment { task, agent, node, route, .. } = assignment;
    let window = setup::summariser_window(agent, route, run.cancel()).await;
    let cost = |model: &str, tokens| services.cost(&route.provider_name, model, tokens);
    let refused = needed.refused_tokens.map(|it| less(it).saturating_add(route.reserve_tokens));
    let limit = |window: u64| refused.map_or(window, |refused| window.min(refused));
    let catalogue = services.library.current();
    let folder = setup::build_folder(
        run,
        services,
        (agent, &catalogue),
        route,
        needed.around,
        limit(window),
        &cost,
    );
    // A task that fills the planned window gets the model's.
    let around = needed.around.system + needed.around.upcoming;
    let around_tokens = folder.calibration.tokens(around).saturating_add(route.reserve_tokens);
    let is_filled = around_tokens.saturating_mul(4) > folder.window_tokens.saturating_mul(3);
    let planned_tokens = if is_filled { route.model_window_tokens } else { folder.window_tokens };
    let window_tokens = limit(planned_tokens);
    let waiting_node = node.as_deref().map(|node| node.name.as_str());
    let policy = Policy { keep: needed.keep, ..folder.policy };
    let folder = Folder { window_tokens, waiting: Some(task), waiting_node, policy, ..folder };
    let is_overflow = needed.pressure == Pressure::Overflow;
    let cause = if is_overflow { Cause::Overflow } else { Cause::Auto };
    // Where the provider keeps the conversation, a new one can begin without a summary.
    let must = is_overflow && !route.provider.holds_session();
    match compact_session::prepare(&folder, session_id, cause).await {
        Ok(_) => Ok(()),
        Err(error) if run.stop_reason().is_some() => Err(Error::undone(error)),
        // Nothing before the task can be folded. The provider decides if the call fits.
        Err(NotFolded::Plan { .. }) => Ok(()),
        Err(error) if must => Err(into_turn_error(error)),
        Err(error) => {
            tracing::warn!(session.id = %session_id, error = causes(&error), "cannot compact the session: the turn continues without a compaction");
            Ok(())
        }
    }
}

/// Converts the error for a turn that cannot go on.
fn into_turn_error(error: NotFolded) -> Error {
    match &error {
        NotFolded::NotAsked(source) => match source.class {
            Class::Snooze { after, .. } => {
                let cause = busy::wait_cause(source);
                let refusal = BeginRefusal::busy(error.to_string(), after, 0);
                Error::Refused(BeginRefusal { cause, ..refusal })
            }
            _ => Error::undone(error),
        },
        NotFolded::Session(sessions::Error::Overtaken(_)) => Error::Overtaken,
        NotFolded::Parked { .. }
        | NotFolded::BreakerOpen { .. }
        | NotFolded::View { .. }
        | NotFolded::Stored { .. } => Error::Refused(BeginRefusal::for_good(error.to_string())),
        _ => Error::undone(error),
    }
}
